//! Regrouping: kernels whose threads know of themselves only where they stand in the grid, so that no thread can
//! tell how they are put together to threadgroups, nor which axis of the grid their lanes lie on.
//!
//! This is for pointwise kernels, stencils, convolutions, products: whatever is written without threadgroup memory,
//! barriers and simdgroups, or could be. Such a kernel runs in the threadgroups that suit its accesses
//! ([`Regrouped::shape`]) and not in those that its author happened to write, and along the axis of the grid on
//! which neighbours read neighbours.
//!
//! A position that is put together from the threadgroup's and the thread's (`g * size + t`) is one in the grid,
//! and sizes of threadgroups are constants, where the dispatch's are known ([`Threadgroups`]).
//!
//! Threads that meet only to read what others copied to threadgroup memory need not meet (`untile.rs`), where
//! threadgroups are full. In square ones they exchange places if only so each has its own in the grid.
//!
//! No order of threadgroups is promised (X3). A kernel that may wait for another thread keeps its own: one with
//! fences, with atomics that order others, or whose loops use what an atomic gives.
//!
//! A grid of one dimension whose threads divide their place becomes one of two ([`super::split`]).
//!
//! Deliberately absent: the grid itself, which the caller that dispatches the kernel splits as
//! [`Regrouped::split`] says, and exchanges as [`Regrouped::lanes`] says.

use std::collections::{HashMap, HashSet};

use invar_ir::{
    AccessMode, AddressSpace, Const, Dim, Imm, Inst, InstKind, Kernel, Module, Op, ParamKind,
    Region, Scalar, Span, Type, Value, ValueInfo,
};

use super::common::{count, new_value, push_const};
use super::split::{self, Split};
use super::{dead, induction, untile};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::planes;
use crate::analysis::ranges::{self, Known};
use crate::tuning::{
    FAR_ACCESS, ITERATIONS_OF_A_LOOP, MOST_LOOP_DEPTH, NEAR_ACCESS, REGROUPED_INSTRUCTIONS,
    REGROUPED_THREAD_BYTES,
};

/// How many operations deep an index is followed.
const DEPTH: u32 = 8;

/// The threadgroups that a dispatch asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threadgroups {
    /// Threads of a full one.
    pub size: [u32; 3],
    /// None is smaller.
    pub full: bool,
}

/// What the caller does with the grid of a dispatch, if the kernel needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grids {
    /// Axes may be exchanged.
    pub exchanged: bool,
    /// One dimension becomes two: kernels that have no use for that are not wanted.
    pub split: bool,
}

/// A kernel that runs in any threadgroups.
#[derive(Clone, Debug)]
pub struct Regrouped {
    /// A module with that kernel alone. It requires no size.
    pub module: Module,
    /// How the grid is split, before axes are exchanged.
    pub split: Option<Split>,
    /// The axis of the author's grid that is x of this kernel's, and x is this axis.
    pub lanes: Dim,
    /// Some access is to neighbours along another axis, and to elements far apart along the lanes'.
    transposes: bool,
    /// Loops go through memory that only lanes tell apart and through other that only rows do.
    multiplies: bool,
    /// The kernel asks how many threads there are, as loops by the whole grid do.
    strides: bool,
    /// Threads of several rows together load little less than each by itself.
    whole_rows: bool,
    /// Some access is to where floats lead that the place in the grid leads to, as a sample of a picture is.
    samples: bool,
}

