//! Strides of a whole grid: a loop whose iterations lie as many elements apart as the grid has threads is divided among
//! threadgroups by stretches instead.
//!
//! ```text
//! for i = position in grid to n step threads { .. }
//!     =>  for row = start to min(n, start + length) step size { i = row + position in threadgroup; if i < n { .. } }
//! length = ceil(n / threads) * size, start = position of threadgroup * length
//! ```
//!
//! This is for pointwise kernels by grid-stride loops, as they are written for any number of elements by a grid that
//! fills a GPU, and for histograms and scatters by such loops. On a GPU all threads read side by side in each
//! iteration; a core of a CPU has one threadgroup at a time, and would read a row of it in each of as many pages as
//! there are iterations. A stretch is one piece of memory.
//!
//! Which thread makes an iteration then differs, so nothing may tell. What is in the loop depends on the index and on
//! what is the same for all threads along x; nothing is carried, and no thread leaves. What is written in the loop is
//! accessed nowhere else, and by one iteration alone: all indices of an object move by the same multiple of the loop's
//! index, and lie closer together than that. So iterations may be made in any order, by whom they may (R1, R2). Objects
//! that only relaxed atomics of one kind change, whose results nothing uses, take them in any order (T2).
//!
//! The equation holds where `size` divides `threads`, so that all threadgroups are full, and for numbers that leave
//! room for sums; else the loop is as it was written.
//!
//! Deliberately absent: sums and other values that a loop carries, which are each thread's own; loops under
//! conditions; iterations that begin an array, which a copy would begin again.

use std::collections::HashSet;

use invar_ir::ops::Meaning;
use invar_ir::{
    AccessMode, AddressSpace, AtomicOp, Const, Dim, Imm, Inst, InstKind, Kernel, Memory, Module,
    Op, ParamKind, Place, Region, Scalar, Span, Type, Value, ValueInfo, Values, Width,
};

use super::common::{Map, clone_region, count, new_value, push_const, push_inst};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known, Ranges};
use crate::tuning::STRIDE_INSTRUCTIONS;

/// Elements that a loop may go through for this, divided by how far its index moves what is accessed: sums of two such
/// numbers fit 31 bits.
const MOST_ELEMENTS: i64 = 1 << 30;
/// Threads of a row of the grid for which it is done.
const MOST_THREADS: u64 = 1 << 29;

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    if !has_loop(&kernel.body) || !runs_alone(kernel) {
        return;
    }
    let ranges = ranges::analyse(kernel, &Known::default());
    let mut steady = Steady {
        module,
        kernel,
        values: HashSet::new(),
    };
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = param.kind {
            steady.values.insert(value);
        }
    }
    steady.region(&kernel.body);
    let find = Find {
        module,
        kernel,
        affine: affine::analyse(kernel, &ranges, None),
        ranges: &ranges,
        steady: steady.values,
    };
    let mut found = Vec::new();
    find.region(&kernel.body, &mut found);
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    rewrite(&mut body, &mut kernel.values, &found);
    kernel.body = body;
}

fn has_loop(region: &Region) -> bool {
    (region.insts.iter()).any(|inst| matches!(inst.kind, InstKind::For { .. }))
}

/// Whether threads neither wait for others nor leave early.
fn runs_alone(kernel: &Kernel) -> bool {
    // The body's own end is a return.
    let leaves = |inst: &Inst| inst.kind.has_regions() && inst.exits().returns;
    let mut alone = !kernel.body.insts.iter().any(leaves);
    kernel.for_each_inst(&mut |inst| {
        alone &= inst.kind.meets().is_none() && !inst.kind.orders_memory();
    });
    alone
}

/// What is the same for threads that differ in their place along x alone.
struct Steady<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    values: HashSet<Value>,
}

