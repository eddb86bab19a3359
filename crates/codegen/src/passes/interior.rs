//! Interiors: a kernel that wraps or clamps an index at the borders of what it reads is made twice, once for the
//! threads for which that changes nothing.
//!
//! ```text
//! body   ->   if first <= x && x < end { body, with its operand in the place of each `min` } else { body }
//! ```
//!
//! This is for stencils, convolutions, filters and automata: whatever reads around a thread's own place and keeps
//! inside by `min` and `max`, by a remainder or by a `select`, in loops too, or asks of each neighbour whether it is
//! there. Such an index is not a sum, and hides that neighbours read neighbours; nearly all threads need none of it. What
//! changes an index along another axis than the lanes' is the same for them, and stays.
//!
//! A *border* is an operation on `x + r`, where `x` is the thread's position in the grid along the lanes and `r` is
//! the same for all of a dispatch, or grows with the iterations of loops whose bounds are. The mathematical `x + r`
//! must lie between two limits, which lie in the type: then nothing wrapped (A1), and the operation gives
//!
//! ```text
//! min, max                    x + r              up to the limit; from it on
//! rem n                       x + r              from 0 to n - 1
//!                             x + r - n          from n to 2*n - 1, where r holds n
//! select(.., x + r < limit)   one side           below the limit; or from it on, where it is a small number
//! if x + r < limit            the side that accesses memory, as far as that is the one
//! select(.., x + r < limit)   what was loaded, where the other side was not
//! ```
//!
//! So `x` lies between limits that are computed once, in 64 bits that no sum of a few 32-bit numbers leaves. They
//! bound `x` itself: that tells a target what a whole row of threads does, and where the indices lie.
//!
//! Every thread makes one of both, so this is right wherever the limits are. It is done where an index of an access
//! becomes a sum, or a condition on the place of a neighbour or on what of a load counts goes; not where a remainder is one of the place itself (`i % n`), nor for limits in the midst of things
//! (`min(x, 7)`), which say nothing of borders.
//!
//! Deliberately absent: kernels whose threads meet, or leave early; indices of 64 bits that are not constant.

use std::collections::{BTreeMap, HashMap, HashSet};

use invar_ir::{
    Const, Dim, Elements, Exit, Imm, Inst, InstKind, Kernel, Op, ParamKind, Region, Scalar, Span,
    Step, Type, Value, ValueInfo, Values,
};

use super::common::{
    Map, clone_region, constants, count, definitions, integer, new_value, opposite, push_const,
    push_inst, substitute_region,
};
use super::induction::is_steady;
use crate::analysis::affine::{self, Affine, Form, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known};
use crate::tuning::{INTERIOR_INSTRUCTIONS, INTERIOR_ROW};

const BOOL: Type = Type::Scalar(Scalar::Bool);
/// Factors of a sum, and how many terms it has: with numbers of 32 bits, far from 64.
const MOST_FACTOR: i64 = 1 << 20;
const MOST_TERMS: usize = 8;

pub(super) fn run(kernel: &mut Kernel) {
    if count(&kernel.body) > INTERIOR_INSTRUCTIONS || !runs_alone(kernel) {
        return;
    }
    let mut make = Make {
        values: kernel.values.clone(),
        front: Vec::new(),
        moved: Map::new(),
        definitions: definitions(kernel)
            .into_iter()
            .map(|inst| inst.cloned())
            .collect(),
        params: params(kernel),
    };
    if let Some(body) = make.body(kernel) {
        kernel.body = body;
        kernel.values = make.values;
    }
}

/// Whether its threads meet no others. What begins an array stays where it is: a copy would be another one.
pub(super) fn runs_alone(kernel: &Kernel) -> bool {
    let mut alone = true;
    kernel.for_each_inst(&mut |inst| {
        alone &= inst.kind.meets().is_none() && !matches!(inst.kind, InstKind::Alloc(_));
    });
    alone
}

/// What a limit is the sum of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Term {
    /// A number that is the same for all of a dispatch.
    Steady(Value),
    /// How far the index of this loop grows: `upper - 1 - lower`, or 0 if that is less.
    Extent(Value),
}

/// `x + r`, or that of another axis: the least and the greatest `r` of all iterations.
struct Line {
    dim: Dim,
    least: Sum<Term>,
    most: Sum<Term>,
}