impl Regrouped {
    /// The threadgroups that suit it best, for a grid of this kernel's; none where its rows are so short that
    /// vectors would hang over.
    ///
    /// Four rows of 64 are four full vectors of 16 in both directions. On one thread of an AMD EPYC 9004 they are
    /// the best, or within a tenth of it, of eleven shapes from 16 by 16 to 1024 by 1 for products, convolutions
    /// and sums of 4096 by 4096. Transpositions take half the time in squares of 16: both sides then are whole
    /// lines of a cache. So do samples, in two thirds of the time where a picture becomes four times as small, and in
    /// the same time where it grows: neighbours in both directions are in the same pages. Products of matrices take four times as many rows: what a threadgroup reads of columns
    /// stays in the cache for all of them (naive, 1024 by 1024, two threads: 12.4 ms against 17).
    /// Stencils of few points in three dimensions take their rows one by one: [`planes`].
    pub fn shape(&self, threads: [u32; 3]) -> Option<[u32; 3]> {
        const LEAST: u32 = 16;
        let [x, y, z] = threads;
        // However few: the code is the same for all of them. What goes on by the whole grid goes along memory where a
        // chunk is a whole threadgroup: a*x + y takes 2.4 ms with AVX2 so, and 8.3 by 256.
        if y == 1 && z == 1 {
            return Some([if self.strides { 64 } else { 256 }, 1, 1]);
        }
        if x < LEAST {
            return None;
        }
        if (self.transposes || self.samples) && y >= LEAST {
            return Some([16, 16, 1]);
        }
        // Of long rows it does not matter that the last threadgroup is not full.
        const LONG: u32 = 256;
        let divides = |n: &u32| x.is_multiple_of(*n) && (*n > LEAST || x < LONG);
        let widths = [64, 32, 128, LEAST];
        let width = widths.into_iter().find(divides).unwrap_or(64);
        let below = |n: u32| 1 << n.max(1).ilog2();
        if self.whole_rows && x >= LONG {
            return Some([LONG, 1, 1]);
        }
        let threads = if self.multiplies { 1024 } else { 256 };
        Some([width, (threads / width).clamp(1, below(y)), 1])
    }
}

/// The kernel of that number for any threadgroups, with lanes along the axis that suits its accesses where
/// `grids` allows it; `None` if it can tell its threadgroups. Without `threadgroups` it is for every dispatch.
///
/// ```
/// use invar_codegen::passes::regroup::{Grids, Threadgroups, regroup};
/// use invar_ir::Dim;
///
/// let text = "kernel @column(%n: u32, %x: device read f32, %y: device write f32) {
///     %g = threadgroup_position_in_grid x
///     %t = thread_position_in_threadgroup x
///     %size = const u32 64
///     %first = mul %g, %size
///     %row = add %first, %t
///     %column = thread_position_in_grid y
///     %start = mul %row, %n
///     %i = add %start, %column
///     %v = load %x[%i]
///     store %y[%i], %v
/// }";
/// let module = invar_ir::text::parse("column.inv", text)?;
/// let grids = Grids { exchanged: true, split: false };
/// assert!(regroup(&module, 0, None, grids).is_none());
/// let of_64 = Threadgroups { size: [64, 1, 1], full: true };
/// let regrouped = regroup(&module, 0, Some(of_64), grids).expect("it knows its place in the grid only");
/// assert_eq!(regrouped.lanes, Dim::Y);
/// assert_eq!(regrouped.shape([4096, 4096, 1]), Some([64, 4, 1]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Panics
/// If there is no kernel of that number.
pub fn regroup(
    module: &Module,
    index: usize,
    threadgroups: Option<Threadgroups>,
    grids: Grids,
) -> Option<Regrouped> {
    let mut kernel = module.kernels[index].clone();
    let full = threadgroups.filter(|threadgroups| threadgroups.full);
    let untiled = full.is_some_and(|full| untile::run(module, &mut kernel, full.size));
    if !threads_are_independent(module, &kernel) {
        return None;
    }
    let alone = alone_in_the_grid(kernel.clone(), threadgroups, grids);
    let (kernel, split) = match (alone, full) {
        (Some(found), _) => found,
        (None, Some(full)) if untiled => {
            alone_in_the_grid(turned(kernel, full.size)?, threadgroups, grids)?
        }
        (None, _) => return None,
    };
    let steps = Steps::of(module, &kernel);
    if steps.all.is_empty() {
        return None;
    }
    let lanes = if grids.exchanged {
        steps.lanes()
    } else {
        Dim::X
    };
    // What lies far apart for the lanes was better brought side by side, unless squares of threads do that.
    if untiled && steps.are_far(lanes) {
        return None;
    }
    let transposes = steps.transposes(lanes);
    let multiplies = steps.multiplies(lanes);
    let mut strides = false;
    kernel.for_each_inst(&mut |inst| {
        let asked = inst.kind.as_op().map(|(op, ..)| op);
        strides |= asked == Some(Op::ThreadsPerGrid);
    });
    let samples = samples(&kernel, &kernel.body, &mut Sampled::default());
    let mut kernel = kernel;
    if lanes != Dim::X {
        exchange_axes(&mut kernel.body, lanes);
    }
    let ranges = ranges::analyse(&kernel, &Known::default());
    let affine = affine::analyse(&kernel, &ranges, None);
    let whole_rows = planes::gain_nothing_by_rows(&kernel, &affine);
    let module = Module {
        kernels: vec![kernel],
        ..module.clone()
    };
    Some(Regrouped {
        module,
        split,
        lanes,
        transposes,
        multiplies,
        strides,
        whole_rows,
        samples,
    })
}