impl Steady<'_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            if self.is_steady(inst) {
                self.values.extend(inst.results.iter().copied());
            }
            if let InstKind::For { body, .. } = &inst.kind
                && has_steady_iterations(inst, &self.values)
            {
                self.values.insert(body.params[0]);
            }
            for inner in inst.kind.regions() {
                self.region(inner);
            }
        }
    }

    fn is_steady(&self, inst: &Inst) -> bool {
        let computes = match &inst.kind {
            InstKind::Op { op, imm, .. } => match op.row().meaning {
                Meaning::Query => return is_same_along_x(*op, *imm),
                Meaning::Eval(_) | Meaning::Arrange => true,
                Meaning::Expand(_) | Meaning::Lanes(..) => false,
            },
            InstKind::Load(place) => self.module.is_read_only(self.kernel, place.memory),
            kind => kind.is_constant() || matches!(kind, InstKind::BufferLength(_)),
        };
        let mut steady = computes;
        inst.kind
            .for_each_use(|v| steady &= self.values.contains(&v));
        steady
    }
}

/// Whether a loop carries nothing, and all threads go through all of it as often.
fn has_steady_iterations(inst: &Inst, steady: &HashSet<Value>) -> bool {
    let InstKind::For {
        lower,
        upper,
        step,
        init,
        body,
    } = &inst.kind
    else {
        return false;
    };
    let bounds = [lower, upper, step];
    init.is_empty() && !body.exits().leaves_loop() && bounds.into_iter().all(|v| steady.contains(v))
}

fn is_same_along_x(op: Op, imm: Imm) -> bool {
    let other_axis = matches!(imm, Imm::Dim(Dim::Y | Dim::Z));
    match op {
        Op::ThreadsPerGrid | Op::ThreadgroupsPerGrid | Op::DispatchThreadsPerThreadgroup => true,
        Op::ThreadPositionInGrid
        | Op::ThreadPositionInThreadgroup
        | Op::ThreadgroupPositionInGrid
        | Op::ThreadsPerThreadgroup => other_axis,
        _other => false,
    }
}

/// A loop to divide.
struct Stride {
    /// Its index.
    index: Value,
    scalar: Scalar,
    /// Elements that it may go through.
    most: i64,
    /// What the number of threads is a multiple of where the step is that number.
    multiple: Option<i64>,
}

struct Find<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    affine: Affine<'a>,
    ranges: &'a Ranges,
    steady: HashSet<Value>,
}

/// Where the elements of an access lie: `factor * index + base + from ..= factor * index + base + to`.
#[derive(PartialEq)]
struct Window {
    factor: i64,
    base: Sum<Product>,
    /// How many elements one number of the index stands for.
    unit: u8,
    from: i128,
    to: i128,
}

