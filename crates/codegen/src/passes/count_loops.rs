//! Counted loops: a `loop` that counts becomes a `for`.
//!
//! ```text
//! loop carry(k, ..) { if k < n {} else { break k, .. } .. yield k + step, .. }
//! loop carry(k, ..) { if k < n { .. continue k + step, .. } break k, .. }
//!     =>  for index = k to n step step carry(..) { .. }
//! ```
//!
//! This is for kernels that are written with `while`, and for those of languages whose every loop is one: everything
//! that knows loops knows more of a `for`. Where nobody asks for the counter's last value the index takes its place;
//! else `induction` writes it in terms of the index.
//!
//! The two end in the same iteration if the counter comes to its end without wrapping around (A1). Steps of one meet
//! every number on the way, the end included. Others may pass it by: they are taken where the end is a constant and the
//! type has a number for what lies one step behind the last one in front of it. Where only the dispatch says so
//! ([`Wrapping::IsAsked`]), the kernel asks it, and has both:
//!
//! ```text
//! if step > 0 and step - 1 <= largest - n { for .. } else { loop .. }
//! ```
//!
//! That is for loops that go on by the threads of a threadgroup, or by a tile, to an end that a parameter gives. The
//! end and the step must be the same for all threads of a threadgroup, so that these stay together.
//!
//! Deliberately absent: conditions of more than one comparison, loops that test at their end, steps down that are not
//! constant.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{
    Const, Imm, Inst, InstKind, Kernel, Module, Op, Region, Scalar, Scope, Span, Type, Uniformity,
    Value, ValueInfo, analyse,
};

use crate::analysis::ranges;
use crate::tuning::TWICE_WRITTEN_INSTRUCTIONS;

use super::common::{
    Map, change_body, clone_region, constants, count, integer, new_value, opposite, push_const,
    push_inst, resolve, substitute, substitute_region, yielded,
};

/// What becomes of a loop whose counter might wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// It stays.
    Stays,
    /// It is written twice, and a comparison in front says which of the two runs.
    IsAsked,
}

pub(super) fn run(module: &Module, kernel: &mut Kernel, wrapping: Wrapping) {
    let (mut has_loops, mut used) = (false, HashSet::new());
    kernel.for_each_inst(&mut |inst| {
        has_loops |= matches!(inst.kind, InstKind::Loop { .. });
        inst.kind.for_each_use(|value| _ = used.insert(value));
    });
    if !has_loops {
        return;
    }
    let uniformity = (wrapping == Wrapping::IsAsked).then(|| analyse(module, kernel));
    let constants = constants(kernel);
    let mut values = std::mem::take(&mut kernel.values);
    change_body(kernel, |kernel, body| {
        let mut find = Find {
            module,
            kernel,
            uniformity,
            constants,
            used,
            map: Map::new(),
            values: std::mem::take(&mut values),
        };
        find.region(body);
        values = find.values;
    });
    kernel.values = values;
}

struct Find<'a> {
    module: &'a Module,
    /// Without its body.
    kernel: &'a Kernel,
    /// Of the kernel as it was; `None` if loops that may wrap stay.
    uniformity: Option<Uniformity>,
    constants: HashMap<Value, Const>,
    /// What something uses.
    used: HashSet<Value>,
    /// What stands for results and counters of loops.
    map: Map,
    values: Vec<ValueInfo>,
}

/// An iteration of a loop with one way out, at a condition of which one side breaks and the other goes on.
struct Iteration<'r> {
    /// What stands in front of the test.
    front: &'r [Inst],
    condition: Value,
    /// Whether the loop goes on where that holds.
    continues: bool,
    /// What the loop gives at its end.
    given: &'r [Value],
    /// What stands behind the test, up to what the next iteration gets.
    rest: &'r [Inst],
    next: &'r [Value],
}

/// What an iteration adds to the counter.
#[derive(Clone, Copy)]
enum Step {
    /// Never 0; negative ones go down.
    By(i128),
    Of(Value),
}

/// A `loop` that counts.
struct Count {
    /// Which of its parameters.
    slot: usize,
    upper: Value,
    step: Step,
    /// Whether the end itself has an iteration.
    is_closed: bool,
    /// Whether it might wrap around.
    may_wrap: bool,
    /// What it gives at its end.
    given: Vec<Value>,
    /// What computes the end and the step in the loop: it is made in front.
    first: Vec<Inst>,
}

