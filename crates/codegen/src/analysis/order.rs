//! In which order threadgroups are best launched: which of x and y counts first.
//!
//! Threadgroups launched one after another run at about the same time, and memory takes what they write
//! at about the same time best where it lies side by side: a transpose whose tiles follow each other
//! along the lines that it writes is a tenth faster on an NVIDIA H200 than along those it reads. No order
//! of threadgroups is promised (X3), so any will do.
//!
//! On a processor threadgroups run one after another, and what the last one read is near. Where loops go
//! through memory that only x tells apart and through other that only y does, as matrix products do, the
//! larger of the two had better stay: with y first, columns of the right matrix stay in the cache while
//! rows of the left stream by, which lie side by side. That makes a naive product of 1040 by 1040 on one
//! thread of an AMD EPYC 6 % faster than x first does. Where threads wait for each other in those loops and both
//! are as large, rows stay: there what comes next of the columns is asked for an iteration ahead. A product of
//! 1024 by 1024 in tiles of 16 by 16 takes a fifth less time so on one thread of an AMD EPYC 9005.
//!
//! For each index the walk finds how far it moves from one threadgroup to the next in x and in y: not at
//! all, a known distance, or one that only the dispatch knows, such as a line's length, which is taken
//! for far.
//!
//! Deliberately absent: z; indices that follow from data or that loops carry.

use std::collections::HashMap;

use invar_ir::{
    AccessMode, AddressSpace, Dim, Inst, InstKind, Kernel, Memory, Module, Region, Value,
};

use super::affine::{self, Affine, Product, Sum, Symbol};
use super::ranges::{self, Known};

/// How far an index moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Known(i64),
    /// By a factor that is the same for all threads.
    Far,
}

impl Distance {
    const NONE: Distance = Distance::Known(0);
}

/// Distances in x and y.
type Moves = [Distance; 2];

const STAYS: Moves = [Distance::NONE; 2];

/// Which of x and y counts first where threadgroups are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchOrder {
    /// Along x first: a row of threadgroups after another.
    RowMajor,
    /// Along y first: a column of threadgroups after another.
    ColumnMajor,
}

impl LaunchOrder {
    fn column_major_if(holds: bool) -> LaunchOrder {
        if holds {
            LaunchOrder::ColumnMajor
        } else {
            LaunchOrder::RowMajor
        }
    }
}

/// Column-major where every store to a buffer moves by less from one threadgroup to the next in y than in x: for
/// devices that run many threadgroups at once.
///
/// ```
/// use invar_codegen::analysis::order::{LaunchOrder, by_stores};
///
/// let text = "kernel @transpose(%n: u32, %x: device read f32, %y: device write f32) {
///     %column = thread_position_in_grid x
///     %row = thread_position_in_grid y
///     %p = mul %row, %n
///     %i = add %p, %column
///     %v = load %x[%i]
///     %q = mul %column, %n
///     %o = add %q, %row
///     store %y[%o], %v
/// }";
/// let module = invar_ir::text::parse("transpose.inv", text)?;
/// assert_eq!(by_stores(&module, &module.kernels[0], [32, 8, 1]), LaunchOrder::ColumnMajor);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn by_stores(module: &Module, kernel: &Kernel, threadgroup: [u32; 3]) -> LaunchOrder {
    let walk = Walk::through(module, kernel, threadgroup);
    LaunchOrder::column_major_if(walk.stores > 0 && walk.stores == walk.nearer_in_y)
}

