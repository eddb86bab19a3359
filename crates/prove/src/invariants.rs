//! What holds of the integers that a loop carries, in every iteration.
//!
//! A loop whose index grows by one value in all iterations, such as the threads of the grid, counts as a `for` where
//! the index does not leave its type; that may need conditions on the launch, so it is tried anew under those at hand.

use invar_ir::{Scalar, Type, Value};

use crate::linear::Formula;
use crate::query::Query;
use crate::shape::Id;
use crate::subject::{Invariant, Subject};
use crate::thread::Thread;

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