impl Find<'_> {
    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            let count = match &inst.kind {
                InstKind::Loop { init, body } => self.count(init, body),
                _no_loop => None,
            };
            if let Some(count) = count {
                self.rewrite(inst, count, &mut region.insts);
                continue;
            }
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            region.insts.push(inst);
        }
    }

    fn integer(&self, value: Value) -> Option<i128> {
        integer(*self.constants.get(&resolve(&self.map, value))?)
    }

    fn count(&self, init: &[Value], body: &Region) -> Option<Count> {
        let iteration = iteration(body)?;
        let exits = iteration.rest.iter().map(Inst::exits);
        let mut others = exits.filter(|exits| exits.continues || exits.breaks);
        if others.next().is_some() || !iteration.front.iter().all(|inst| self.is_value(inst)) {
            return None;
        }
        let mut own = iteration.front.iter().flat_map(|i| &i.results);
        let given_from_outside = |v: &Value| body.params.contains(v) || !own.any(|own| own == v);
        if !iteration.given.iter().all(given_from_outside) {
            return None;
        }
        let mut front = iteration.front.iter();
        let comparison = front.find(|i| i.results[..] == [iteration.condition])?;
        let (op, _, &[a, b]) = comparison.kind.as_op()? else {
            return None;
        };
        // So that the loop goes on where `counter op upper`.
        let op = if iteration.continues {
            op
        } else {
            opposite(op)?
        };
        let (op, counter, upper) = if body.params.contains(&a) {
            (op, a, b)
        } else {
            (mirrored(op)?, b, a)
        };
        let slot = body.params.iter().position(|param| *param == counter)?;
        let step = self.step(&iteration, counter, iteration.next[slot])?;
        let Type::Scalar(scalar) = self.values[counter.0 as usize].ty else {
            return None;
        };
        let range = ranges::of_type(Type::Scalar(scalar))?;
        let (end, lower) = (self.integer(upper), self.integer(init[slot]));
        let stays = match (op, step) {
            (Op::Ne, Step::By(by)) => by == 1 && lower == Some(range.0),
            (_, Step::By(by)) => does_not_wrap(op, by, end, range)?,
            (Op::Lt | Op::Le, Step::Of(_)) => false,
            _down_by_what_is_not_known => return None,
        };
        let is_closed = matches!(op, Op::Le | Op::Ge);
        if !stays && (op == Op::Ne || !self.may_be_asked(upper, step, body)) {
            return None;
        }
        let wanted = match step {
            Step::By(_) => vec![upper],
            Step::Of(step) => vec![upper, step],
        };
        Some(Count {
            slot,
            upper,
            step,
            is_closed,
            may_wrap: !stays,
            given: iteration.given.to_vec(),
            first: self.first(&iteration, &body.params, wanted)?,
        })
    }

    /// Whether a loop may be written twice.
    fn may_be_asked(&self, upper: Value, step: Step, body: &Region) -> bool {
        let Some(uniformity) = &self.uniformity else {
            return false;
        };
        let is_one = |value: Value| uniformity.of(value).is_over(Scope::Threadgroup);
        is_one(upper)
            && match step {
                Step::By(_) => true,
                Step::Of(step) => is_one(step),
            }
            && count(body) <= TWICE_WRITTEN_INSTRUCTIONS
            && !has_arrays(body)
    }

    /// What an iteration adds to the counter.
    fn step(&self, iteration: &Iteration, counter: Value, next: Value) -> Option<Step> {
        let mut insts = iteration.front.iter().chain(iteration.rest);
        let sum = insts.find(|i| i.results[..] == [next])?;
        let (op, _, &[a, b]) = sum.kind.as_op()? else {
            return None;
        };
        let (by, is_added) = match op {
            Op::Add if a == counter => (b, true),
            Op::Add if b == counter => (a, true),
            Op::Sub if a == counter => (b, false),
            _other => return None,
        };
        let scalar = self.values[counter.0 as usize].ty.scalar()?;
        match self.integer(by) {
            Some(0) => None,
            Some(by) => {
                let by = if is_added { by } else { -by };
                let of = if by < 0 { signed(scalar) } else { scalar };
                let range = ranges::of_type(Type::Scalar(of))?;
                (range.0..=range.1).contains(&by).then_some(Step::By(by))
            }
            None => is_added.then_some(Step::Of(by)),
        }
    }

    /// Whether an instruction may be left out in the iteration that leaves.
    fn is_value(&self, inst: &Inst) -> bool {
        let computes = |op: Op| matches!(op.row().meaning, Meaning::Eval(_) | Meaning::Query);
        inst.kind.is_constant()
            || inst.kind.as_op().is_some_and(|(op, ..)| computes(op))
            || inst.kind.is_pure(self.module, self.kernel)
    }

    /// The instructions of an iteration that compute some values from what is outside of the loop, in order; none if
    /// they need anything of the loop, or a load that a loop of no iterations would not make.
    fn first(
        &self,
        iteration: &Iteration,
        params: &[Value],
        wanted: Vec<Value>,
    ) -> Option<Vec<Inst>> {
        let mut wanted: HashSet<Value> = wanted.into_iter().collect();
        let mut all = Vec::new();
        for (inst, in_front) in (iteration.rest.iter().rev().map(|i| (i, false)))
            .chain(iteration.front.iter().rev().map(|i| (i, true)))
        {
            if !inst.results.iter().any(|result| wanted.contains(result)) {
                continue;
            }
            let moves = match in_front {
                true => inst.kind.is_pure(self.module, self.kernel),
                false => inst.kind.is_speculatable(),
            };
            if !moves {
                return None;
            }
            inst.kind.for_each_use(|value| _ = wanted.insert(value));
            all.push(inst.clone());
        }
        all.reverse();
        (params.iter().all(|param| !wanted.contains(param))).then_some(all)
    }

    /// Writes a loop as a `for`, and what that needs.
    fn rewrite(&mut self, inst: Inst, count: Count, out: &mut Vec<Inst>) {
        let InstKind::Loop { init, body } = inst.kind else {
            unreachable!("it is a loop");
        };
        let span = inst.span;
        let mut made = Map::new();
        for mut inst in count.first.iter().cloned() {
            inst.kind
                .for_each_use_mut(|v| *v = *made.get(v).unwrap_or(v));
            substitute(&self.map, &mut inst.kind);
            for result in &mut inst.results {
                let ty = self.values[result.0 as usize].ty;
                let new = new_value(&mut self.values, ty);
                if let Some(constant) = self.constants.get(result) {
                    self.constants.insert(new, *constant);
                }
                made.insert(*result, new);
                *result = new;
            }
            out.push(inst);
        }
        let outside = |find: &Self, v: Value| resolve(&find.map, *made.get(&v).unwrap_or(&v));
        let upper = outside(self, count.upper);
        let ty = self.values[body.params[count.slot].0 as usize].ty;
        let scalar = ty.scalar().expect("a counter is an integer");
        let (step, of_step) = match count.step {
            Step::By(by) => {
                let of = if by < 0 { signed(scalar) } else { scalar };
                let step = self.constant(of_bits(of, by), span, out);
                (step, count.step)
            }
            Step::Of(step) => {
                let step = outside(self, step);
                (step, Step::Of(step))
            }
        };
        let fits = (count.may_wrap).then(|| {
            let is_closed = count.is_closed;
            self.fits(scalar, upper, of_step, is_closed, span, out)
        });
        let upper = match count.is_closed {
            true => {
                let down = matches!(count.step, Step::By(by) if by < 0);
                self.next_to(upper, scalar, down, span, out)
            }
            false => upper,
        };
        let again = fits.map(|fits| {
            let mut body = clone_region(&mut self.values, &body, &mut Map::new());
            substitute_region(&self.map, &mut body);
            let init = init.clone();
            (fits, InstKind::Loop { init, body })
        });
        let (kind, results, given) = self.counted(&inst.results, init, body, &count, upper, step);
        let mut counted = Inst {
            kind,
            results: results.into_iter().collect(),
            span,
        };
        let Some((fits, again)) = again else {
            for (old, given) in inst.results.iter().zip(given) {
                if *old != given {
                    self.map.insert(*old, given);
                }
            }
            out.push(counted);
            return;
        };
        // The results are those of the two together.
        let mut fresh = Map::new();
        for result in &mut counted.results {
            let ty = self.values[result.0 as usize].ty;
            let new = new_value(&mut self.values, ty);
            fresh.insert(*result, new);
            *result = new;
        }
        let given: Vec<Value> = given.iter().map(|v| *fresh.get(v).unwrap_or(v)).collect();
        let types = inst.results.iter().map(|v| self.values[v.0 as usize].ty);
        let types: Vec<Type> = types.collect();
        let same = types.into_iter().map(|ty| new_value(&mut self.values, ty));
        let same: Vec<Value> = same.collect();
        let again = Inst {
            kind: again,
            results: same.iter().copied().collect(),
            span,
        };
        let side = |inst: Inst, values: Vec<Value>| Region {
            params: Vec::new(),
            insts: vec![
                inst,
                Inst {
                    kind: InstKind::Yield(values.into_iter().collect()),
                    results: [].into_iter().collect(),
                    span,
                },
            ],
        };
        out.push(Inst {
            kind: InstKind::If {
                condition: fits,
                then: side(counted, given),
                otherwise: side(again, same),
            },
            results: inst.results,
            span,
        });
    }

    /// The `for` of a loop, its results, and what stands for each of the loop's.
    fn counted(
        &mut self,
        old: &[Value],
        init: invar_ir::inst::Values,
        body: Region,
        count: &Count,
        upper: Value,
        step: Value,
    ) -> (InstKind, Vec<Value>, Vec<Value>) {
        let lower = init[count.slot];
        let mut init = init.to_vec();
        let mut body = straight(body);
        let counter = body.params[count.slot];
        let ty = self.values[counter.0 as usize].ty;
        let index = new_value(&mut self.values, ty);
        let mut params = body.params.clone();
        let asked = old.iter().zip(&count.given);
        let mut asked = asked.filter(|(old, given)| **given == counter && self.used.contains(old));
        if asked.next().is_none() {
            params.remove(count.slot);
            init.remove(count.slot);
            if let Some(InstKind::Yield(next)) = body.insts.last_mut().map(|i| &mut i.kind) {
                let mut left = next.to_vec();
                left.remove(count.slot);
                *next = left.into_iter().collect();
            }
            self.map.insert(counter, index);
        }
        // All that is carried is given, each once.
        let mut results: Vec<Option<Value>> = vec![None; params.len()];
        let mut stand_in = Vec::new();
        for (old, given) in old.iter().zip(&count.given) {
            stand_in.push(match params.iter().position(|param| param == given) {
                Some(at) => *results[at].get_or_insert(*old),
                // Nobody asks for it.
                None if *given == counter => lower,
                None => resolve(&self.map, *given),
            });
        }
        let types = params.iter().map(|v| self.values[v.0 as usize].ty);
        let types: Vec<Type> = types.collect();
        let results = results.into_iter().zip(types);
        let results = results
            .map(|(result, ty)| result.unwrap_or_else(|| new_value(&mut self.values, ty)))
            .collect();
        body.params = std::iter::once(index).chain(params).collect();
        self.region(&mut body);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: init.into_iter().collect(),
            body,
        };
        (kind, results, stand_in)
    }

    /// The number behind or in front of one.
    fn next_to(
        &mut self,
        value: Value,
        scalar: Scalar,
        in_front: bool,
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        if let Some(number) = self.integer(value) {
            let number = if in_front { number - 1 } else { number + 1 };
            return self.constant(of_bits(scalar, number), span, out);
        }
        let one = self.constant(of_bits(scalar, 1), span, out);
        let op = if in_front { Op::Sub } else { Op::Add };
        self.op(
            op,
            Imm::None,
            Type::Scalar(scalar),
            &[value, one],
            span,
            out,
        )
    }

    /// Whether a counter that comes to its end does not wrap around: whether the distance from the end to the last
    /// number that the type has, which is exact in the unsigned type, is that of a step.
    fn fits(
        &mut self,
        scalar: Scalar,
        upper: Value,
        step: Step,
        is_closed: bool,
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        let of = unsigned(scalar);
        let ty = Type::Scalar(of);
        let range = ranges::of_type(Type::Scalar(scalar)).expect("a counter is an integer");
        let up = !matches!(step, Step::By(by) if by < 0);
        let last = if up { range.1 } else { range.0 };
        let last = self.constant(of_bits(of, last), span, out);
        let end = self.op(Op::AsType, Imm::Type(ty), ty, &[upper], span, out);
        let room = if up { [last, end] } else { [end, last] };
        let room = self.op(Op::Sub, Imm::None, ty, &room, span, out);
        let not_made = i128::from(!is_closed);
        let (by, is_positive) = match step {
            Step::By(by) => {
                let by = of_bits(of, by.abs() - not_made);
                (self.constant(by, span, out), None)
            }
            Step::Of(step) => {
                let none = self.constant(of_bits(scalar, 0), span, out);
                let is_positive = self.op(Op::Gt, Imm::None, Type::BOOL, &[step, none], span, out);
                let step = self.op(Op::AsType, Imm::Type(ty), ty, &[step], span, out);
                let less = self.constant(of_bits(of, not_made), span, out);
                let by = self.op(Op::Sub, Imm::None, ty, &[step, less], span, out);
                (by, Some(is_positive))
            }
        };
        let fits = self.op(Op::Le, Imm::None, Type::BOOL, &[by, room], span, out);
        match is_positive {
            Some(positive) => {
                let both = [positive, fits];
                self.op(Op::And, Imm::None, Type::BOOL, &both, span, out)
            }
            None => fits,
        }
    }

    fn op(
        &mut self,
        op: Op,
        imm: Imm,
        ty: Type,
        args: &[Value],
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        let args = args.iter().copied().collect();
        let kind = InstKind::Op { op, imm, args };
        push_inst(&mut self.values, out, kind, ty, span)
    }

    fn constant(&mut self, constant: Const, span: Span, out: &mut Vec<Inst>) -> Value {
        let value = push_const(&mut self.values, out, constant, span);
        self.constants.insert(value, constant);
        value
    }
}