impl Limits {
    /// Between others too. Of limits that differ by a constant only the narrower stays.
    fn and(&mut self, other: &Limits) {
        let narrow = |all: &mut Vec<Sum<Term>>, sum: &Sum<Term>, pick: fn(i64, i64) -> i64| {
            let terms = |sum: &Sum<Term>| sum.clone().shifted(-sum.offset());
            match all.iter_mut().find(|own| terms(own) == terms(sum)) {
                Some(own) => *own = terms(sum).shifted(pick(own.offset(), sum.offset())),
                None => all.push(sum.clone()),
            }
        };
        for sum in &other.from {
            narrow(&mut self.from, sum, i64::max);
        }
        for sum in &other.to {
            narrow(&mut self.to, sum, i64::min);
        }
    }
}

impl Line {
    /// Where `x + r` lies between these.
    fn limits(&self, from: Vec<Sum<Term>>, to: Vec<Sum<Term>>) -> Limits {
        let less = |all: Vec<Sum<Term>>, by: &Sum<Term>| -> Vec<Sum<Term>> {
            all.into_iter().map(|sum| sum.plus(by, -1)).collect()
        };
        Limits {
            from: less(from, &self.least),
            to: less(to, &self.most),
        }
    }

    /// It is the place itself.
    fn is_place(&self) -> bool {
        let zero = Sum::constant(0);
        self.least == zero && self.most == zero
    }
}

/// What stands for a border's result in the interior.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    Same(Value),
    /// The first less the second.
    Less(Value, Value),
}

/// Between which numbers `x` lies.
#[derive(Clone, Debug, Default)]
struct Limits {
    /// It is no less than any of these.
    from: Vec<Sum<Term>>,
    /// It is no more than any of these.
    to: Vec<Sum<Term>>,
}

/// What a comparison of a place says between limits.
struct Comparison {
    holds: bool,
    dim: Dim,
    limits: Limits,
    /// It is about a neighbour.
    is_beside: bool,
}

/// One border.
struct Border {
    becomes: Becomes,
    limits: Limits,
}

/// What is found in a kernel.
struct Find {
    borders: BTreeMap<Value, Border>,
    /// Comparisons that may be decided in an interior.
    comparisons: HashMap<Value, Comparison>,
    /// Those that decide whether a neighbour is accessed, and what they say.
    decided: BTreeMap<Value, bool>,
    /// The lower and the upper bound of loops, by their index.
    loops: HashMap<Value, (Value, Value)>,
}

/// What borders are told by.
struct Look<'a> {
    kernel: &'a Kernel,
    constants: HashMap<Value, Const>,
    steady: HashSet<Value>,
    /// Loops by their index: lower bound, upper bound, step.
    loops: HashMap<Value, [Value; 3]>,
}

impl Find {
    /// The borders that hide what accesses of `inner` read, and the conditions that they stand under; `None` if there
    /// are none.
    fn of(kernel: &Kernel, inner: &Region) -> Option<Find> {
        let look = Look::of(kernel);
        let ranges = ranges::analyse_unguarded(kernel, &Known::default());
        let plain = affine::analyse(kernel, &ranges, None);
        let needed = needed(kernel);
        let mut borders = BTreeMap::new();
        let inside = affine::analyse_assuming(kernel, &ranges, None, &mut |affine, inst| {
            let result = inst.results[0];
            if !needed.contains(&result) {
                return None;
            }
            let (border, form) = look.border(affine, inst)?;
            borders.insert(result, border);
            Some(form)
        });
        let helps = indices(kernel).into_iter().any(|index| {
            let is_row = |affine| look.is_row(affine, index);
            !is_row(&plain) && is_row(&inside)
        });
        let mut comparisons = HashMap::new();
        kernel.for_each_inst(&mut |inst| {
            if let [result] = inst.results[..]
                && let Some((holds, line, from, to)) = look.comparison(&inside, result)
            {
                let comparison = Comparison {
                    holds,
                    dim: line.dim,
                    limits: line.limits(vec![from], vec![to]),
                    is_beside: !line.is_place(),
                };
                comparisons.insert(result, comparison);
            }
        });
        let mut decisions = Decisions {
            affine: &inside,
            comparisons: &comparisons,
            reached: BTreeMap::new(),
            taken: BTreeMap::new(),
        };
        decisions.region(inner);
        let Decisions {
            reached: mut decided,
            taken,
            ..
        } = decisions;
        // What is asked of a place itself must be of the same border.
        let ends = |value: &Value| {
            let Comparison { dim, limits, .. } = &comparisons[value];
            let terms = |sum: &Sum<Term>| (*dim, sum.clone().shifted(-sum.offset()));
            let all = limits.from.iter().chain(&limits.to);
            all.map(terms).collect::<Vec<_>>()
        };
        let beside = decided.keys().filter(|v| comparisons[v].is_beside);
        let known: Vec<_> = beside.flat_map(ends).collect();
        let guarded = !known.is_empty() || !taken.is_empty();
        decided.retain(|value, _| ends(value).iter().all(|end| known.contains(end)));
        decided.extend(taken);
        let loops = look
            .loops
            .iter()
            .map(|(i, [lower, upper, _])| (*i, (*lower, *upper)));
        let loops = loops.collect();
        (helps || guarded).then_some(Find {
            borders,
            comparisons,
            decided,
            loops,
        })
    }
}

