//! What holds of the integers that a loop carries, in every iteration.
//!
//! A loop whose index grows by one value in all iterations, such as the threads of the grid, counts as a `for` where
//! the index does not leave its type; that may need conditions on the launch, so it is tried anew under those at hand.

use std::collections::HashMap;

use invar_ir::{InstKind, Op, Scalar, Type, Value};

use crate::kernel::{Invariant, Subject};
use crate::linear::Formula;
use crate::query::Query;
use crate::shape::Id;
use crate::value::Thread;

impl Subject<'_> {
    /// What holds in every iteration of an integer that a loop carries: tried, and proved by induction
    /// (Flanagan and Leino, "Houdini", FME 2001).
    pub fn invariants(&self, loop_: Id, number: usize) -> Vec<Invariant> {
        let key = (loop_, number);
        if let Some(known) = self.invariants.borrow().get(&key) {
            return known.clone();
        }
        // While one is tried nothing else is: it would rest on what is not proved yet.
        if self.proving_invariant.get() {
            return Vec::new();
        }
        let carried = self.shape.carried(loop_)[number];
        let is_integer = |scalar: Scalar| scalar.is_integer();
        if !matches!(self.kernel.ty(carried), Type::Scalar(s) if is_integer(s)) {
            return Vec::new();
        }
        self.proving_invariant.set(true);
        // What an index is compared with says most: with that it may be seen not to leave its type.
        let ends = self.ends_where_equal(loop_, carried).into_iter();
        let mut candidates: Vec<Invariant> = ends.map(Invariant::AtMost).collect();
        candidates.extend([Invariant::NotBelow, Invariant::NotAbove]);
        let again = self.shape.exits(loop_, true);
        if let [(exit, values)] = again[..] {
            let end = self.end_of_iterations(loop_, exit, values[number]);
            candidates.extend(end.map(Invariant::Below));
            candidates.extend(self.step_of(carried, values[number]).map(Invariant::Step));
            let stride = self.stride_of(loop_, carried, values[number]);
            candidates.extend(stride.map(Invariant::Stride));
        }
        let holds = |candidate: Invariant| {
            let begins = match candidate {
                Invariant::Below(end) => self.begins_below(loop_, number, (end, 0)),
                Invariant::AtMost(end) => self.begins_below(loop_, number, (end, 1)),
                _of_what_it_began_with => true,
            };
            begins
                && again.iter().all(|(exit, values)| {
                    let q = Query::new(true);
                    self.is_kept(q, (loop_, number), candidate, (*exit, values[number]))
                })
        };
        let is_far = |candidate: &Invariant| matches!(candidate, Invariant::Step(n) if n.abs() > 1);
        let steps: Vec<Invariant> = candidates.iter().copied().filter(is_far).collect();
        let mut good: Vec<Invariant> = Vec::new();
        for candidate in candidates {
            if good.contains(&candidate) {
                continue;
            }
            let mut together = vec![candidate];
            // By steps of more than one it stays below what it comes to in whole ones, and its type holds those.
            if matches!(candidate, Invariant::AtMost(_)) {
                together.extend(&steps);
            }
            // That of strides is not needed to see that another is made, but what was proved before is.
            let mut hypothesis = good.clone();
            if !matches!(candidate, Invariant::Stride(_)) {
                hypothesis.extend(&together);
            }
            self.invariants.borrow_mut().insert(key, hypothesis);
            if together.iter().all(|one| holds(*one)) {
                good.extend(together);
            }
        }
        self.invariants.borrow_mut().insert(key, good.clone());
        self.proving_invariant.set(false);
        good
    }

    /// What is compared with the index of the next iteration where a loop goes on: `if next < end { continue next }`.
    fn end_of_iterations(&self, loop_: Id, exit: Id, next: Value) -> Option<Value> {
        let (holder, side) = self.shape.statements[exit].parent?;
        let InstKind::If { condition, .. } = self.shape.kind(holder) else {
            return None;
        };
        let InstKind::Op { op, args, .. } = self.shape.defining(*condition)? else {
            return None;
        };
        let end = match (op, side, &args[..]) {
            (Op::Lt | Op::Ne, 0, [a, b]) | (Op::Ge | Op::Eq, 1, [a, b]) if *a == next => *b,
            (Op::Gt, 0, [a, b]) | (Op::Le, 1, [a, b]) if *b == next => *a,
            _another => return None,
        };
        self.is_one_for_all_iterations(loop_, end, 0).then_some(end)
    }

    /// What an integer that a loop carries is compared with: `if index != end { continue index + 1 }`.
    fn ends_where_equal(&self, loop_: Id, carried: Value) -> Vec<Value> {
        let mut found = Vec::new();
        for statement in &self.shape.statements {
            let InstKind::Op {
                op: Op::Eq | Op::Ne,
                args,
                ..
            } = &statement.inst.kind
            else {
                continue;
            };
            let end = match &args[..] {
                [a, b] if *a == carried => *b,
                [a, b] if *b == carried => *a,
                _others => continue,
            };
            if !found.contains(&end) && self.is_one_for_all_iterations(loop_, end, 0) {
                found.push(end);
            }
        }
        found
    }

    /// Whether an integer that a loop carries is less than a value and so many more where the loop begins.
    fn begins_below(&self, loop_: Id, number: usize, (end, more): (Value, i128)) -> bool {
        let mut q = Query::new(true);
        self.prepare_required(&mut q);
        self.say_required(&mut q);
        let mut t = Thread::new(1, self.any_iterations(loop_));
        self.reach(&mut q, &mut t, loop_);
        let init = self.shape.initial(loop_)[number];
        let (Some(start), Some(end)) = (
            self.int(&mut q, &mut t, init),
            self.int(&mut q, &mut t, end),
        ) else {
            return false;
        };
        let end = end.form.shifted(more);
        let wrong = end.and_then(|end| Formula::le(&end, &start.form));
        wrong.is_some_and(|wrong| self.excludes(&q, &t, wrong))
    }

    /// What a loop adds to an integer that it carries in each iteration, where that is a constant and leaves no type.
    pub fn steps_by(&self, loop_: Id, number: usize) -> Option<i128> {
        let is_step = |invariant| match invariant {
            Invariant::Step(step) => Some(step),
            _bound_or_stride => None,
        };
        self.invariants(loop_, number).into_iter().find_map(is_step)
    }

    pub(crate) fn step_of(&self, carried: Value, next: Value) -> Option<i128> {
        let InstKind::Op { op, args, .. } = self.shape.defining(next)? else {
            return None;
        };
        let [a, b] = args[..] else {
            return None;
        };
        let number = |value| self.run(value, &HashMap::new(), 0);
        match op {
            Op::Add if a == carried => number(b),
            Op::Add if b == carried => number(a),
            Op::Sub if a == carried => number(b).map(|n| -n),
            _another => None,
        }
    }

    /// As [`Subject::invariants`], and steps and strides that hold under the present conditions.
    pub fn invariants_now(&self, loop_: Id, number: usize) -> Vec<Invariant> {
        let mut known = self.invariants(loop_, number);
        let is_made = |i: &Invariant| matches!(i, Invariant::Step(_) | Invariant::Stride(_));
        let nothing_new = self.conditions.borrow().is_empty() || known.iter().any(is_made);
        if nothing_new || self.proving_invariant.get() {
            return known;
        }
        let carried = self.shape.carried(loop_)[number];
        let again = self.shape.exits(loop_, true);
        let [(exit, values)] = again[..] else {
            return known;
        };
        let stride = self.stride_of(loop_, carried, values[number]);
        let step = || self.step_of(carried, values[number]).map(Invariant::Step);
        let Some(candidate) = stride.map(Invariant::Stride).or_else(step) else {
            return known;
        };
        let key = (loop_, number);
        let before = self.strides.borrow().get(&key).cloned();
        let before = before.filter(|(under, ..)| *under == *self.conditions.borrow());
        let (_, holds, needs) = before.unwrap_or_else(|| {
            let used = std::mem::take(&mut *self.used.borrow_mut());
            self.proving_invariant.set(true);
            let (mut q, marks) = self.query(true);
            q.condition_facts = marks;
            let holds = self.is_kept(q, key, candidate, (exit, values[number]));
            self.proving_invariant.set(false);
            let needs = std::mem::replace(&mut *self.used.borrow_mut(), used);
            let found = (self.conditions.borrow().clone(), holds, needs);
            self.strides.borrow_mut().insert(key, found.clone());
            found
        });
        if holds {
            self.used.borrow_mut().extend(needs);
            known.push(candidate);
        }
        known
    }

    /// What a loop adds to what it carries in each iteration, if it is one value for all iterations and no constant.
    pub(crate) fn stride_of(&self, loop_: Id, carried: Value, next: Value) -> Option<Value> {
        let InstKind::Op {
            op: Op::Add, args, ..
        } = self.shape.defining(next)?
        else {
            return None;
        };
        let [a, b] = args[..] else {
            return None;
        };
        let other = match carried {
            carried if a == carried => b,
            carried if b == carried => a,
            _another => return None,
        };
        let is_one = self.is_one_for_all_iterations(loop_, other, 0);
        let is_constant = self.run(other, &HashMap::new(), 0).is_some();
        (is_one && !is_constant).then_some(other)
    }

    /// Whether a value is the same in all iterations of a loop, though it may be computed anew in each.
    fn is_one_for_all_iterations(&self, loop_: Id, value: Value, depth: usize) -> bool {
        const DEEPEST: usize = 8;
        if !self.shape.loops_of(value).contains(&loop_) {
            return true;
        }
        let is_one = |value: &Value| self.is_one_for_all_iterations(loop_, *value, depth + 1);
        depth < DEEPEST
            && match self.shape.defining(value) {
                Some(
                    InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::BufferLength(_),
                ) => true,
                Some(InstKind::Op { op, args, .. }) => {
                    let is_arithmetic = matches!(
                        op,
                        Op::Add
                            | Op::Sub
                            | Op::Mul
                            | Op::Div
                            | Op::Shl
                            | Op::Shr
                            | Op::Min
                            | Op::Max
                            | Op::Cast
                            | Op::AsType
                            | Op::ThreadsPerGrid
                            | Op::ThreadgroupsPerGrid
                            | Op::ThreadsPerThreadgroup
                            | Op::DispatchThreadsPerThreadgroup
                            | Op::ThreadsPerSimdgroup
                            | Op::SimdgroupsPerThreadgroup
                            | Op::Extract
                    );
                    is_arithmetic && args.iter().all(is_one)
                }
                Some(InstKind::Load(place)) => {
                    self.module.is_read_only(self.kernel, place.memory)
                        && is_one(&place.index)
                        && Subject::steps(&place.path).all(|value| is_one(&value))
                }
                Some(_) | None => false,
            }
    }

    /// Whether an invariant holds at the end of an iteration if it held at its beginning.
    fn is_kept(
        &self,
        mut q: Query,
        (loop_, number): (Id, usize),
        candidate: Invariant,
        (exit, next): (Id, Value),
    ) -> bool {
        // A question under conditions has said it.
        if q.problem.facts.is_empty() {
            self.prepare_required(&mut q);
            self.say_required(&mut q);
        }
        let mut t = Thread::new(1, self.any_iterations(exit));
        self.reach(&mut q, &mut t, exit);
        let carried = self.shape.carried(loop_)[number];
        // The hypothesis, of the iteration before.
        let Some(before) = self.int(&mut q, &mut t, carried) else {
            return false;
        };
        let init = self.shape.initial(loop_)[number];
        let (Some(start), Some(next)) = (
            self.int(&mut q, &mut t, init),
            self.int(&mut q, &mut t, next),
        ) else {
            return false;
        };
        let wrong = match candidate {
            Invariant::NotBelow => Formula::lt(&next.form, &start.form),
            Invariant::NotAbove => Formula::lt(&start.form, &next.form),
            Invariant::Below(end) => {
                let end = self.int(&mut q, &mut t, end);
                end.and_then(|end| Formula::le(&end.form, &next.form))
            }
            Invariant::AtMost(end) => {
                let end = self.int(&mut q, &mut t, end);
                end.and_then(|end| Formula::lt(&end.form, &next.form))
            }
            Invariant::Step(step) => {
                let stepped = before.form.shifted(step);
                stepped.and_then(|s| Formula::ne(&next.form, &s))
            }
            Invariant::Stride(stride) => {
                let stride = self.int(&mut q, &mut t, stride);
                let stepped = stride.and_then(|s| before.form.plus(1, &s.form));
                stepped.and_then(|s| Formula::ne(&next.form, &s))
            }
        };
        wrong.is_some_and(|wrong| self.excludes(&q, &t, wrong))
    }
}