/// A constant of a type, modulo two to its width.
fn of_bits(scalar: Scalar, number: i128) -> Const {
    let bits = number as u64 & (u64::MAX >> (64 - scalar.bits()));
    Const { scalar, bits }
}

/// Whether a counter in a range that goes on by a constant while `counter op end` ends without wrapping around;
/// nothing if it goes another way.
fn does_not_wrap(op: Op, by: i128, end: Option<i128>, range: (i128, i128)) -> Option<bool> {
    match op {
        Op::Lt if by > 0 => Some(by == 1 || end.is_some_and(|end| end - 1 + by <= range.1)),
        Op::Gt if by < 0 => Some(by == -1 || end.is_some_and(|end| end + 1 + by >= range.0)),
        Op::Le if by > 0 => Some(end.is_some_and(|end| end + by <= range.1)),
        Op::Ge if by < 0 => Some(end.is_some_and(|end| end + by >= range.0)),
        _other => None,
    }
}

/// The iteration of a loop's body, if it has one way out, whose test is in the body itself.
fn iteration(body: &Region) -> Option<Iteration<'_>> {
    let at = body.insts.iter().position(|inst| inst.exits().any())?;
    let test = &body.insts[at];
    let InstKind::If {
        condition,
        then,
        otherwise,
    } = &test.kind
    else {
        return None;
    };
    if !test.results.is_empty() {
        return None;
    }
    let (front, rest) = (&body.insts[..at], &body.insts[at + 1..]);
    for (side, other, continues) in [(then, otherwise, true), (otherwise, then, false)] {
        if is_empty(side)
            && let [only] = &other.insts[..]
            && let InstKind::Break(given) = &only.kind
        {
            return Some(Iteration {
                front,
                condition: *condition,
                continues,
                given,
                rest: rest.split_last()?.1,
                next: yielded(body)?,
            });
        }
        if is_empty(other)
            && let [only] = rest
            && let InstKind::Break(given) = &only.kind
            && let Some((last, rest)) = side.insts.split_last()
            && let InstKind::Continue(next) = &last.kind
        {
            return Some(Iteration {
                front,
                condition: *condition,
                continues,
                given,
                rest,
                next,
            });
        }
    }
    None
}