/// Finds the comparisons that an interior decides, and what they say there.
struct Decisions<'a, 'k> {
    affine: &'a Affine<'k>,
    comparisons: &'a HashMap<Value, Comparison>,
    /// Those by which threads come to accesses.
    reached: BTreeMap<Value, bool>,
    /// Those by which what was loaded is taken.
    taken: BTreeMap<Value, bool>,
}

impl Decisions<'_, '_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            if let InstKind::If {
                condition,
                then,
                otherwise,
            } = &inst.kind
                && (accesses(then) || accesses(otherwise))
            {
                let all = self.conjuncts(*condition, accesses(then));
                self.reached.extend(all);
            }
            if let Some((Op::Select, _, [on_false, on_true, condition])) = inst.kind.as_op() {
                let holds = self.is_loaded(*on_true);
                if holds != self.is_loaded(*on_false) {
                    let all = self.conjuncts(*condition, holds);
                    self.taken.extend(all);
                }
            }
            for inner in inst.kind.regions() {
                self.region(inner);
            }
        }
    }

    /// Whether it is loaded, or a component of what is.
    fn is_loaded(&self, value: Value) -> bool {
        let Some(inst) = self.affine.definition(value) else {
            return false;
        };
        match inst.kind.as_op() {
            Some((Op::Extract, _, args)) => self.is_loaded(args[0]),
            _no_component => matches!(inst.kind, InstKind::Load(_)),
        }
    }

    /// The comparisons of which a condition is made, as far as all of them are as they are in the interior.
    fn conjuncts(&self, condition: Value, holds: bool) -> Vec<(Value, bool)> {
        let mut found = Vec::new();
        let mut open = vec![(condition, holds)];
        let mut seen = HashSet::new();
        while let Some((value, holds)) = open.pop() {
            if !seen.insert((value, holds)) {
                continue;
            }
            let inst = self.affine.definition(value);
            match inst.and_then(|inst| inst.kind.as_op()) {
                Some((Op::And, _, args)) if holds => {
                    open.extend(args.iter().map(|arg| (*arg, holds)));
                }
                Some((Op::Or, _, args)) if !holds => {
                    open.extend(args.iter().map(|arg| (*arg, holds)));
                }
                Some((Op::Not, _, args)) => open.push((args[0], !holds)),
                _other => {
                    let known = self.comparisons.get(&value);
                    if known.is_some_and(|comparison| comparison.holds == holds) {
                        found.push((value, holds));
                    }
                }
            }
        }
        found
    }
}

/// Whether a region accesses memory.
fn accesses(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        let mut inner = inst.kind.regions().into_iter();
        !inst.kind.accesses().is_empty() || inner.any(accesses)
    })
}

/// The numbers that a kernel is given.
pub(super) fn params(kernel: &Kernel) -> HashSet<Value> {
    let scalars = kernel.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Scalar { value } => Some(*value),
        _memory => None,
    });
    scalars.collect()
}

/// The indices of all accesses, also those on the way to a field.
fn indices(kernel: &Kernel) -> Vec<Value> {
    let mut all = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        for access in inst.kind.accesses() {
            all.push(access.elements.first());
            if let Elements::Place(place) = access.elements {
                all.extend(place.path.iter().filter_map(|step| match step {
                    Step::Index(index) => Some(*index),
                    Step::Field(_) => None,
                }));
            }
        }
    });
    all
}

/// The values from which operations compute indices.
pub(super) fn needed(kernel: &Kernel) -> HashSet<Value> {
    let definitions = definitions(kernel);
    let mut needed: HashSet<Value> = HashSet::new();
    let mut open = indices(kernel);
    while let Some(value) = open.pop() {
        if needed.insert(value)
            && let Some((_, _, args)) = definitions[value.0 as usize].and_then(|i| i.kind.as_op())
        {
            open.extend(args);
        }
    }
    needed
}