impl Find<'_> {
    fn region(&self, region: &Region, found: &mut Vec<Stride>) {
        for inst in &region.insts {
            if let InstKind::For { body, .. } = &inst.kind {
                if let Some(stride) = self.stride(inst) {
                    found.push(stride);
                } else if has_steady_iterations(inst, &self.steady) {
                    self.region(body, found);
                }
            }
        }
    }

    fn stride(&self, inst: &Inst) -> Option<Stride> {
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &inst.kind
        else {
            return None;
        };
        let index = body.params[0];
        let scalar = self.kernel.ty(index).scalar()?;
        let fits = scalar.bits() >= 32 && self.kernel.ty(*step) == self.kernel.ty(index);
        let begins = self.is_position(*lower, scalar);
        if !fits || !begins || !init.is_empty() || !self.steady.contains(upper) {
            return None;
        }
        let multiple = self.threads(*step)?;
        let exits = body.exits();
        let mut own = HashSet::from([index]);
        let leaves = exits.breaks || exits.returns;
        if leaves || count(body) > STRIDE_INSTRUCTIONS || !self.is_open(body, &mut own) {
            return None;
        }
        let factor = self.factor(body, index)?;
        Some(Stride {
            index,
            scalar,
            most: MOST_ELEMENTS / factor,
            multiple,
        })
    }

    /// Whether a value is the thread's position in the grid.
    fn is_position(&self, value: Value, scalar: Scalar) -> bool {
        let form = self.affine.of(value);
        let [thread, group] = [Symbol::Thread(Dim::X), Symbol::Threadgroup(Dim::X)];
        let size = Sum::of(Product::of(Symbol::Size(Dim::X)));
        let by = |symbol| form.sum.coefficient(symbol);
        (form.exact || form.bits >= 32 && scalar.bits() == 32)
            && form.sum.terms().len() == 2
            && form.sum.offset() == 0
            && by(thread).and_then(|by| by.as_constant()) == Some(1)
            && by(group) == Some(size)
    }

    /// Whether a value is the number of threads along x; where that is a multiple of a number, if so.
    fn threads(&self, value: Value) -> Option<Option<i64>> {
        let form = self.affine.of(value);
        let all = Symbol::Query(Op::ThreadsPerGrid, Some(Dim::X));
        let groups = Symbol::Query(Op::ThreadgroupsPerGrid, Some(Dim::X));
        let size = Sum::of(Product::of(Symbol::Size(Dim::X)));
        let [(product, times)] = form.sum.terms() else {
            return None;
        };
        // Of full threadgroups, which is asked where the loop begins.
        let of_groups = form.sum.coefficient(groups) == Some(size);
        if form.sum.offset() != 0 || form.bits < 32 {
            return None;
        }
        if *times == 1 && *product == Product::of(all) || of_groups {
            return Some(None);
        }
        let mut symbols = product.symbols();
        let (Some(Symbol::Value(quotient)), None) = (symbols.next(), symbols.next()) else {
            return None;
        };
        let (op, _, args) = self.affine.definition(quotient)?.kind.as_op()?;
        let divides = op == Op::Div
            && self.affine.of(args[0]).sum == Sum::of(Product::of(all))
            && self.affine.of(args[1]).sum.as_constant() == Some(*times);
        (divides && *times > 0).then_some(Some(*times))
    }

    /// Whether what is in a loop comes from its index and what is the same along x, and nothing but memory tells others
    /// of it.
    fn is_open(&self, region: &Region, own: &mut HashSet<Value>) -> bool {
        own.extend(region.params.iter().copied());
        region.insts.iter().all(|inst| {
            let allowed = match &inst.kind {
                InstKind::Op { op, imm, .. } => match op.row().meaning {
                    Meaning::Query => is_same_along_x(*op, *imm),
                    Meaning::Eval(_) | Meaning::Arrange => true,
                    Meaning::Expand(_) | Meaning::Lanes(..) => false,
                },
                InstKind::BufferLength(_)
                | InstKind::Load(_)
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::If { .. }
                | InstKind::For { .. }
                | InstKind::Loop { .. }
                | InstKind::Yield(_)
                | InstKind::Break(_)
                | InstKind::Continue(_) => true,
                kind => kind.is_constant(),
            };
            let mut known = allowed;
            (inst.kind).for_each_use(|v| known &= own.contains(&v) || self.steady.contains(&v));
            own.extend(inst.results.iter().copied());
            let mut inner = inst.kind.regions().into_iter();
            known && inner.all(|inner| self.is_open(inner, own))
        })
    }

    /// How far apart the iterations' elements of an object are, at most; none if an iteration may meet what another
    /// does.
    fn factor(&self, body: &Region, index: Value) -> Option<i64> {
        let mut accesses = Vec::new();
        collect(body, &mut accesses);
        let mut most = 1;
        let mut seen = HashSet::new();
        for (_, memory, _) in &accesses {
            if !seen.insert(*memory) || self.module.is_read_only(self.kernel, *memory) {
                continue;
            }
            let info = self.module.memory(self.kernel, *memory)?;
            if info.space != AddressSpace::Device {
                return None;
            }
            let own: Vec<&Access<'_>> = accesses.iter().filter(|(_, m, _)| m == memory).collect();
            let (mut everywhere, mut writes) = (0, false);
            self.kernel.for_each_inst(&mut |inst| {
                for access in inst.kind.accesses().iter().filter(|a| a.memory == *memory) {
                    everywhere += 1;
                    writes |= access.mode.writes();
                }
            });
            if writes && everywhere != own.len() {
                return None;
            }
            if writes && !self.commute(&own) {
                most = most.max(self.apart(&own, index)?);
            }
        }
        Some(most)
    }

    /// Whether accesses are atomics of one kind whose order nobody sees.
    fn commute(&self, accesses: &[&Access<'_>]) -> bool {
        let mut used = HashSet::new();
        self.kernel.for_each_inst(&mut |inst| {
            inst.kind.for_each_use(|v| {
                used.insert(v);
            });
        });
        let mut kinds = HashSet::new();
        let each = accesses.iter().all(|(inst, _, mode)| {
            let AccessMode::Atomic { op, .. } = mode else {
                return false;
            };
            kinds.insert(*op);
            let commutes = matches!(
                op,
                AtomicOp::Add
                    | AtomicOp::Sub
                    | AtomicOp::Min
                    | AtomicOp::Max
                    | AtomicOp::And
                    | AtomicOp::Or
                    | AtomicOp::Xor
            );
            commutes && !inst.results.iter().any(|v| used.contains(v))
        });
        each && kinds.len() == 1
    }

    /// How far apart the elements of iterations are, if no two iterations have one.
    fn apart(&self, accesses: &[&Access<'_>], index: Value) -> Option<i64> {
        let mut all: Option<Window> = None;
        for (inst, ..) in accesses {
            let (InstKind::Load(place) | InstKind::Store { place, .. }) = &inst.kind else {
                return None;
            };
            let own = self.window(place, index)?;
            all = Some(match all {
                None => own,
                Some(all) => {
                    let same = (all.factor, all.unit) == (own.factor, own.unit);
                    if !same || all.base != own.base {
                        return None;
                    }
                    Window {
                        from: all.from.min(own.from),
                        to: all.to.max(own.to),
                        ..own
                    }
                }
            });
        }
        let all = all?;
        let factor = all.factor.checked_abs().filter(|n| *n < MOST_ELEMENTS)?;
        (all.to - all.from < i128::from(factor)).then_some(factor)
    }

    fn window(&self, place: &Place, index: Value) -> Option<Window> {
        let form = self.affine.of(place.index);
        if form.bits < 32 {
            return None;
        }
        let factor = form
            .sum
            .coefficient(Symbol::Thread(Dim::X))?
            .as_constant()?;
        let rest = form
            .sum
            .plus(&self.affine.of(index).sum, factor.checked_neg()?);
        let (unit, more) = match place.width {
            Width::One => (1, 0),
            Width::Run(n) => (1, n - 1),
            Width::Group(n) => (n, 0),
        };
        let mut window = Window {
            factor,
            base: Sum::constant(0),
            unit,
            from: rest.offset().into(),
            to: i128::from(rest.offset()) + i128::from(more),
        };
        for (product, times) in rest.terms() {
            if product.symbols().all(|symbol| self.is_steady(symbol)) {
                window.base = window.base.plus(&Sum::of(*product), *times);
                continue;
            }
            let mut symbols = product.symbols();
            let (Some(symbol), None) = (symbols.next(), symbols.next()) else {
                return None;
            };
            let (least, most) = self.range(symbol)?;
            let ends = [least, most].map(|end| end.saturating_mul(i128::from(*times)));
            window.from = window.from.saturating_add(ends[0].min(ends[1]));
            window.to = window.to.saturating_add(ends[0].max(ends[1]));
        }
        (factor != 0).then_some(window)
    }

    fn is_steady(&self, symbol: Symbol) -> bool {
        match symbol {
            Symbol::Thread(dim) | Symbol::Threadgroup(dim) => dim != Dim::X,
            Symbol::Size(_) => true,
            Symbol::Query(op, dim) => is_same_along_x(op, dim.map_or(Imm::None, Imm::Dim)),
            Symbol::Iteration(value) | Symbol::Power(value, _) | Symbol::Value(value) => {
                self.steady.contains(&value)
            }
        }
    }

    /// The range of what differs from iteration to iteration.
    fn range(&self, symbol: Symbol) -> Option<(i128, i128)> {
        match symbol {
            Symbol::Value(value) => self.ranges.of(value),
            Symbol::Iteration(index) => {
                let mut lower = None;
                self.kernel.for_each_inst(&mut |inst| {
                    if let InstKind::For {
                        lower: first,
                        step,
                        body,
                        ..
                    } = &inst.kind
                        && body.params[0] == index
                        && self.affine.of(*step).sum.as_constant() == Some(1)
                    {
                        lower = self.affine.of(*first).sum.as_constant();
                    }
                });
                let (least, most) = self.ranges.of(index)?;
                let lower = i128::from(lower?);
                (least >= lower).then_some((0, most - lower))
            }
            Symbol::Thread(_)
            | Symbol::Threadgroup(_)
            | Symbol::Size(_)
            | Symbol::Query(..)
            | Symbol::Power(..) => None,
        }
    }
}

/// An access of an instruction.
type Access<'a> = (&'a Inst, Memory, AccessMode);

