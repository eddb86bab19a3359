//! Conditions that ask less in place of those that were found: those are of a few shapes, made of the numbers of the
//! kernel's text, and a buffer that is asked to be longer than it has to be is a launch more that is excluded.

use invar_ir::{Dim, Imm, Op};

use crate::condition::{Condition, Number, Term};
use crate::prove::{Known, Session, tells_more};
use crate::subject::Subject;

/// How large a tile is at most, in a direction.
const MOST_TILE: i128 = 256;

/// How many numbers that are passed are tried as what threads are kept below.
const MOST_GUARDS: usize = 4;

fn is_passed(number: Number) -> bool {
    matches!(
        number,
        Number::Argument(_) | Number::Constant(_) | Number::Field(..)
    )
}

impl Session<'_, '_> {
    /// Has each condition on how large an object is ask for no more than what is needed.
    pub(crate) fn weaken(&mut self) {
        // In the order in which they are printed: what is proved at last is proved under them in that order.
        self.subject.conditions.borrow_mut().sort();
        let before = self.subject.conditions.borrow().clone();
        let saved = self.saved();
        self.shorten_chains();
        let is_new = self.by_rows();
        let mut all = self.subject.conditions.borrow().clone();
        all.sort_by_key(|c| std::cmp::Reverse(c.weight()));
        for condition in all {
            match &condition {
                Condition::AtMost(term, bound) => {
                    let [room] = bound.numbers[..] else {
                        continue;
                    };
                    // At least 0, of what has a sign.
                    if *term == Term::of(1, []) && is_passed(room) {
                        let zero = Condition::at_most(Term::of(0, []), room);
                        self.replaces(&condition, &[zero]);
                        continue;
                    }
                    // As large as a constant, or less.
                    if term.numbers.is_empty() && term.factor > 1 && is_passed(room) {
                        let least = |n| Condition::at_most(Term::of(n, []), room);
                        self.least(&condition, &least, (1, term.factor));
                        continue;
                    }
                    let condition = self.by_groups(condition.clone());
                    let Condition::AtMost(term, bound) = &condition else {
                        continue;
                    };
                    if bound.factor != 1 {
                        continue;
                    }
                    if self.rows_of_bytes(&condition, term, room) {
                        continue;
                    }
                    let is_done = match is_passed(room) {
                        true => self.within_types_alone(&condition, term),
                        false => self.guarded_rows(&condition, term, room),
                    };
                    if is_done {
                        continue;
                    }
                    if let ([Number::Grid(_)], 1) = (&term.numbers[..], term.factor) {
                        self.by_guard(&condition, room);
                    } else if term.factor > 1 {
                        self.lower_factor(&condition, term, room);
                    } else if let [a, b] = term.numbers[..] {
                        self.as_sum(&condition, (a, b), room);
                    }
                }
                Condition::More(term, more, room) => {
                    if !self.guarded_neighbours(&condition, term, *room) {
                        self.lower_distance(&condition, term, *more, *room);
                    }
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
        // Those that ask more of one length are no longer there.
        if !self.vocabulary.bytes.is_empty() {
            let all = self.subject.conditions.borrow().clone();
            for condition in &all {
                if let Condition::AtMost(term, bound) = condition
                    && let ([room @ Number::Length(_)], 1) = (&bound.numbers[..], bound.factor)
                {
                    self.rows_of_bytes(condition, term, *room);
                }
            }
        }
        if is_new {
            self.minimise();
        }
        if *self.subject.conditions.borrow() != before && !self.all_reached() {
            self.subject.conditions.replace(before);
            (self.exact, self.exact_needs, self.reached) = saved;
        }
    }

    /// Of a term that is at most a number, which is at most another: that it is at most the other may be enough.
    fn shorten_chains(&mut self) {
        let all = self.subject.conditions.borrow().clone();
        for first in &all {
            for second in &all {
                let (Condition::AtMost(term, middle), Condition::AtMost(same, last)) =
                    (first, second)
                else {
                    continue;
                };
                let is_number = middle.factor == 1 && middle.numbers.len() == 1;
                if !is_number || middle != same || first == second || term == last {
                    continue;
                }
                let short = Condition::AtMost(term.clone(), last.clone());
                let both = [first.clone(), second.clone()];
                if !self.replaces_all(&both, std::slice::from_ref(&short)) {
                    self.replaces(first, &[short]);
                }
            }
        }
    }

    /// In place of as many elements as the square of what is passed, and no more threads than that, which hardly a launch of
    /// several threadgroups has: rows of so many for each threadgroup, and that a row is as long as what threads reach of
    /// it. Whether there was one.
    fn by_rows(&mut self) -> bool {
        let all = self.subject.conditions.borrow().clone();
        let is_of_grid = |n: &Number| matches!(n, Number::Grid(_) | Number::Groups(_));
        let has_order = |row: Number| {
            let mut all = all.iter();
            all.any(|condition| match condition {
                Condition::AtMost(term, bound) => {
                    bound.numbers == [row] && term.numbers.iter().any(is_of_grid)
                }
                _another => false,
            })
        };
        let mut any = false;
        for condition in &all {
            if let Condition::AtMost(term, bound) = condition
                && let ([a, b], [Number::Length(_)], 1) =
                    (&term.numbers[..], &bound.numbers[..], bound.factor)
                && a == b
                && is_passed(*a)
                && has_order(*a)
            {
                any |= self.by_rows_of(condition, *a, bound);
            }
        }
        any
    }

    fn by_rows_of(&mut self, condition: &Condition, row: Number, bound: &Term) -> bool {
        let long = self.longest_row(row);
        let factors = std::iter::once(1).chain(self.vocabulary.rows.clone());
        for factor in factors {
            for d in self.vocabulary.dims.clone() {
                let rows = Term::of(factor, [row, Number::Groups(d)]);
                let enough = Condition::AtMost(rows, bound.clone());
                let both: Vec<Condition> =
                    [enough.clone()].into_iter().chain(long.clone()).collect();
                if self.replaces(condition, &[enough]) || self.replaces(condition, &both) {
                    return true;
                }
            }
        }
        false
    }

    fn saved(&self) -> Known {
        (
            self.exact.clone(),
            self.exact_needs.clone(),
            self.reached.clone(),
        )
    }

    /// Of what the grid is said to have, as many for its threadgroups; of threads that have to be no more than what is
    /// passed, the parts of it that threadgroups have. Gives the condition that is left.
    fn by_groups(&mut self, condition: Condition) -> Condition {
        let Condition::AtMost(term, bound) = &condition else {
            return condition;
        };
        let grid = term.numbers.iter().find_map(|n| match n {
            Number::Grid(d) if self.subject.asks_for_groups(*d) => Some(*d),
            _other => None,
        });
        let Some(d) = grid else {
            return condition;
        };
        let numbers = term.numbers.iter().map(|n| match n {
            Number::Grid(own) if *own == d => Number::Groups(d),
            other => *other,
        });
        let numbers: Vec<Number> = numbers.collect();
        let alone = matches!(&bound.numbers[..], [room] if is_passed(*room));
        let tiles = self.vocabulary.constants.iter().rev();
        let tiles = tiles.filter(|c| alone && (2..=MOST_TILE).contains(*c));
        let factors: Vec<i128> = std::iter::once(1).chain(tiles.copied()).collect();
        for factor in factors {
            let groups = Term::of(term.factor * factor, numbers.iter().copied());
            let fewer = Condition::AtMost(groups, bound.clone());
            if self.replaces(&condition, std::slice::from_ref(&fewer)) {
                return fewer;
            }
        }
        self.by_groups_of_rows(condition, Number::Groups(d))
    }

    /// Of rows of what is passed for each thread: for each threadgroup, where a row is as long as what threads reach of
    /// it.
    fn by_groups_of_rows(&mut self, condition: Condition, groups: Number) -> Condition {
        let Condition::AtMost(term, bound) = &condition else {
            return condition;
        };
        let ([a, b], [Number::Length(_)]) = (&term.numbers[..], &bound.numbers[..]) else {
            return condition;
        };
        let (Some(row), Some(_)) = (
            [a, b].into_iter().find(|n| is_passed(**n)).copied(),
            [a, b].into_iter().find(|n| matches!(n, Number::Grid(_))),
        ) else {
            return condition;
        };
        let fewer = Condition::AtMost(Term::of(term.factor, [row, groups]), bound.clone());
        let others = self.vocabulary.scalars.iter().filter(|n| **n != row);
        let others = others.take(MOST_GUARDS).flat_map(|n| {
            let each = std::iter::once(1).chain(self.vocabulary.bytes.iter().copied());
            each.map(move |each| Condition::at_most(Term::of(each, [*n]), row))
        });
        let long: Vec<Condition> = others.chain(self.longest_row(row)).collect();
        for long in long {
            if self.replaces(&condition, &[fewer.clone(), long]) {
                return fewer;
            }
        }
        condition
    }

    /// That a row is as long as the most that threads reach: how much of it is needed is found out behind.
    fn longest_row(&self, row: Number) -> Option<Condition> {
        let most = self.vocabulary.floors.iter().rev();
        let mut most = most.map(|least| Condition::at_most(Term::of(*least, []), row));
        most.find(|long| self.admits(long))
    }

    /// Of as many elements as a product, where offsets are in bytes: that a row of elements is no longer than the stride of
    /// rows, or as many bytes.
    fn rows_of_bytes(&mut self, condition: &Condition, term: &Term, room: Number) -> bool {
        let ([a, b], 1) = (&term.numbers[..], term.factor) else {
            return false;
        };
        for bytes in self.vocabulary.bytes.clone() {
            let mut others = vec![Condition::AtMost(term.clone(), Term::of(bytes, [room]))];
            if is_passed(*a) && is_passed(*b) {
                let order = |row: &Number, stride: &Number| {
                    Condition::at_most(Term::of(bytes, [*row]), *stride)
                };
                others.splice(0..0, [order(a, b), order(b, a)]);
            }
            if others
                .into_iter()
                .any(|other| self.replaces(condition, &[other]))
            {
                return true;
            }
        }
        false
    }

    /// Of a product that has to be no more than what is passed: that it fits 32 bits may be enough.
    fn within_types_alone(&mut self, condition: &Condition, term: &Term) -> bool {
        let fits = Condition::AtMost(term.clone(), Term::of(1 << 32, []));
        term.factor > 1 && !term.numbers.is_empty() && self.replaces(condition, &[fits])
    }

    /// Of rows by the grid: there may be as many as what is passed, below which threads have to be.
    fn guarded_rows(&mut self, condition: &Condition, term: &Term, room: Number) -> bool {
        let place = |n: &Number| matches!(n, Number::Grid(_));
        if term.numbers.len() != 2 || !term.numbers.iter().any(place) {
            return false;
        }
        let passed = self.vocabulary.scalars.clone().into_iter();
        passed.filter(|n| *n != room).take(MOST_GUARDS).any(|rows| {
            let numbers = term
                .numbers
                .iter()
                .map(|n| if place(n) { rows } else { *n });
            let guarded = Condition::at_most(Term::of(term.factor, numbers), room);
            self.replaces(condition, &[guarded])
        })
    }

    /// Of neighbours of each thread: of those that are below what is passed there may be no more than that.
    fn guarded_neighbours(&mut self, condition: &Condition, term: &Term, room: Number) -> bool {
        let ([Number::Grid(_)], 1) = (&term.numbers[..], term.factor) else {
            return false;
        };
        let passed = self.vocabulary.scalars.clone().into_iter();
        passed.filter(|n| *n != room).take(MOST_GUARDS).any(|n| {
            let guarded = Condition::at_most(Term::of(1, [n]), room);
            let some = Condition::at_most(Term::of(1, []), n);
            self.replaces(condition, std::slice::from_ref(&guarded))
                || self.replaces(condition, &[guarded, some])
        })
    }

    /// Of an element for each thread: of those whose place in the grid, times a constant, is below what is passed there
    /// may be fewer, as the grid is often rounded up.
    fn by_guard(&mut self, condition: &Condition, room: Number) {
        const TRIED: usize = 12;
        // One element for several threads.
        if self.subject.divides() {
            let several = self
                .vocabulary
                .constants
                .iter()
                .filter(|c| (2..=MOST_TILE).contains(*c));
            let several: Vec<i128> = several.copied().take(MOST_GUARDS).collect();
            let Condition::AtMost(term, _) = condition else {
                return;
            };
            for factor in several {
                let fewer = Condition::AtMost(term.clone(), Term::of(factor, [room]));
                if self.replaces(condition, &[fewer]) {
                    return;
                }
            }
        }
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
        self.replaces_all(std::slice::from_ref(condition), by)
    }

    /// The same, in place of several.
    fn replaces_all(&mut self, conditions: &[Condition], by: &[Condition]) -> bool {
        let before = self.subject.conditions.borrow().clone();
        let is_new = by.iter().any(|c| !before.contains(c));
        if self.is_spent(2) || !is_new || !by.iter().all(|c| self.admits(c)) {
            return false;
        }
        let saved = self.saved();
        let mut now: Vec<Condition> = before.clone();
        now.retain(|one| !conditions.contains(one) && !by.contains(one));
        now.extend_from_slice(by);
        now.sort();
        *self.subject.conditions.borrow_mut() = now;
        // Of launches that there are none of anything can be proved.
        let is_enough =
            self.still_reached(conditions) && (by.len() < 2 || self.witness().is_some());
        if !is_enough {
            *self.subject.conditions.borrow_mut() = before;
            (self.exact, self.exact_needs, self.reached) = saved;
        }
        is_enough
    }
}

impl Subject<'_> {
    fn asks(&self, asks: impl Fn(Op, Imm) -> bool) -> bool {
        self.shape.statements.iter().any(|statement| {
            let kind = statement.inst.kind.as_op();
            kind.is_some_and(|(op, imm, _)| asks(op, imm))
        })
    }

    /// Whether it asks for places of threadgroups in a direction.
    fn asks_for_groups(&self, dim: Dim) -> bool {
        self.asks(|op, imm| op == Op::ThreadgroupPositionInGrid && imm == Imm::Dim(dim))
    }

    /// Whether it divides anything.
    fn divides(&self) -> bool {
        self.asks(|op, _| matches!(op, Op::Div | Op::Shr))
    }
}