impl<'a> Look<'a> {
    fn of(kernel: &'a Kernel) -> Look<'a> {
        let mut steady = params(kernel);
        let mut loops = HashMap::new();
        kernel.for_each_inst(&mut |inst| {
            if is_steady(&inst.kind, &steady) {
                steady.extend(inst.results.iter().copied());
            }
            if let InstKind::For {
                lower,
                upper,
                step,
                body,
                ..
            } = &inst.kind
            {
                loops.insert(body.params[0], [*lower, *upper, *step]);
            }
        });
        Look {
            kernel,
            constants: constants(kernel),
            steady,
            loops,
        }
    }

    /// Whether the index of a thread's neighbour along the lanes is the same, or one more.
    fn is_row(&self, affine: &Affine<'_>, index: Value) -> bool {
        let sum = affine.of(index).sum;
        let x = Product::of(Symbol::Thread(Dim::X));
        let own = sum.terms().iter().find(|(product, _)| *product == x);
        let step = own.map_or(0, |(_, factor)| *factor);
        if !matches!(step, 0 | 1) {
            return false;
        }
        let rest = sum.plus(&Sum::of(x), -step);
        let mut same = |symbol| match symbol {
            Symbol::Thread(dim) => dim != Dim::X,
            Symbol::Value(value) => self.steady.contains(&value),
            Symbol::Threadgroup(_)
            | Symbol::Size(_)
            | Symbol::Query(..)
            | Symbol::Iteration(_)
            | Symbol::Power(..) => true,
        };
        affine.depends_only_on(&rest, &mut same)
    }

    fn integer(&self, value: Value) -> Option<i64> {
        integer(*self.constants.get(&value)?).and_then(|n| i64::try_from(n).ok())
    }

    /// The integer's type, if sums of a few of it stay far from 64 bits.
    fn narrow(&self, value: Value) -> Option<Scalar> {
        match self.kernel.ty(value) {
            Type::Scalar(scalar) if scalar.is_integer() && scalar.bits() <= 32 => Some(scalar),
            _wide => None,
        }
    }

    /// A number that is the same for all of a dispatch.
    fn steady(&self, value: Value) -> Option<Sum<Term>> {
        if let Some(number) = self.integer(value) {
            let small = number.unsigned_abs() < 1 << 32;
            return small.then(|| Sum::constant(number));
        }
        self.narrow(value)?;
        let steady = self.steady.contains(&value);
        steady.then(|| Sum::of(Term::Steady(value)))
    }

    /// A value as `x + r`; none if it is not, or differs from that where nothing wraps.
    fn line(&self, affine: &Affine<'_>, value: Value) -> Option<Line> {
        let scalar = self.narrow(value)?;
        let form = affine.of(value);
        if !form.exact && form.bits < scalar.bits() {
            return None;
        }
        let (mut threads, mut firsts) = ([0; 3], [0; 3]);
        let offset = form.sum.offset();
        let mut least = Sum::constant(offset);
        let mut most = least.clone();
        if offset.unsigned_abs() > 1 << 33 || form.sum.terms().len() > MOST_TERMS {
            return None;
        }
        for (product, factor) in form.sum.terms() {
            let symbols: Vec<Symbol> = product.symbols().collect();
            if factor.abs() > MOST_FACTOR {
                return None;
            }
            match symbols[..] {
                [Symbol::Thread(dim)] => threads[dim as usize] = *factor,
                [Symbol::Threadgroup(dim), Symbol::Size(of)] if dim == of => {
                    firsts[dim as usize] = *factor;
                }
                [Symbol::Value(value)] => {
                    let own = self.steady(value)?;
                    least = least.plus(&own, *factor);
                    most = most.plus(&own, *factor);
                }
                [Symbol::Iteration(index)] => {
                    let [lower, upper, step] = *self.loops.get(&index)?;
                    let step = self.integer(step).filter(|step| *step > 0)?;
                    let by = (factor % step == 0).then_some(factor / step)?;
                    let end = if by < 0 { &mut least } else { &mut most };
                    let extent = match (self.integer(lower), self.integer(upper)) {
                        (Some(lower), Some(upper)) => {
                            let extent = upper.checked_sub(1)?.checked_sub(lower)?.max(0);
                            Sum::constant(Some(extent).filter(|e| *e < 1 << 32)?)
                        }
                        _varies => {
                            let _both = (self.steady(lower)?, self.steady(upper)?);
                            Sum::of(Term::Extent(index))
                        }
                    };
                    *end = std::mem::replace(end, Sum::constant(0)).plus(&extent, by);
                }
                [..] => return None,
            }
        }
        let mut dims = Dim::ALL.into_iter();
        let dim = dims.find(|dim| threads[*dim as usize] != 0)?;
        let mut one = [0; 3];
        one[dim as usize] = 1;
        let grows = threads == one && firsts == one;
        grows.then_some(Line { dim, least, most })
    }

    /// As [`Look::line`], along the lanes.
    fn row(&self, affine: &Affine<'_>, value: Value) -> Option<Line> {
        self.line(affine, value).filter(|line| line.dim == Dim::X)
    }

    /// What an operation is in the interior, if it is a border, and what it is the sum of there.
    fn border(&self, affine: &Affine<'_>, inst: &Inst) -> Option<(Border, Form)> {
        let (op, _, args) = inst.kind.as_op()?;
        let (lowest, highest) = type_limits(self.narrow(inst.results[0])?);
        let lies = |line: &Line, becomes, from, to| Border {
            becomes,
            limits: line.limits(from, to),
        };
        let number = Sum::constant;
        match (op, args) {
            (Op::Min | Op::Max, [a, b]) => {
                let (value, limit) = if self.steady(*b).is_some() {
                    (a, b)
                } else {
                    (b, a)
                };
                let line = self.row(affine, *value)?;
                let limit = self.steady(*limit)?;
                let (from, to) = if op == Op::Min {
                    if limit.as_constant().is_some_and(|n| n < INTERIOR_ROW) {
                        return None;
                    }
                    (number(lowest), limit)
                } else {
                    if limit.as_constant().is_some_and(|n| n > INTERIOR_ROW) {
                        return None;
                    }
                    (limit, number(highest))
                };
                let border = lies(&line, Becomes::Same(*value), vec![from], vec![to]);
                Some((border, affine.of(*value)))
            }
            (Op::Rem, [value, by]) => {
                let line = self.row(affine, *value)?;
                let size = self.steady(*by)?;
                let times = times(&line.least, &size)?;
                let small = size.as_constant().is_some_and(|n| n < INTERIOR_ROW);
                if small || line.is_place() || !matches!(times, 0 | 1) {
                    return None;
                }
                let first = Sum::constant(0).plus(&size, times);
                let last = first.clone().plus(&size, 1).shifted(-1);
                let becomes = match times {
                    0 => Becomes::Same(*value),
                    _once => Becomes::Less(*value, *by),
                };
                let border = lies(&line, becomes, vec![first], vec![last, number(highest)]);
                let mut form = affine.of(*value);
                form.sum = form.sum.plus(&affine.of(*by).sum, -times);
                form.exact = false;
                form.bits = form.bits.min(self.narrow(*value)?.bits());
                Some((border, form))
            }
            (Op::Select, [on_false, on_true, condition]) => {
                let (holds, line, from, to) = self.comparison(affine, *condition)?;
                if line.dim != Dim::X {
                    return None;
                }
                let side = if holds { *on_true } else { *on_false };
                self.row(affine, side)?;
                let border = lies(&line, Becomes::Same(side), vec![from], vec![to]);
                Some((border, affine.of(side)))
            }
            _no_border => None,
        }
    }

    /// What a comparison of `x + r` with a limit says in the interior, and between which limits that is.
    fn comparison(
        &self,
        affine: &Affine<'_>,
        condition: Value,
    ) -> Option<(bool, Line, Sum<Term>, Sum<Term>)> {
        let inst = affine.definition(condition)?;
        let (op, _, args) = inst.kind.as_op()?;
        let [a, b] = *args else {
            return None;
        };
        let (op, value, limit) = match (op, self.steady(b)) {
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, Some(limit)) => (op, a, limit),
            (op, None) => {
                let turned = match op {
                    Op::Lt => Op::Gt,
                    Op::Le => Op::Ge,
                    Op::Gt => Op::Lt,
                    Op::Ge => Op::Le,
                    Op::Eq | Op::Ne => op,
                    _no_comparison => return None,
                };
                (turned, b, self.steady(a)?)
            }
            _no_comparison => return None,
        };
        let line = self.line(affine, value)?;
        let (lowest, highest) = type_limits(self.narrow(value)?);
        let place = limit.clone().plus(&line.least, -1);
        let near = place.offset().abs() <= INTERIOR_ROW
            && (place.terms().iter()).all(|(term, _)| matches!(term, Term::Extent(_)));
        let (one, none) = (limit.clone(), Sum::constant);
        Some(if near {
            // From the limit on.
            let (holds, from) = match op {
                Op::Lt => (false, one),
                Op::Le | Op::Eq => (false, one.shifted(1)),
                Op::Ge => (true, one),
                _gt_or_ne => (true, one.shifted(1)),
            };
            (holds, line, from, none(highest))
        } else {
            // Below it.
            let (holds, to) = match op {
                Op::Lt | Op::Ne => (true, one.shifted(-1)),
                Op::Le => (true, one),
                Op::Gt => (false, one),
                _ge_or_eq => (false, one.shifted(-1)),
            };
            (holds, line, none(lowest), to)
        })
    }
}