fn collect<'a>(region: &'a Region, out: &mut Vec<Access<'a>>) {
    for inst in &region.insts {
        let accesses = inst.kind.accesses();
        out.extend(accesses.iter().map(|a| (inst, a.memory, a.mode)));
        for inner in inst.kind.regions() {
            collect(inner, out);
        }
    }
}

// ---- doing it ----

fn rewrite(region: &mut Region, values: &mut Vec<ValueInfo>, strides: &[Stride]) {
    for mut inst in std::mem::take(&mut region.insts) {
        let found = match &inst.kind {
            InstKind::For { body, .. } => strides.iter().find(|s| s.index == body.params[0]),
            _other => None,
        };
        let Some(stride) = found else {
            for inner in inst.kind.regions_mut() {
                rewrite(inner, values, strides);
            }
            region.insts.push(inst);
            continue;
        };
        let mut build = Build {
            scalar: stride.scalar,
            values,
            out: &mut region.insts,
            span: inst.span,
        };
        let (condition, then) = build.by_stretches(stride, &inst);
        let span = inst.span;
        let otherwise = Region {
            params: Default::default(),
            insts: vec![inst, ends(span)],
        };
        region.insts.push(Inst {
            kind: InstKind::If {
                condition,
                then,
                otherwise,
            },
            results: Default::default(),
            span,
        });
    }
}