/// A kernel whose threads know of themselves where they stand in the grid only, and how that is split.
fn alone_in_the_grid(
    mut kernel: Kernel,
    threadgroups: Option<Threadgroups>,
    grids: Grids,
) -> Option<(Kernel, Option<Split>)> {
    kernel.threadgroup_size = None;
    if let Some(threadgroups) = threadgroups {
        let body = std::mem::take(&mut kernel.body);
        kernel.body = with_sizes(body, &mut kernel.values, threadgroups);
        put_together(&mut kernel, threadgroups);
    }
    let split = if grids.split {
        Some(split::run(&mut kernel)?)
    } else {
        None
    };
    induction::run(&mut kernel);
    dead::run(&mut kernel);
    kernel.renumber();
    asks_for_the_grid_only(&kernel).then_some((kernel, split))
}

/// A kernel of which each thread does what the one beside the diagonal of its full square threadgroup did: that of a
/// transposition by tiles, where a thread stores what another one loaded, has its place in the grid then.
fn turned(mut kernel: Kernel, [x, y, z]: [u32; 3]) -> Option<Kernel> {
    dead::run(&mut kernel);
    let mut others = x != y || z != 1;
    kernel.for_each_inst(&mut |inst| {
        let asks = inst.kind.as_op().map(|(op, ..)| op);
        others |= asks == Some(Op::ThreadPositionInGrid);
    });
    if others {
        return None;
    }
    turn(&mut kernel.body);
    Some(kernel)
}

fn turn(region: &mut Region) {
    for inst in &mut region.insts {
        if let InstKind::Op {
            op: Op::ThreadPositionInThreadgroup,
            imm: Imm::Dim(dim),
            ..
        } = &mut inst.kind
        {
            *dim = match *dim {
                Dim::X => Dim::Y,
                Dim::Y => Dim::X,
                Dim::Z => Dim::Z,
            };
        }
        for inner in inst.kind.regions_mut() {
            turn(inner);
        }
    }
}

/// Values by what they follow from.
#[derive(Default)]
struct Sampled {
    /// The place in the grid.
    places: HashSet<Value>,
    /// Floats that follow from that: they became integers.
    indices: HashSet<Value>,
}

/// Whether an access of a region is to where floats lead. What loops hand on counts for nothing.
fn samples(kernel: &Kernel, region: &Region, found: &mut Sampled) -> bool {
    region.insts.iter().any(|inst| {
        if let Some((op, imm, args)) = inst.kind.as_op() {
            let any = |of: &HashSet<Value>| args.iter().any(|arg| of.contains(arg));
            let becomes_integer = op == Op::Cast
                && kernel.ty(args[0]).scalar().is_some_and(Scalar::is_float)
                && matches!(imm, Imm::Type(ty) if ty.is_integer_scalar());
            let is_index = any(&found.indices) || becomes_integer && any(&found.places);
            if is_index {
                found.indices.extend(&inst.results);
            }
            if op == Op::ThreadPositionInGrid || any(&found.places) {
                found.places.extend(&inst.results);
            }
        }
        let accesses = inst.kind.accesses();
        let mut firsts = accesses.iter().map(|access| access.elements.first());
        firsts.any(|index| found.indices.contains(&index))
            || inst
                .kind
                .regions()
                .into_iter()
                .any(|inner| samples(kernel, inner, found))
    })
}

/// Whether a kernel may be one that can be regrouped: no other can.
///
/// # Panics
/// If there is no kernel of that number.
pub fn may_be_regrouped(module: &Module, index: usize) -> bool {
    let kernel = &module.kernels[index];
    threads_are_independent(module, kernel) || untile::is_possible(module, kernel)
}