/// Column-major where loops read at least as much that threadgroups along y share as threadgroups along x do (more,
/// if threads wait for each other in those loops): for devices that run threadgroups one after another.
///
/// ```
/// use invar_codegen::analysis::order::{LaunchOrder, by_shared_loads};
///
/// let text = "kernel @product(%n: u32, %a: device read f32, %b: device read f32, %c: device write f32) {
///     %column = thread_position_in_grid x
///     %row = thread_position_in_grid y
///     %left = mul %row, %n
///     %zero = const u32 0
///     %one = const u32 1
///     %none = const f32 0.0
///     %sum = for %k = %zero to %n step %one carry(%before = %none) {
///         %i = add %left, %k
///         %above = mul %k, %n
///         %j = add %above, %column
///         %x = load %a[%i]
///         %y = load %b[%j]
///         %after = fma %x, %y, %before
///         yield %after
///     }
///     %o = add %left, %column
///     store %c[%o], %sum
/// }";
/// let module = invar_ir::text::parse("product.inv", text)?;
/// assert_eq!(by_shared_loads(&module, &module.kernels[0], [64, 16, 1]), LaunchOrder::ColumnMajor);
/// assert_eq!(by_shared_loads(&module, &module.kernels[0], [16, 64, 1]), LaunchOrder::RowMajor);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn by_shared_loads(module: &Module, kernel: &Kernel, threadgroup: [u32; 3]) -> LaunchOrder {
    let walk = Walk::through(module, kernel, threadgroup);
    let [along_y, along_x] = walk.shared();
    LaunchOrder::column_major_if(along_x > 0 && along_y >= along_x + u64::from(walk.waits))
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    threadgroup: [u32; 3],
    affine: Affine<'a>,
    /// Whether what a loop carries stays from one threadgroup to the next.
    carried: HashMap<Value, bool>,
    stores: u32,
    nearer_in_y: u32,
    /// How many loops are around.
    depth: u32,
    /// Elements that threadgroups read in an iteration of loops' loads, where those along y or along x read the
    /// same: in the two arms of each condition. What stands under none is in its first arm.
    reads: HashMap<Option<Value>, [[u64; 2]; 2]>,
    /// The first condition in the loops around, and which of its arms this is.
    arm: (Option<Value>, usize),
    /// Threads wait for each other in a loop.
    waits: bool,
}

