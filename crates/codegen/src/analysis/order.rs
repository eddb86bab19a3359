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
//! are as large, rows stay: there what comes next of the columns is asked for a round ahead. A product of
//! 1024 by 1024 in tiles of 16 by 16 takes a fifth less time so on one thread of an AMD EPYC 9005.
//!
//! For each index the walk finds how far it moves from one threadgroup to the next in x and in y: not at
//! all, a known distance, or one that only the dispatch knows, such as a line's length, which is taken
//! for far.
//!
//! Deliberately absent: z; indices that follow from data or that loops carry.

use std::collections::HashMap;

use invar_ir::{
    AccessMode, AddressSpace, Dim, Imm, Inst, InstKind, Kernel, Memory, Module, Op, Region, Scalar,
    Value,
};

use crate::passes::common::{constants, integer};

/// How far an index moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Known(i128),
    /// By a factor that is the same for all threads.
    Far,
}

impl Distance {
    const NONE: Distance = Distance::Known(0);

    fn plus(self, other: Distance, sign: i128) -> Distance {
        match (self, other) {
            (Distance::Known(a), Distance::Known(b)) => {
                Distance::Known(a.saturating_add(b.saturating_mul(sign)))
            }
            _far => Distance::Far,
        }
    }

    fn times(self, by: Option<i128>) -> Distance {
        match (self, by) {
            (Distance::NONE, _) => self,
            (Distance::Known(a), Some(by)) => Distance::Known(a.saturating_mul(by)),
            _far => Distance::Far,
        }
    }
}

/// Distances in x and y.
type Moves = [Distance; 2];

const STAYS: Moves = [Distance::NONE; 2];

/// Whether every store to a buffer moves by less from one threadgroup to the next in y than in x, so
/// that y had better count first.
///
/// ```
/// use invar_codegen::analysis::order::y_first;
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
/// assert!(y_first(&module, &module.kernels[0], [32, 8, 1]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn y_first(module: &Module, kernel: &Kernel, threadgroup: [u32; 3]) -> bool {
    let walk = Walk::through(module, kernel, threadgroup);
    walk.stores > 0 && walk.stores == walk.nearer_in_y
}

/// Whether loops read at least as much that threadgroups along y share as threadgroups along x do, so that
/// y had better count first where threadgroups run one after another; more, if threads wait for each other in
/// those loops.
///
/// ```
/// use invar_codegen::analysis::order::keeps_columns;
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
/// assert!(keeps_columns(&module, &module.kernels[0], [64, 16, 1]));
/// assert!(!keeps_columns(&module, &module.kernels[0], [16, 64, 1]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn keeps_columns(module: &Module, kernel: &Kernel, threadgroup: [u32; 3]) -> bool {
    let walk = Walk::through(module, kernel, threadgroup);
    let [along_y, along_x] = walk.shared();
    along_x > 0 && along_y >= along_x + u64::from(walk.waits)
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    threadgroup: [u32; 3],
    /// How each value moves; `None` if it does in another way.
    moves: HashMap<Value, Option<Moves>>,
    constants: HashMap<Value, i128>,
    stores: u32,
    nearer_in_y: u32,
    /// How many loops are around.
    depth: u32,
    /// Elements that threadgroups read in a round of loops' loads, where those along y or along x read the
    /// same: in the two arms of each condition. What stands under none is in its first arm.
    reads: HashMap<Option<Value>, [[u64; 2]; 2]>,
    /// The first condition in the loops around, and which of its arms this is.
    arm: (Option<Value>, usize),
    /// Threads wait for each other in a loop.
    waits: bool,
}