/// Whether every thread of a kernel runs by itself, in whatever order.
fn threads_are_independent(module: &Module, kernel: &Kernel) -> bool {
    let mut own = count(&kernel.body) <= REGROUPED_INSTRUCTIONS;
    own &= !kernel
        .params
        .iter()
        .any(|p| matches!(p.kind, ParamKind::Threadgroup { .. }));
    own &= (kernel.allocs.iter()).all(|alloc| alloc.space == AddressSpace::Thread);
    let bytes = kernel.allocs.iter().map(|alloc| {
        let extent = alloc.element.extent(&module.structs);
        extent.map_or(u64::MAX, |e| {
            e.size_bytes.saturating_mul(alloc.length.into())
        })
    });
    own &= bytes.fold(0, u64::saturating_add) <= REGROUPED_THREAD_BYTES;
    own &= kernel.simdgroup_size.is_none() && !kernel.tells_simdgroups();
    let mut used = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        own &= inst.kind.meets().is_none() && !inst.kind.orders_memory();
        inst.kind.for_each_use(|value| {
            used.insert(value);
        });
    });
    own && !waits(&kernel.body, &used, false)
}

/// Whether a loop uses what an atomic gives, or reads what others may write meanwhile.
fn waits(region: &Region, used: &HashSet<Value>, looping: bool) -> bool {
    region.insts.iter().any(|inst| {
        let accesses = inst.kind.accesses();
        let mut modes = accesses.iter().map(|access| access.mode);
        let asks = modes.any(|mode| matches!(mode, AccessMode::Atomic { .. }) && mode.reads());
        let asks = asks && inst.results.iter().any(|result| used.contains(result));
        let inner = looping || inst.kind.is_loop();
        let mut regions = inst.kind.regions().into_iter();
        (looping && asks) || regions.any(|region| waits(region, used, inner))
    })
}

/// The sizes of threadgroups as constants.
fn with_sizes(region: Region, values: &mut Vec<ValueInfo>, known: Threadgroups) -> Region {
    let mut insts = Vec::with_capacity(region.insts.len());
    for mut inst in region.insts {
        for inner in inst.kind.regions_mut() {
            *inner = with_sizes(std::mem::take(inner), values, known);
        }
        if let Some((op, Imm::Dim(dim), _)) = inst.kind.as_op() {
            let size = known.size[dim as usize];
            let is_size = op == Op::DispatchThreadsPerThreadgroup
                || op == Op::ThreadsPerThreadgroup && known.full;
            if is_size {
                inst.kind = InstKind::Const(Const {
                    scalar: Scalar::U32,
                    bits: size.into(),
                });
            } else if op == Op::ThreadgroupsPerGrid && known.full {
                let by = push_const(
                    values,
                    &mut insts,
                    Const {
                        scalar: Scalar::U32,
                        bits: size.into(),
                    },
                    Span::NONE,
                );
                let all = new_value(values, Type::U32);
                insts.push(Inst {
                    kind: query(Op::ThreadsPerGrid, dim),
                    results: [all].into_iter().collect(),
                    span: inst.span,
                });
                inst.kind = InstKind::Op {
                    op: Op::Div,
                    imm: Imm::None,
                    args: [all, by].into_iter().collect(),
                };
            }
        }
        insts.push(inst);
    }
    Region { insts, ..region }
}

fn query(op: Op, dim: Dim) -> InstKind {
    InstKind::Op {
        op,
        imm: Imm::Dim(dim),
        args: Default::default(),
    }
}