/// A body that has a [`Iteration`], without its test.
fn straight(mut body: Region) -> Region {
    let at = body.insts.iter().position(|inst| inst.exits().any());
    let mut rest = body.insts.split_off(at.expect("it has a way out"));
    let test = rest.remove(0);
    if let [Inst { kind, .. }] = &rest[..]
        && matches!(kind, InstKind::Break(_))
        && let InstKind::If {
            then, otherwise, ..
        } = test.kind
    {
        rest = if is_empty(&then) { otherwise } else { then }.insts;
        if let Some(last) = rest.last_mut()
            && let InstKind::Continue(next) = &last.kind
        {
            last.kind = InstKind::Yield(next.clone());
        }
    }
    body.insts.append(&mut rest);
    body
}

/// Whether an array begins its life in a region: it is in one place of the kernel.
fn has_arrays(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        let mut inner = inst.kind.regions().into_iter();
        matches!(inst.kind, InstKind::Alloc(_)) || inner.any(has_arrays)
    })
}

fn is_empty(region: &Region) -> bool {
    match &region.insts[..] {
        [] => true,
        [only] => matches!(&only.kind, InstKind::Yield(values) if values.is_empty()),
        _more => false,
    }
}

/// The comparison of the same operands in the other order.
fn mirrored(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Gt,
        Op::Gt => Op::Lt,
        Op::Le => Op::Ge,
        Op::Ge => Op::Le,
        Op::Eq | Op::Ne => op,
        _other => return None,
    })
}

/// The signed integer of the same width.
fn signed(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::U8 => Scalar::I8,
        Scalar::U16 => Scalar::I16,
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        other => other,
    }
}

/// The unsigned integer of the same width.
fn unsigned(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::I8 => Scalar::U8,
        Scalar::I16 => Scalar::U16,
        Scalar::I32 => Scalar::U32,
        Scalar::I64 => Scalar::U64,
        other => other,
    }
}