/// The least and the greatest number of a type of at most 32 bits.
fn type_limits(scalar: Scalar) -> (i64, i64) {
    if scalar.is_signed_integer() {
        let half = 1i64 << (scalar.bits() - 1);
        (-half, half - 1)
    } else {
        (0, (1i64 << scalar.bits()) - 1)
    }
}

/// How many times another sum is in one.
fn times(sum: &Sum<Term>, size: &Sum<Term>) -> Option<i64> {
    if let Some(size) = size.as_constant() {
        // The rest is near 0, on either side.
        let middle = sum.offset().checked_add(size / 2)?;
        return (size > 0).then(|| middle.div_euclid(size));
    }
    let (term, one) = size.terms().first()?;
    let own = sum.terms().iter().find(|(own, _)| own == term);
    Some(own.map_or(0, |(_, count)| count / one))
}

/// Makes the kernel's new body.
struct Make {
    values: Vec<ValueInfo>,
    /// What stands in front of both bodies.
    front: Vec<Inst>,
    /// The values there, by those that they are computed like.
    moved: Map,
    definitions: Vec<Option<Inst>>,
    /// What the kernel is given.
    params: HashSet<Value>,
}

impl Make {
    fn body(&mut self, kernel: &Kernel) -> Option<Region> {
        let body = &kernel.body;
        let (end, insts) = body.insts.split_last()?;
        let (inner, guards) = self.inner(insts);
        let inner = Region {
            insts: inner,
            ..Region::default()
        };
        if inner.exits().any() || end.kind.exit() != Some(Exit::Return) {
            return None;
        }
        let found = &Find::of(kernel, &inner)?;
        let mut limits: [Limits; 3] = Default::default();
        for border in found.borders.values() {
            limits[Dim::X as usize].and(&border.limits);
        }
        for value in found.decided.keys() {
            let comparison = &found.comparisons[value];
            limits[comparison.dim as usize].and(&comparison.limits);
        }
        let mut others = Vec::new();
        for (guard, holds) in &guards {
            self.conjuncts((*guard, *holds), &mut limits, found, &mut others)?;
        }
        let mut conditions = Vec::new();
        for (dim, limits) in Dim::ALL.into_iter().zip(limits) {
            if limits.from.is_empty() {
                continue;
            }
            let place = self.op(Op::ThreadPositionInGrid, Imm::Dim(dim), Type::U32, &[]);
            let first = self.limit(Op::Max, &limits.from, 0, found)?;
            let beyond: Vec<_> = limits.to.into_iter().map(|last| last.shifted(1)).collect();
            let until = self.limit(Op::Min, &beyond, u32::MAX.into(), found)?;
            conditions.push(self.op(Op::Ge, Imm::None, BOOL, &[place, first]));
            conditions.push(self.op(Op::Lt, Imm::None, BOOL, &[place, until]));
        }
        conditions.extend(others);
        let condition = self.all(&conditions)?;
        let interior = self.interior(&inner, found);
        let border = match guards.is_empty() {
            true => inner.insts,
            false => {
                let mut all = Vec::new();
                for (guard, holds) in guards {
                    let guard = self.in_front(guard)?;
                    all.push(match holds {
                        true => guard,
                        false => self.op(Op::Not, Imm::None, BOOL, &[guard]),
                    });
                }
                let guard = self.all(&all)?;
                vec![choice(guard, inner.insts, Vec::new(), end.span)]
            }
        };
        let mut out = std::mem::take(&mut self.front);
        out.push(choice(condition, interior, border, end.span));
        out.push(end.clone());
        Some(Region {
            insts: out,
            ..body.clone()
        })
    }