/// Sums of a threadgroup's and a thread's position that are one in the grid, in whatever order they are added up with
/// others.
fn put_together(kernel: &mut Kernel, Threadgroups { size, .. }: Threadgroups) {
    let known = Known {
        threadgroup_size: Some(size),
        threads: None,
    };
    let ranges = ranges::analyse(kernel, &known);
    let affine = affine::analyse(kernel, &ranges, Some(size));
    let positions = Dim::ALL.map(|dim| {
        let group = Sum::of(Product::of(Symbol::Threadgroup(dim)));
        let sum = match size[dim as usize] {
            1 => group,
            size => Sum::of(Product::of(Symbol::Thread(dim))).plus(&group, size.into()),
        };
        (dim, sum)
    });
    let is_sum = |value: Value| {
        let definition = affine.definition(value);
        match definition.and_then(|inst| inst.kind.as_op()) {
            Some((Op::Add, _, &[a, b])) if kernel.ty(value) == Type::U32 => Some([a, b]),
            _other => None,
        }
    };
    let position = |sum: &Sum<Product>| {
        let mut all = positions.iter();
        all.find(|(_, own)| own == sum).map(|(dim, _)| *dim)
    };
    let mut found = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        let Some(operands) = inst.results.first().and_then(|v| is_sum(*v)) else {
            return;
        };
        let mut gathered = Gathered {
            positions: Vec::new(),
            rest: Vec::new(),
        };
        let own = affine.of(inst.results[0]);
        let mut open = operands.to_vec();
        if let Some(dim) = position(&own.sum).filter(|_| own.bits >= 32) {
            gathered.positions.push(dim);
            open.clear();
        }
        while let Some(value) = open.pop() {
            let form = affine.of(value);
            if form.bits < 32 || position(&form.sum).is_some() {
                gathered.rest.push((value, None));
            } else if let Some(operands) =
                is_sum(value).filter(|_| gathered.rest.len() + open.len() < MOST_OPERANDS)
            {
                open.extend(operands);
            } else {
                gathered.rest.push((value, Some(form.sum)));
            }
        }
        while let Some((a, b, dim)) = gathered.pair(&position) {
            gathered.positions.push(dim);
            gathered.rest.remove(b);
            gathered.rest.remove(a);
        }
        if !gathered.positions.is_empty() {
            found.insert(inst.results[0], gathered);
        }
    });
    let mut body = std::mem::take(&mut kernel.body);
    gather(&mut body, &mut kernel.values, &found);
    kernel.body = body;
}

/// Operands of a sum that are looked at, at most.
const MOST_OPERANDS: usize = 8;

/// What a sum is of: positions in the grid, and other numbers, with what they are the sum of.
struct Gathered {
    positions: Vec<Dim>,
    rest: Vec<(Value, Option<Sum<Product>>)>,
}

impl Gathered {
    /// Two of the others that are a position together, the first one first.
    fn pair(
        &self,
        position: &impl Fn(&Sum<Product>) -> Option<Dim>,
    ) -> Option<(usize, usize, Dim)> {
        let all = || self.rest.iter().enumerate();
        all().find_map(|(n, (_, a))| {
            let a = a.as_ref()?;
            all().skip(n + 1).find_map(|(m, (_, b))| {
                let dim = position(&a.clone().plus(b.as_ref()?, 1))?;
                Some((n, m, dim))
            })
        })
    }
}

/// Adds up positions and others in the place of what they were found in.
fn gather(region: &mut Region, values: &mut Vec<ValueInfo>, found: &HashMap<Value, Gathered>) {
    for mut inst in std::mem::take(&mut region.insts) {
        for inner in inst.kind.regions_mut() {
            gather(inner, values, found);
        }
        let gathered = inst.results.first().and_then(|v| found.get(v));
        if let Some(Gathered { positions, rest }) = gathered {
            if let ([dim], []) = (&positions[..], &rest[..]) {
                inst.kind = query(Op::ThreadPositionInGrid, *dim);
                region.insts.push(inst);
                continue;
            }
            let mut operands: Vec<Value> = rest.iter().map(|(value, _)| *value).collect();
            for dim in positions {
                let own = new_value(values, Type::U32);
                region.insts.push(Inst {
                    kind: query(Op::ThreadPositionInGrid, *dim),
                    results: [own].into_iter().collect(),
                    span: inst.span,
                });
                operands.push(own);
            }
            // At least two, of which the last sum is the one that was there.
            while operands.len() > 2 {
                let pair = [operands.remove(0), operands.remove(0)];
                let sum = new_value(values, Type::U32);
                region.insts.push(Inst {
                    kind: add(pair),
                    results: [sum].into_iter().collect(),
                    span: inst.span,
                });
                operands.insert(0, sum);
            }
            inst.kind = add([operands[0], operands[1]]);
        }
        region.insts.push(inst);
    }
}

fn add(args: [Value; 2]) -> InstKind {
    InstKind::Op {
        op: Op::Add,
        imm: Imm::None,
        args: args.into_iter().collect(),
    }
}

/// The queries that tell nothing of threadgroups.
const OF_THE_GRID: [Op; 4] = [
    Op::ThreadPositionInGrid,
    Op::ThreadsPerGrid,
    Op::GridOrigin,
    Op::GridSize,
];

fn asks_for_the_grid_only(kernel: &Kernel) -> bool {
    let mut only = true;
    kernel.for_each_inst(&mut |inst| {
        // What asks has no operands; constants of types are told by their kind.
        if let Some((op, imm, args)) = inst.kind.as_op() {
            let asks = args.is_empty() && matches!(imm, Imm::Dim(_) | Imm::None);
            only &= !asks || OF_THE_GRID.contains(&op);
        }
    });
    only
}