impl<'a> Walk<'a> {
    fn through(module: &'a Module, kernel: &'a Kernel, threadgroup: [u32; 3]) -> Walk<'a> {
        let mut walk = Walk {
            module,
            kernel,
            threadgroup,
            moves: HashMap::new(),
            constants: constants(kernel)
                .into_iter()
                .filter_map(|(value, constant)| Some((value, integer(constant)?)))
                .collect(),
            stores: 0,
            nearer_in_y: 0,
            depth: 0,
            reads: HashMap::new(),
            arm: (None, 0),
            waits: false,
        };
        for value in 0..kernel.values.len() as u32 {
            // Scalar parameters are the same for all; what instructions give is found in their order.
            walk.moves.insert(Value(value), Some(STAYS));
        }
        walk.region(&kernel.body);
        walk
    }

    fn of(&self, value: Value) -> Option<Moves> {
        self.moves.get(&value).copied().flatten()
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

    /// What threadgroups along y and along x share in a round. A thread takes one arm of a condition, in
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
            InstKind::Op { op, imm, args } => {
                let moves = self.op(*op, *imm, args);
                if let Some(result) = inst.results.first() {
                    self.moves.insert(*result, moves);
                }
                return;
            }
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
            InstKind::For {
                lower, init, body, ..
            } => {
                let lower = self.of(*lower);
                self.moves.insert(body.params[0], lower);
                // What a loop carries may move in any way, unless nothing that goes in moves at all.
                let stays = init.iter().all(|v| self.of(*v) == Some(STAYS));
                for param in &body.params[1..] {
                    self.moves.insert(*param, stays.then_some(STAYS));
                }
                self.body(body);
            }
            InstKind::Loop { body, .. } => {
                for param in &body.params {
                    self.moves.insert(*param, None);
                }
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
            kind if kind.is_constant() => return,
            other => {
                for access in other.accesses() {
                    if access.mode == AccessMode::Read {
                        self.read(access.memory, access.elements.first());
                    }
                }
            }
        }
        for result in &inst.results {
            self.moves.insert(*result, None);
        }
    }

    fn op(&self, op: Op, imm: Imm, args: &[Value]) -> Option<Moves> {
        let each = |f: &dyn Fn(usize) -> Distance| Some([f(0), f(1)]);
        let two = || Some((self.of(*args.first()?)?, self.of(*args.get(1)?)?));
        let constant = |i: usize| self.constants.get(&args[i]).copied();
        match op {
            Op::ThreadPositionInGrid | Op::ThreadgroupPositionInGrid => {
                let step = |d: usize| match op {
                    Op::ThreadPositionInGrid => i128::from(self.threadgroup[d]),
                    _the_threadgroups => 1,
                };
                Some(match imm {
                    Imm::Dim(Dim::X) => [Distance::Known(step(0)), Distance::NONE],
                    Imm::Dim(Dim::Y) => [Distance::NONE, Distance::Known(step(1))],
                    _z => STAYS,
                })
            }
            Op::Add | Op::Sub => {
                let (a, b) = two()?;
                let sign = if op == Op::Add { 1 } else { -1 };
                each(&|d| a[d].plus(b[d], sign))
            }
            Op::Mul => match two()? {
                (a, STAYS) => each(&|d| a[d].times(constant(1))),
                (STAYS, b) => each(&|d| b[d].times(constant(0))),
                _both_move => None,
            },
            Op::Fma => {
                let (a, b) = two()?;
                let c = self.of(*args.get(2)?)?;
                let product = match (a, b) {
                    (a, STAYS) => [a[0].times(constant(1)), a[1].times(constant(1))],
                    (STAYS, b) => [b[0].times(constant(0)), b[1].times(constant(0))],
                    _both_move => return None,
                };
                each(&|d| product[d].plus(c[d], 1))
            }
            Op::Shl => match two()? {
                (a, STAYS) => {
                    let by = constant(1).filter(|n| (0..32).contains(n)).map(|n| 1 << n);
                    each(&|d| a[d].times(by))
                }
                _count_moves => None,
            },
            Op::Cast if self.kernel.ty(args[0]).scalar() != Some(Scalar::Bool) => self.of(args[0]),
            _other => args
                .iter()
                .all(|v| self.of(*v) == Some(STAYS))
                .then_some(STAYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{PIPELINE, PassOptions, run};

    /// A product whose loop over tiles has `waits` behind its loads.
    fn keeps(waits: &str, threadgroup: [u32; 3]) -> bool {
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
        keeps_columns(&module, &module.kernels[0], threadgroup)
    }

    #[test]
    fn rows_stay_where_threads_wait_for_each_other_and_share_as_much() {
        assert!(keeps("", [16, 16, 1]));
        assert!(!keeps("barrier threadgroup", [16, 16, 1]));
        assert!(keeps("barrier threadgroup", [64, 16, 1]));
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
        let names: Vec<&str> = ["forward"].iter().chain(PIPELINE).copied().collect();
        let (module, _) = run(module, number, &names, &PassOptions::default()).expect("passes");
        assert!(!keeps_columns(
            &module,
            &module.kernels[number],
            [16, 16, 1]
        ));
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
        assert!(keeps(either, [16, 16, 1]));
        let of_both = format!("{either}\n%again = load %a[%i]");
        assert!(!keeps(&of_both, [16, 16, 1]));
    }
}
