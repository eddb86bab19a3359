//! Conditions that ask less in place of those that were found: those are of a few shapes, made of the numbers of the
//! kernel's text, and a buffer that is asked to be longer than it has to be is a launch more that is excluded.

use crate::condition::{Condition, Number, Term};
use crate::prove::{Known, Session, tells_more};

impl Session<'_, '_> {
    /// Has each condition on how large an object is ask for no more than what is needed.
    pub(crate) fn weaken(&mut self) {
        // In the order in which they are printed: what is proved at last is proved under them in that order.
        self.subject.conditions.borrow_mut().sort();
        let before = self.subject.conditions.borrow().clone();
        let saved = self.saved();
        let mut all = before.clone();
        all.sort_by_key(|c| std::cmp::Reverse(c.weight()));
        for condition in all {
            match &condition {
                Condition::AtMost(term, bound) => {
                    let [room] = bound.numbers[..] else {
                        continue;
                    };
                    let is_passed = matches!(
                        room,
                        Number::Argument(_) | Number::Constant(_) | Number::Field(..)
                    );
                    // At least 0, of what has a sign.
                    if *term == Term::of(1, []) && is_passed {
                        let zero = Condition::at_most(Term::of(0, []), room);
                        self.replaces(&condition, &[zero]);
                    } else if let ([Number::Grid(_)], 1, 1) =
                        (&term.numbers[..], term.factor, bound.factor)
                    {
                        self.by_guard(&condition, room);
                    } else if bound.factor == 1 && term.factor > 1 {
                        self.lower_factor(&condition, term, room);
                    } else if let ([a, b], 1, 1) = (&term.numbers[..], term.factor, bound.factor) {
                        self.as_sum(&condition, (*a, *b), room);
                    }
                }
                Condition::More(term, more, room) => {
                    self.lower_distance(&condition, term, *more, *room);
                }
                // That the index of a loop stays in its type: where it is less than what it is compared with, and
                // where it may be that.
                Condition::Below(number, most) if tells_more(&condition) => {
                    self.replaces(&condition, &[Condition::Below(*number, most + 1)]);
                }
                Condition::Together(a, b, most) => {
                    let more = Condition::Together(a.clone(), b.clone(), most + 1);
                    self.replaces(&condition, &[more]);
                }
                Condition::Below(..) | Condition::Multiple(..) | Condition::Sum(..) => {}
            }
        }
        if *self.subject.conditions.borrow() != before && !self.all_reached() {
            self.subject.conditions.replace(before);
            (self.exact, self.exact_needs, self.reached) = saved;
        }
    }

    fn saved(&self) -> Known {
        (
            self.exact.clone(),
            self.exact_needs.clone(),
            self.reached.clone(),
        )
    }

    /// Of an element for each thread: of those whose place in the grid, times a constant, is below what is passed there
    /// may be fewer, as the grid is often rounded up.
    fn by_guard(&mut self, condition: &Condition, room: Number) {
        const TRIED: usize = 12;
        let (factors, passed) = (&self.vocabulary.factors, &self.vocabulary.scalars);
        let each = factors.iter().rev();
        let each = each.flat_map(|factor| passed.iter().map(move |n| (*factor, *n)));
        let each: Vec<(i128, Number)> = each.filter(|(_, n)| *n != room).take(TRIED).collect();
        for (factor, passed) in each {
            let guard = Condition::AtMost(Term::of(1, [passed]), Term::of(factor, [room]));
            if self.replaces(condition, std::slice::from_ref(&guard)) {
                return;
            }
            // What places are multiplied by leaves no type.
            for d in self.vocabulary.dims.clone() {
                let fits = Condition::Below(Number::Grid(d), (1 << 32) / factor);
                if self.replaces(condition, &[guard.clone(), fits]) {
                    return;
                }
            }
        }
    }

    /// Of as many elements as a product: those of the sum are fewer, unless one of the two is 1.
    fn as_sum(&mut self, condition: &Condition, (a, b): (Number, Number), room: Number) {
        let (a, b) = (Term::of(1, [a]), Term::of(1, [b]));
        self.replaces(condition, &[Condition::Sum(a, b, room)]);
    }

    /// Of so many elements for each of a term, or of a constant number of them.
    fn lower_factor(&mut self, condition: &Condition, term: &Term, room: Number) {
        let times = |factor| {
            let numbers = term.numbers.clone();
            Condition::at_most(Term { factor, numbers }, room)
        };
        let mut current = condition.clone();
        let mut factor = term.factor;
        if term.numbers.is_empty() {
            self.least(condition, &times, (1, term.factor));
            return;
        }
        for less in self.vocabulary.multiples() {
            if less < factor && self.replaces(&current, &[times(less)]) {
                (factor, current) = (less, times(less));
                break;
            }
        }
        // One element for each, and some more in the end.
        if factor > 1
            && let [_] = term.numbers[..]
            && let Some(most) = self.vocabulary.distances.first().copied()
        {
            let term = Term::of(1, term.numbers.iter().copied());
            let more = Condition::More(term.clone(), most, room);
            if self.replaces(&current, std::slice::from_ref(&more)) {
                self.lower_distance(&more, &term, most, room);
            }
        }
    }

    /// Of a term and so many elements more.
    fn lower_distance(&mut self, condition: &Condition, term: &Term, more: i128, room: Number) {
        let distance = |more| match more {
            0 => Condition::at_most(term.clone(), room),
            more => Condition::More(term.clone(), more, room),
        };
        self.least(condition, &distance, (0, more));
    }

    /// The least number with which a condition suffices, and that condition: the last is known to do.
    fn least(
        &mut self,
        condition: &Condition,
        with: &impl Fn(i128) -> Condition,
        (mut low, mut high): (i128, i128),
    ) -> (i128, Condition) {
        let mut current = condition.clone();
        // Most are as they have to be.
        let mut number = high - 1;
        while low < high {
            let less = with(number);
            if self.replaces(&current, std::slice::from_ref(&less)) {
                (high, current) = (number, less);
            } else {
                low = number + 1;
            }
            number = low + (high - low) / 2;
        }
        (high, current)
    }

    /// Takes others in place of a condition, if all that was reached still is.
    fn replaces(&mut self, condition: &Condition, by: &[Condition]) -> bool {
        let before = self.subject.conditions.borrow().clone();
        let is_new = by.iter().any(|c| !before.contains(c));
        if self.is_spent(2) || !is_new || !by.iter().all(|c| self.admits(c)) {
            return false;
        }
        let saved = self.saved();
        let mut now: Vec<Condition> = before.clone();
        now.retain(|one| one != condition && !by.contains(one));
        now.extend_from_slice(by);
        now.sort();
        *self.subject.conditions.borrow_mut() = now;
        let is_enough = self.still_reached(condition);
        if !is_enough {
            *self.subject.conditions.borrow_mut() = before;
            (self.exact, self.exact_needs, self.reached) = saved;
        }
        is_enough
    }
}