fn exchange_axes(region: &mut Region, with: Dim) {
    for inst in &mut region.insts {
        if let InstKind::Op {
            imm: Imm::Dim(dim), ..
        } = &mut inst.kind
        {
            if *dim == with {
                *dim = Dim::X;
            } else if *dim == Dim::X {
                *dim = with;
            }
        }
        for inner in inst.kind.regions_mut() {
            exchange_axes(inner, with);
        }
    }
}

/// How far an index moves from one thread to its neighbour along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Same,
    Known(i64),
    Far,
}

impl Step {
    fn and(self, other: Step) -> Step {
        match (self, other) {
            (Step::Same, step) | (step, Step::Same) => step,
            (Step::Known(a), Step::Known(b)) => Step::Known(a.wrapping_add(b)),
            (Step::Far, _) | (_, Step::Far) => Step::Far,
        }
    }

    fn times(self, factor: i64) -> Step {
        match self {
            Step::Known(step) => Step::Known(step.wrapping_mul(factor)),
            same_or_far => same_or_far,
        }
    }

    fn cost(self) -> u64 {
        match self {
            Step::Same => 0,
            Step::Known(step) if step.unsigned_abs() <= NEAR_ACCESS => step.unsigned_abs(),
            Step::Known(_) | Step::Far => FAR_ACCESS,
        }
    }
}

/// An access to a buffer.
struct Accessed {
    /// Along x, y and z.
    steps: [Step; 3],
    /// How much it counts.
    weight: u64,
    loads: bool,
}

/// All accesses to buffers.
struct Steps {
    all: Vec<Accessed>,
    /// The axes that the kernel asks for.
    asked: [bool; 3],
}

impl Accessed {
    fn is_far(&self, lanes: Dim) -> bool {
        self.steps[lanes as usize].cost() == FAR_ACCESS
    }

    /// Whether neighbours along another axis than the lanes' access neighbours.
    fn is_near_beside(&self, lanes: Dim) -> bool {
        let mut others = Dim::ALL.into_iter().filter(|d| *d != lanes);
        others.any(|d| matches!(self.steps[d as usize], Step::Known(1 | -1)))
    }
}

impl Steps {
    fn of(module: &Module, kernel: &Kernel) -> Steps {
        let ranges = ranges::analyse(kernel, &Known::default());
        let mut walk = Walk {
            module,
            kernel,
            affine: affine::analyse(kernel, &ranges, None),
            first: vec![None; kernel.values.len()],
            steps: Steps {
                all: Vec::new(),
                asked: [false; 3],
            },
        };
        walk.region(&kernel.body, 0);
        walk.steps
    }

    /// The axis along which accesses cost least, or of several that are alike loads alone: a thread waits for these. x,
    /// where another is no better.
    fn lanes(&self) -> Dim {
        let cost = |dim: Dim, loads: bool| -> u64 {
            let each = self.all.iter().filter(|access| access.loads || !loads);
            each.map(|access| access.steps[dim as usize].cost() * access.weight)
                .sum()
        };
        let asked = Dim::ALL.into_iter().filter(|d| self.asked[*d as usize]);
        let least = asked.min_by_key(|dim| (cost(*dim, false), cost(*dim, true)));
        least.unwrap_or(Dim::X)
    }

    fn multiplies(&self, lanes: Dim) -> bool {
        let others = |steps: &[Step; 3]| {
            let mut others = Dim::ALL.into_iter().filter(|d| *d != lanes);
            others.any(|d| steps[d as usize] != Step::Same)
        };
        let inner = || self.all.iter().filter(|access| access.weight > 1);
        let moves = |access: &Accessed| access.steps[lanes as usize] != Step::Same;
        inner().any(|access| moves(access) && !others(&access.steps))
            && inner().any(|access| !moves(access) && others(&access.steps))
    }

    /// Whether some access lies far apart for the lanes, and is none that squares of threads bring side by side.
    fn are_far(&self, lanes: Dim) -> bool {
        self.all.iter().any(|access| {
            let once = access.weight == 1;
            access.is_far(lanes) && !(once && access.is_near_beside(lanes))
        })
    }