/// The end of a region that gives nothing.
fn ends(span: Span) -> Inst {
    Inst {
        kind: InstKind::Yield(Default::default()),
        results: Default::default(),
        span,
    }
}

/// Instructions at the end of a list.
struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
    /// Of the loop's index.
    scalar: Scalar,
    span: Span,
}

impl Build<'_> {
    /// Where a loop may be divided, and that loop then.
    fn by_stretches(&mut self, stride: &Stride, inst: &Inst) -> (Value, Region) {
        let InstKind::For { upper, body, .. } = &inst.kind else {
            unreachable!("it is a loop");
        };
        let (span, scalar) = (self.span, self.scalar);
        let threads = self.query(Op::ThreadsPerGrid);
        let size = self.query(Op::DispatchThreadsPerThreadgroup);
        let condition = self.holds(stride, *upper, threads, size);
        let mut insts = Vec::new();
        let mut then = Build {
            values: self.values,
            out: &mut insts,
            scalar,
            span,
        };
        let [start, end, step] = then.stretch(*upper, threads, size);
        let row = new_value(then.values, Type::Scalar(scalar));
        let mut iterations = Vec::new();
        let mut iteration = Build {
            values: then.values,
            out: &mut iterations,
            scalar,
            span,
        };
        let place = iteration.query(Op::ThreadPositionInThreadgroup);
        let place = iteration.cast(place, Scalar::U32, scalar);
        let index = iteration.op(Op::Add, Imm::None, &[row, place], scalar);
        let inside = iteration.op(Op::Lt, Imm::None, &[index, *upper], Scalar::Bool);
        let mut map = Map::from([(stride.index, index)]);
        let own = clone_region(iteration.values, body, &mut map);
        iterations.push(Inst {
            kind: InstKind::If {
                condition: inside,
                then: own,
                otherwise: Region {
                    params: Default::default(),
                    insts: vec![ends(span)],
                },
            },
            results: Default::default(),
            span,
        });
        iterations.push(ends(span));
        insts.push(Inst {
            kind: InstKind::For {
                lower: start,
                upper: end,
                step,
                init: Default::default(),
                body: Region {
                    params: [row].into_iter().collect(),
                    insts: iterations,
                },
            },
            results: Default::default(),
            span,
        });
        insts.push(ends(span));
        let then = Region {
            params: Default::default(),
            insts,
        };
        (condition, then)
    }

    /// Whether all threadgroups are full, and numbers leave room for sums.
    fn holds(&mut self, stride: &Stride, upper: Value, threads: Value, size: Value) -> Value {
        let narrow = Scalar::U32;
        let most_threads = self.constant(narrow, MOST_THREADS);
        let few = self.op(Op::Le, Imm::None, &[threads, most_threads], Scalar::Bool);
        let unsigned = match self.scalar.bits() {
            64 => Scalar::U64,
            _narrow => narrow,
        };
        // Negative numbers are large ones.
        let elements = self.cast(upper, self.scalar, unsigned);
        let most = self.constant(unsigned, stride.most as u64);
        let short = self.op(Op::Le, Imm::None, &[elements, most], Scalar::Bool);
        let mut holds = self.op(Op::And, Imm::None, &[few, short], Scalar::Bool);
        let multiple = stride.multiple.map(|n| self.constant(narrow, n as u64));
        for by in [Some(size), multiple].into_iter().flatten() {
            let rest = self.op(Op::Rem, Imm::None, &[threads, by], narrow);
            let zero = self.constant(narrow, 0);
            let divides = self.op(Op::Eq, Imm::None, &[rest, zero], Scalar::Bool);
            holds = self.op(Op::And, Imm::None, &[holds, divides], Scalar::Bool);
        }
        holds
    }

    /// Where the threadgroup's stretch begins and ends, and how long its rows are.
    fn stretch(&mut self, upper: Value, threads: Value, size: Value) -> [Value; 3] {
        let scalar = self.scalar;
        let group = self.query(Op::ThreadgroupPositionInGrid);
        let [threads, size, group] =
            [threads, size, group].map(|v| self.cast(v, Scalar::U32, scalar));
        let [zero, one] = [0, 1].map(|n| self.constant(scalar, n));
        let whole = self.op(Op::Div, Imm::None, &[upper, threads], scalar);
        let left = self.op(Op::Rem, Imm::None, &[upper, threads], scalar);
        let is_whole = self.op(Op::Eq, Imm::None, &[left, zero], Scalar::Bool);
        let more = self.op(Op::Select, Imm::None, &[one, zero, is_whole], scalar);
        let iterations = self.op(Op::Add, Imm::None, &[whole, more], scalar);
        let length = self.op(Op::Mul, Imm::None, &[iterations, size], scalar);
        let start = self.op(Op::Mul, Imm::None, &[group, length], scalar);
        let end = self.op(Op::Add, Imm::None, &[start, length], scalar);
        let end = self.op(Op::Min, Imm::None, &[end, upper], scalar);
        [start, end, size]
    }

    fn query(&mut self, op: Op) -> Value {
        self.op(op, Imm::Dim(Dim::X), &[], Scalar::U32)
    }

    fn cast(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        if from == to {
            return value;
        }
        self.op(Op::Cast, Imm::Type(Type::Scalar(to)), &[value], to)
    }

    fn constant(&mut self, scalar: Scalar, bits: u64) -> Value {
        push_const(self.values, self.out, Const { scalar, bits }, self.span)
    }

    fn op(&mut self, op: Op, imm: Imm, args: &[Value], scalar: Scalar) -> Value {
        let args = Values::from_slice(args);
        let kind = InstKind::Op { op, imm, args };
        push_inst(self.values, self.out, kind, Type::Scalar(scalar), self.span)
    }
}