impl<'a> Walk<'a> {
    fn through(module: &'a Module, kernel: &'a Kernel, threadgroup: [u32; 3]) -> Walk<'a> {
        let known = Known {
            threadgroup_size: Some(threadgroup),
            threads: None,
        };
        let ranges = ranges::analyse(kernel, &known);
        let mut walk = Walk {
            module,
            kernel,
            threadgroup,
            affine: affine::analyse(kernel, &ranges, Some(threadgroup)),
            carried: HashMap::new(),
            stores: 0,
            nearer_in_y: 0,
            depth: 0,
            reads: HashMap::new(),
            arm: (None, 0),
            waits: false,
        };
        walk.region(&kernel.body);
        walk
    }

    /// How far an index moves; `None` if in another way than by a factor that is the same for all.
    fn of(&self, value: Value) -> Option<Moves> {
        let sum = self.affine.of(value).sum;
        let moves = |symbol: Symbol| matches!(symbol, Symbol::Threadgroup(Dim::X | Dim::Y));
        let mut others = sum.symbols().filter(|symbol| !moves(*symbol));
        if !others.all(|symbol| self.stays(&Sum::of(Product::of(symbol)))) {
            return None;
        }
        let [x, y] = [Dim::X, Dim::Y].map(|dim| {
            let by = sum.coefficient(Symbol::Threadgroup(dim))?;
            let distance = by.as_constant().map_or(Distance::Far, Distance::Known);
            (!by.symbols().any(moves)).then_some(distance)
        });
        Some([x?, y?])
    }

    /// Whether a sum is the same in each threadgroup, for threads in the same place and in the same iterations.
    fn stays(&self, sum: &Sum<Product>) -> bool {
        self.affine
            .depends_only_on(sum, &mut |symbol| match symbol {
                Symbol::Thread(_) | Symbol::Size(_) | Symbol::Query(..) | Symbol::Iteration(_) => {
                    true
                }
                Symbol::Threadgroup(dim) => dim == Dim::Z,
                Symbol::Power(..) => false,
                Symbol::Value(value) => {
                    let is_param = self.affine.definition(value).is_none();
                    is_param && self.carried.get(&value).copied().unwrap_or(true)
                }
            })
    }

    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn is_device(&self, memory: Memory) -> bool {
        let info = self.module.memory(self.kernel, memory);
        info.is_some_and(|info| info.space == AddressSpace::Device)
    }

    fn read(&mut self, memory: Memory, index: Value) {
        if self.depth == 0 || !self.is_device(memory) {
            return;
        }
        let [x, y, _] = self.threadgroup.map(u64::from);
        let moves = self.of(index);
        let (condition, arm) = self.arm;
        let [along_y, along_x] = &mut self.reads.entry(condition).or_default()[arm];
        match moves {
            None | Some(STAYS) => {}
            Some([_, Distance::NONE]) => *along_y += x,
            Some([Distance::NONE, _]) => *along_x += y,
            Some(_both) => {}
        }
    }

    /// What threadgroups along y and along x share in an iteration. A thread takes one arm of a condition, in
    /// whatever many places it is asked, so the larger counts.
    fn shared(&self) -> [u64; 2] {
        let of = |side: usize| {
            let larger = |arms: &[[u64; 2]; 2]| arms[0][side].max(arms[1][side]);
            self.reads.values().map(larger).sum()
        };
        [of(0), of(1)]
    }

    fn arm(&mut self, condition: Value, number: usize, region: &Region) {
        let before = self.arm;
        if self.depth > 0 && before.0.is_none() {
            self.arm = (Some(condition), number);
        }
        self.region(region);
        self.arm = before;
    }

    fn body(&mut self, body: &Region) {
        self.depth += 1;
        self.region(body);
        self.depth -= 1;
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.kind {
            InstKind::Store { place, .. } => {
                if self.is_device(place.memory) {
                    self.stores += 1;
                    let nearer = match self.of(place.index) {
                        Some([_, Distance::NONE]) | None => false,
                        Some([Distance::Known(x), Distance::Known(y)]) => {
                            x.unsigned_abs() > y.unsigned_abs()
                        }
                        Some([x, y]) => x == Distance::Far && y != Distance::Far,
                    };
                    self.nearer_in_y += u32::from(nearer);
                }
            }
            InstKind::For { init, body, .. } => {
                // What a loop carries may move in any way, unless nothing that goes in moves at all.
                let stays = init.iter().all(|v| self.stays(&self.affine.of(*v).sum));
                let carried = body.params[1..].iter().map(|param| (*param, stays));
                self.carried.extend(carried);
                self.body(body);
            }
            InstKind::Loop { body, .. } => {
                let carried = body.params.iter().map(|param| (*param, false));
                self.carried.extend(carried);
                self.body(body);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.arm(*condition, 0, then);
                self.arm(*condition, 1, otherwise);
            }
            InstKind::Barrier { .. } => self.waits |= self.depth > 0,
            other => {
                for access in other.accesses() {
                    if access.mode == AccessMode::Read {
                        self.read(access.memory, access.elements.first());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{PassOptions, run};
    use crate::pipeline::OPTIMISATION;

    /// A product whose loop over tiles has `waits` behind its loads.
    fn is_column_major(waits: &str, threadgroup: [u32; 3]) -> bool {
        let text = format!(
            "kernel @product(%n: u32, %a: device read f32, %b: device read f32, %c: device write f32) {{
                %column = thread_position_in_grid x
                %row = thread_position_in_grid y
                %left = mul %row, %n
                %zero = const u32 0
                %one = const u32 1
                %none = const f32 0.0
                %sum = for %k = %zero to %n step %one carry(%before = %none) {{
                    %i = add %left, %k
                    %above = mul %k, %n
                    %j = add %above, %column
                    %x = load %a[%i]
                    %y = load %b[%j]
                    {waits}
                    %after = fma %x, %y, %before
                    yield %after
                }}
                %o = add %left, %column
                store %c[%o], %sum
            }}"
        );
        let module = invar_ir::text::parse("product.inv", &text).expect("a kernel");
        by_shared_loads(&module, &module.kernels[0], threadgroup) == LaunchOrder::ColumnMajor
    }

    #[test]
    fn rows_stay_where_threads_wait_for_each_other_and_share_as_much() {
        assert!(is_column_major("", [16, 16, 1]));
        assert!(!is_column_major("barrier threadgroup", [16, 16, 1]));
        assert!(is_column_major("barrier threadgroup", [64, 16, 1]));
    }

    #[test]
    fn rows_stay_where_loads_of_tiles_moved_to_their_use() {
        let text = include_str!("../../../../benches/kernels/cpu.inv");
        let module = invar_ir::text::parse("cpu.inv", text).expect("kernels");
        let number = module
            .kernels
            .iter()
            .position(|k| &*k.name == "matmul_tiled");
        let number = number.expect("the tiled product");
        let names: Vec<&str> = ["forward"].iter().chain(OPTIMISATION).copied().collect();
        let (module, _) = run(module, number, &names, &PassOptions::default()).expect("passes");
        let order = by_shared_loads(&module, &module.kernels[number], [16, 16, 1]);
        assert_eq!(order, LaunchOrder::RowMajor);
    }

    #[test]
    fn what_two_arms_of_one_condition_read_counts_once() {
        let either = "barrier threadgroup
                    %few = lt %k, %n
                    if %few {
                    } else {
                        %there = load %b[%j]
                    }
                    if %few {
                        %here = load %b[%j]
                    }";
        assert!(is_column_major(either, [16, 16, 1]));
        let of_both = format!("{either}\n%again = load %a[%i]");
        assert!(!is_column_major(&of_both, [16, 16, 1]));
    }
}