    fn transposes(&self, lanes: Dim) -> bool {
        let mut all = self.all.iter();
        all.any(|access| access.is_far(lanes) && access.is_near_beside(lanes))
    }
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    affine: Affine<'a>,
    /// What a loop's carried value is at first.
    first: Vec<Option<Value>>,
    steps: Steps,
}

impl<'a> Walk<'a> {
    fn region(&mut self, region: &'a Region, depth: u32) {
        for inst in &region.insts {
            if let Some((Op::ThreadPositionInGrid, Imm::Dim(dim), _)) = inst.kind.as_op() {
                self.steps.asked[dim as usize] = true;
            }
            if let InstKind::For { init, .. } | InstKind::Loop { init, .. } = &inst.kind {
                for (carried, first) in inst.carried().iter().zip(init) {
                    self.first[carried.0 as usize] = Some(*first);
                }
            }
            for access in inst.kind.accesses() {
                let info = self.module.memory(self.kernel, access.memory);
                if info.is_some_and(|info| info.space == AddressSpace::Device) {
                    let index = access.elements.first();
                    let steps = Dim::ALL.map(|dim| self.step(index, dim, DEPTH));
                    let weight = ITERATIONS_OF_A_LOOP.pow(depth.min(MOST_LOOP_DEPTH));
                    self.steps.all.push(Accessed {
                        steps,
                        weight,
                        loads: access.mode == AccessMode::Read,
                    });
                }
            }
            let inner = depth + u32::from(inst.kind.is_loop());
            for region in inst.kind.regions() {
                self.region(region, inner);
            }
        }
    }

    fn step(&self, value: Value, dim: Dim, depth: u32) -> Step {
        if depth == 0 {
            return Step::Far;
        }
        let form = self.affine.of(value);
        let mut all = Step::Same;
        for (product, factor) in form.sum.terms() {
            let steps = product.symbols().map(|s| self.symbol(s, dim, depth));
            let mut moves = steps.filter(|step| *step != Step::Same);
            let step = match (moves.next(), product.symbols().count()) {
                (None, _) => Step::Same,
                (Some(step), 1) => step.times(*factor),
                (Some(_), _) => Step::Far,
            };
            all = all.and(step);
        }
        all
    }

    fn symbol(&self, symbol: Symbol, dim: Dim, depth: u32) -> Step {
        match symbol {
            Symbol::Thread(own) if own == dim => Step::Known(1),
            Symbol::Thread(_)
            | Symbol::Threadgroup(_)
            | Symbol::Size(_)
            | Symbol::Query(..)
            | Symbol::Iteration(_) => Step::Same,
            Symbol::Power(by, _) => match self.step(by, dim, depth - 1) {
                Step::Same => Step::Same,
                Step::Known(_) | Step::Far => Step::Far,
            },
            Symbol::Value(value) => self.hidden(value, dim, depth - 1),
        }
    }

    /// Of a value that is not a sum: about what it mostly is where it is near a border, and far where it is anything.
    fn hidden(&self, value: Value, dim: Dim, depth: u32) -> Step {
        if let Some(first) = self.first[value.0 as usize] {
            return self.step(first, dim, depth);
        }
        let Some(inst) = self.affine.definition(value) else {
            return Step::Same;
        };
        let of = |v: &Value| self.step(*v, dim, depth);
        let Some((op, _, args)) = inst.kind.as_op() else {
            let accesses = inst.kind.accesses();
            let moves = |first: Value| of(&first) != Step::Same;
            let gathers = accesses.iter().any(|a| moves(a.elements.first()));
            return if gathers { Step::Far } else { Step::Same };
        };
        let integers = || {
            args.iter()
                .filter(|v| self.kernel.ty(**v).is_integer_scalar())
        };
        match op {
            Op::Min | Op::Max | Op::Clamp | Op::Select | Op::Rem | Op::Cast => {
                let found = integers().map(of).find(|step| *step != Step::Same);
                found.unwrap_or(Step::Same)
            }
            // Neighbours mostly share a quotient.
            Op::Div | Op::Shr | Op::ShrExact => match args.first().map(of) {
                Some(Step::Same | Step::Known(1)) | None => Step::Same,
                Some(Step::Known(_) | Step::Far) => Step::Far,
            },
            _mixes => {
                let same = integers().all(|v| of(v) == Step::Same);
                if same { Step::Same } else { Step::Far }
            }
        }
    }
}