    fn all(&mut self, conditions: &[Value]) -> Option<Value> {
        let (first, rest) = conditions.split_first()?;
        let mut all = *first;
        for condition in rest {
            all = self.op(Op::And, Imm::None, BOOL, &[all, *condition]);
        }
        Some(all)
    }

    /// What a condition is made of that must all hold, in front of both bodies, but for what is between limits.
    fn conjuncts(
        &mut self,
        (condition, holds): (Value, bool),
        limits: &mut [Limits; 3],
        found: &Find,
        out: &mut Vec<Value>,
    ) -> Option<()> {
        if let Some(own) = found.comparisons.get(&condition)
            && own.holds == holds
        {
            limits[own.dim as usize].and(&own.limits);
            return Some(());
        }
        let definition = self.definitions[condition.0 as usize].clone();
        match definition.as_ref().and_then(|inst| inst.kind.as_op()) {
            Some((Op::And, _, args)) if holds => {
                for arg in args {
                    self.conjuncts((*arg, holds), limits, found, out)?;
                }
            }
            Some((Op::Or, _, args)) if !holds => {
                for arg in args {
                    self.conjuncts((*arg, holds), limits, found, out)?;
                }
            }
            Some((Op::Not, _, args)) => {
                self.conjuncts((args[0], !holds), limits, found, out)?;
            }
            Some((op @ (Op::Lt | Op::Le | Op::Gt | Op::Ge), _, args))
                if !holds && self.is_integer(args[0]) =>
            {
                let opposite = opposite(op)?;
                let args = [self.in_front(args[0])?, self.in_front(args[1])?];
                let one = self.op(opposite, Imm::None, BOOL, &args);
                out.push(one);
            }
            _other => {
                let one = self.in_front(condition)?;
                out.push(match holds {
                    true => one,
                    false => self.op(Op::Not, Imm::None, BOOL, &[one]),
                });
            }
        }
        Some(())
    }

    fn is_integer(&self, value: Value) -> bool {
        self.values[value.0 as usize].ty.is_integer_scalar()
    }

    /// What is run inside of the conditions that stand around everything or that threads leave by, and those.
    fn inner(&mut self, insts: &[Inst]) -> (Vec<Inst>, Vec<(Value, bool)>) {
        let mut conditions = Vec::new();
        let mut inner: Vec<Inst> = Vec::new();
        let mut rest = insts;
        loop {
            let choice = rest.iter().position(|inst| !inst.kind.is_speculatable());
            let Some((at, inst)) = choice.map(|at| (at, &rest[at])) else {
                break;
            };
            let InstKind::If {
                condition,
                then,
                otherwise,
            } = &inst.kind
            else {
                break;
            };
            let leaves = matches!(then.insts[0].kind, InstKind::Return);
            let last = at + 1 == rest.len();
            let goes_on = matches!(otherwise.insts[0].kind, InstKind::Yield(_));
            let trivial = goes_on && inst.results.is_empty();
            if !trivial || !(leaves || last) || self.in_front(*condition).is_none() {
                break;
            }
            conditions.push((*condition, !leaves));
            inner.extend_from_slice(&rest[..at]);
            rest = if leaves {
                &rest[at + 1..]
            } else {
                &then.insts[..then.insts.len() - 1]
            };
        }
        inner.extend_from_slice(rest);
        (inner, conditions)
    }

    /// A value in front of both bodies, if nothing but operations computes it.
    fn in_front(&mut self, value: Value) -> Option<Value> {
        if let Some(moved) = self.moved.get(&value) {
            return Some(*moved);
        }
        let Some(inst) = self.definitions[value.0 as usize].clone() else {
            // A parameter; what loops hand on has no place here.
            return self.params.contains(&value).then_some(value);
        };
        if !inst.kind.is_constant() && inst.kind.as_op().is_none() {
            return None;
        }
        let mut args = Vec::new();
        inst.kind.for_each_use(|arg| args.push(arg));
        let mut map = Map::new();
        for arg in args {
            let moved = self.in_front(arg)?;
            map.insert(arg, moved);
        }
        let mut copy = inst;
        copy.kind.for_each_use_mut(|arg| *arg = map[arg]);
        let ty = self.values[value.0 as usize].ty;
        let result = new_value(&mut self.values, ty);
        copy.results = [result].into_iter().collect();
        self.front.push(copy);
        self.moved.insert(value, result);
        Some(result)
    }

    /// The greatest of some sums and 0, or the least of some and the greatest place, as a place.
    fn limit(&mut self, op: Op, sums: &[Sum<Term>], start: i64, found: &Find) -> Option<Value> {
        let wide = Type::Scalar(Scalar::I64);
        let mut all = self.number(start);
        for sum in sums {
            let mut value = self.number(sum.offset());
            for (term, factor) in sum.terms() {
                let term = match term {
                    Term::Steady(value) => self.wide(*value)?,
                    Term::Extent(index) => {
                        let (lower, upper) = found.loops[index];
                        let (lower, upper) = (self.wide(lower)?, self.wide(upper)?);
                        let (zero, one) = (self.number(0), self.number(1));
                        let last = self.op(Op::Sub, Imm::None, wide, &[upper, one]);
                        let extent = self.op(Op::Sub, Imm::None, wide, &[last, lower]);
                        self.op(Op::Max, Imm::None, wide, &[extent, zero])
                    }
                };
                let factor = self.number(*factor);
                let product = self.op(Op::Mul, Imm::None, wide, &[term, factor]);
                value = self.op(Op::Add, Imm::None, wide, &[value, product]);
            }
            all = self.op(op, Imm::None, wide, &[all, value]);
        }
        // The other limit of places, so that no bits are lost.
        let (other, limit) = match op {
            Op::Max => (Op::Min, u32::MAX.into()),
            _min => (Op::Max, 0),
        };
        let limit = self.number(limit);
        let place = self.op(other, Imm::None, wide, &[all, limit]);
        Some(self.op(Op::Cast, Imm::Type(Type::U32), Type::U32, &[place]))
    }

    /// A number of at most 32 bits in 64.
    fn wide(&mut self, value: Value) -> Option<Value> {
        let wide = Type::Scalar(Scalar::I64);
        let value = self.in_front(value)?;
        Some(self.op(Op::Cast, Imm::Type(wide), wide, &[value]))
    }

    fn number(&mut self, number: i64) -> Value {
        let constant = Const {
            scalar: Scalar::I64,
            bits: number as u64,
        };
        push_const(&mut self.values, &mut self.front, constant, Span::NONE)
    }

    fn op(&mut self, op: Op, imm: Imm, ty: Type, args: &[Value]) -> Value {
        let args = args.iter().copied().collect();
        let kind = InstKind::Op { op, imm, args };
        push_inst(&mut self.values, &mut self.front, kind, ty, Span::NONE)
    }

    /// The same once more, with what borders become.
    fn interior(&mut self, region: &Region, found: &Find) -> Vec<Inst> {
        let mut map = Map::new();
        let mut copy = clone_region(&mut self.values, region, &mut map);
        let of = |value: Value| *map.get(&value).unwrap_or(&value);
        let mut same = Map::new();
        let mut less = HashMap::new();
        for (result, border) in &found.borders {
            match border.becomes {
                Becomes::Same(value) => {
                    same.insert(of(*result), of(value));
                }
                Becomes::Less(value, by) => {
                    less.insert(of(*result), [of(value), of(by)]);
                }
            }
        }
        let mut decisions = Vec::new();
        for (value, holds) in &found.decided {
            let constant = Const {
                scalar: Scalar::Bool,
                bits: (*holds).into(),
            };
            let span = Span::NONE;
            let constant = push_const(&mut self.values, &mut decisions, constant, span);
            same.insert(of(*value), constant);
        }
        subtract(&mut copy, &less);
        substitute_region(&same, &mut copy);
        decisions.append(&mut copy.insts);
        decisions
    }
}

/// An `if` that gives nothing.
pub(super) fn choice(condition: Value, then: Vec<Inst>, otherwise: Vec<Inst>, span: Span) -> Inst {
    let region = |mut insts: Vec<Inst>| {
        insts.push(Inst {
            kind: InstKind::Yield(Values::new()),
            results: Default::default(),
            span,
        });
        Region {
            insts,
            ..Region::default()
        }
    };
    Inst {
        kind: InstKind::If {
            condition,
            then: region(then),
            otherwise: region(otherwise),
        },
        results: Default::default(),
        span,
    }
}

/// Puts differences in the place of values.
fn subtract(region: &mut Region, less: &HashMap<Value, [Value; 2]>) {
    for inst in &mut region.insts {
        if let Some(args) = inst.results.first().and_then(|result| less.get(result)) {
            inst.kind = InstKind::Op {
                op: Op::Sub,
                imm: Imm::None,
                args: args.iter().copied().collect(),
            };
        }
        for inner in inst.kind.regions_mut() {
            subtract(inner, less);
        }
    }
}
