//! Loops that constants run, iteration by iteration.
//!
//! Where what a loop carries is known in each of its iterations, a question that is not answered for any of them is
//! asked of each by its number: a stride that doubles is a constant then, what it is multiplied by a linear form, and
//! what its bits are taken of has those bits. Intervals between barriers are followed through the iterations, so that
//! one that begins in the last leads out of the loop, and no other does.
//!
//! That is done where numbers of a loop are multiplied by what is no constant, shifted by, or taken for bits: for all
//! else the iterations need not be known. A kernel of too many iterations is not followed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use invar_ir::{AddressSpace, InstKind, Op, Type, Value};

use crate::iterations::{Intervals, Known, Loop, relate};
use crate::shape::{Definition, Guide, Id, Iteration, Iterations};
use crate::subject::{Pair, Relation, Subject};
use crate::thread::range;

/// A loop of more iterations is not followed.
const MOST_ITERATIONS: usize = 64;
/// No more instructions in their iterations are looked at.
const MOST_STATES: usize = 20_000;
/// A question is asked of no more iterations.
const MOST_CASES: usize = 640;

impl Subject<'_> {
    /// What a value is where these are known, if constants say.
    pub fn run(&self, value: Value, known: &HashMap<Value, i128>, depth: usize) -> Option<i128> {
        if let Some(number) = known.get(&value) {
            return Some(*number);
        }
        if depth > 32 {
            return None;
        }
        let Type::Scalar(scalar) = self.kernel.ty(value) else {
            return None;
        };
        if !scalar.is_integer() {
            return None;
        }
        let Some(Definition::Result(id, number)) = self.shape.definition(value) else {
            return None;
        };
        let (least, most) = range(scalar);
        let wrapped = |exact: i128| (exact - least).rem_euclid(most - least + 1) + least;
        match self.shape.kind(id) {
            InstKind::Const(constant) => Some(scalar.integer(constant.bits)),
            InstKind::Op {
                op: Op::Cast | Op::AsType,
                args,
                ..
            } => self.run(*args.first()?, known, depth + 1).map(wrapped),
            InstKind::Op { op, args, .. } => {
                let [a, b] = args[..] else {
                    return None;
                };
                let a = self.run(a, known, depth + 1)?;
                let b = self.run(b, known, depth + 1)?;
                let bits = i128::from(scalar.bits());
                Some(wrapped(match op {
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a.checked_mul(b)?,
                    Op::Div if b == 0 => 0,
                    Op::Div => a / b,
                    Op::Shr | Op::ShrExact => a >> b.rem_euclid(bits),
                    Op::Shl => a.checked_mul(1 << b.rem_euclid(bits))?,
                    Op::And => a & b,
                    Op::Or => a | b,
                    Op::Xor => a ^ b,
                    Op::Rem if b == 0 => 0,
                    Op::Rem => a % b,
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                    _another => return None,
                }))
            }
            InstKind::For { .. } | InstKind::Loop { .. } => self.run_to_end(id, number, known),
            _another => None,
        }
    }

    /// What a loop carries in each of its iterations, and its index if it is a `for`, where these are known; `None` if
    /// constants do not say which iteration is the last.
    fn run_iterations(&self, loop_: Id, around: &Known) -> Option<Vec<Known>> {
        let again = self.shape.exits(loop_, true);
        let values = match &again[..] {
            [(_, values)] => Some(*values),
            _several => None,
        };
        let index = match self.shape.kind(loop_) {
            InstKind::For {
                lower, upper, step, ..
            } => {
                let [lower, upper, step] =
                    [*lower, *upper, *step].map(|value| self.run(value, around, 0));
                let (lower, upper, step) = (lower?, upper?, step?);
                let way = if step < 0 {
                    lower - upper
                } else {
                    upper - lower
                };
                let step_by = Some(step.abs()).filter(|by| *by > 0)?;
                Some((lower, step, (way.max(0) + step_by - 1) / step_by))
            }
            _loop => None,
        };
        let counter = match self.shape.kind(loop_) {
            InstKind::For { body, .. } => body.params.first(),
            _loop => None,
        };
        let carried = self.shape.carried(loop_);
        let init = self.shape.initial(loop_).iter();
        let mut now: Vec<Option<i128>> = init.map(|v| self.run(*v, around, 0)).collect();
        let mut iterations: Vec<Known> = Vec::new();
        loop {
            let number = iterations.len() as i128;
            if index.is_some_and(|(.., count)| number >= count) {
                return Some(iterations);
            }
            if iterations.len() == MOST_ITERATIONS {
                return None;
            }
            let pairs = carried.iter().zip(&now);
            let mut own: Known = pairs.filter_map(|(v, n)| n.map(|n| (*v, n))).collect();
            if let (Some((lower, step, _)), Some(counter)) = (index, counter) {
                own.insert(*counter, lower + step * number);
            }
            let mut known = around.clone();
            known.extend(&own);
            iterations.push(own);
            if index.is_none() && self.leaves(loop_, &known) {
                return Some(iterations);
            }
            now = match values {
                Some(values) => values.iter().map(|v| self.run(*v, &known, 0)).collect(),
                None => vec![None; carried.len()],
            };
        }
    }

    /// What a loop gives that constants run to its end.
    pub(crate) fn run_to_end(&self, loop_: Id, number: usize, around: &Known) -> Option<i128> {
        if !self.shape.loops_around(loop_).is_empty() {
            return self.end_of_loop(loop_, number, around);
        }
        let key = (loop_, number);
        if let Some(known) = self.unrolled.ends.borrow().get(&key) {
            return *known;
        }
        let end = self.end_of_loop(loop_, number, &Known::new());
        self.unrolled.ends.borrow_mut().insert(key, end);
        end
    }

    fn end_of_loop(&self, loop_: Id, number: usize, around: &Known) -> Option<i128> {
        let iterations = self.run_iterations(loop_, around)?;
        let in_iteration = |own: &Known| {
            let mut known = around.clone();
            known.extend(own);
            known
        };
        let leaves = self.shape.exits(loop_, false);
        if matches!(self.shape.kind(loop_), InstKind::For { .. }) {
            let [(_, values)] = self.shape.exits(loop_, true)[..] else {
                return None;
            };
            return match iterations.last() {
                _breaks if !leaves.is_empty() => None,
                Some(last) => self.run(*values.get(number)?, &in_iteration(last), 0),
                None => self.run(*self.shape.initial(loop_).get(number)?, around, 0),
            };
        }
        // By the one way out, in the last iteration and in no other.
        let [(exit, values)] = leaves[..] else {
            return None;
        };
        let (holder, side) = self.shape.statements[exit].parent?;
        let InstKind::If { condition, .. } = self.shape.kind(holder) else {
            return None;
        };
        if self.shape.statements[holder].parent != Some((loop_, 0)) {
            return None;
        }
        let (last, others) = iterations.split_last()?;
        let leaves = |own: &Known| {
            let holds = self.holds(*condition, &in_iteration(own));
            holds.map(|holds| holds == (side == 0))
        };
        let is_last = leaves(last) == Some(true);
        let is_only = others.iter().all(|own| leaves(own) == Some(false));
        (is_last && is_only).then(|| self.run(*values.get(number)?, &in_iteration(last), 0))?
    }

    /// The loops whose numbers a value is made of, without what memory holds.
    fn loops_in(&self, value: Value) -> BTreeSet<Id> {
        let mut found = BTreeSet::new();
        let (mut open, mut seen) = (vec![value], HashSet::new());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.shape.definition(value) {
                Some(Definition::Counter(id)) => {
                    found.insert(id);
                    if let InstKind::For {
                        lower, upper, step, ..
                    } = self.shape.kind(id)
                    {
                        open.extend([lower, upper, step]);
                    }
                }
                Some(Definition::Carried(id, number)) => {
                    found.insert(id);
                    open.extend(self.shape.initial(id).get(number));
                    for (_, values) in self.shape.exits(id, true) {
                        open.extend(values.get(number));
                    }
                }
                Some(Definition::Result(id, number)) => match self.shape.kind(id) {
                    InstKind::Op { args, .. } => open.extend(args),
                    InstKind::For { .. } | InstKind::Loop { .. } => {
                        open.extend(self.shape.initial(id).get(number));
                        let exits = [true, false].map(|again| self.shape.exits(id, again));
                        for (_, values) in exits.into_iter().flatten() {
                            open.extend(values.get(number));
                        }
                    }
                    InstKind::If { condition, .. } => {
                        open.push(*condition);
                        for side in 0..2 {
                            let last = self.shape.region(Some(id), side).last();
                            if let Some(InstKind::Yield(values)) =
                                last.map(|last| self.shape.kind(*last))
                            {
                                open.extend(values.get(number));
                            }
                        }
                    }
                    _memory_and_others => {}
                },
                Some(Definition::Parameter(_)) | None => {}
            }
        }
        found
    }

    /// The loops whose iterations are told by their numbers: of which a product of two numbers is made, a shift or
    /// bits, and those that these follow from.
    fn numbered_loops(&self) -> &BTreeSet<Id> {
        self.unrolled.loops.get_or_init(|| {
            let mut found = BTreeSet::new();
            for statement in &self.shape.statements {
                let InstKind::Op { op, args, .. } = &statement.inst.kind else {
                    continue;
                };
                let [a, b] = args[..] else {
                    continue;
                };
                let loops = match op {
                    Op::Shl | Op::Shr | Op::ShrExact => self.loops_in(b),
                    Op::Mul | Op::Div | Op::Rem | Op::And | Op::Or | Op::Xor => {
                        let is_constant = |value| self.run(value, &Known::new(), 0).is_some();
                        if is_constant(a) || is_constant(b) {
                            continue;
                        }
                        let (a, b) = (self.loops_in(a), self.loops_in(b));
                        a.union(&b).copied().collect()
                    }
                    _linear => continue,
                };
                found.extend(loops);
            }
            found
        })
    }

    /// What is known in each iteration of a loop, in these iterations of the loops around it.
    fn numbered_iterations(&self, loop_: Id, around: &Iterations) -> Loop {
        if !self.numbered_loops().contains(&loop_) {
            return None;
        }
        let loops = self.shape.loops_around(loop_);
        let is_around = |(l, iteration): &(&Id, &Iteration)| {
            loops.contains(l) && matches!(iteration, Iteration::Numbered(_))
        };
        let around = around.iter().filter(is_around);
        let around: Iterations = around.map(|(l, iteration)| (*l, *iteration)).collect();
        let key = (loop_, around);
        if let Some(known) = self.unrolled.iterations.borrow().get(&key) {
            return known.clone();
        }
        let iterations = self.run_iterations(loop_, &self.in_numbered_iterations(&key.1));
        let iterations = iterations.map(Rc::new);
        let mut all = self.unrolled.iterations.borrow_mut();
        all.insert(key, iterations.clone());
        iterations
    }

    /// What is known in iterations that are told by their numbers.
    pub(crate) fn in_numbered_iterations(&self, iterations: &Iterations) -> Known {
        let mut known = Known::new();
        for (loop_, iteration) in iterations {
            if let Iteration::Numbered(number) = iteration
                && let Some(all) = self.numbered_iterations(*loop_, iterations)
            {
                known.extend(all.get(*number).into_iter().flatten());
            }
        }
        known
    }

    /// The intervals of a space, or the whole kernel as one.
    fn numbered_intervals(&self, among: Option<(AddressSpace, bool)>) -> Rc<Intervals> {
        if let Some(known) = self.unrolled.intervals.borrow().get(&among) {
            return known.clone();
        }
        let found = Rc::new(self.shape.guided_intervals(among, &Constants(self)));
        let mut all = self.unrolled.intervals.borrow_mut();
        all.insert(among, found.clone());
        found
    }

    /// Whether iterations of any loop are told by their numbers.
    pub(crate) fn has_numbered_loops(&self) -> bool {
        !self.numbered_loops().is_empty()
    }

    /// Whether an index is made of numbers of such loops.
    pub(crate) fn is_of_numbered(&self, index: Value) -> bool {
        let numbered = self.numbered_loops();
        !numbered.is_empty() && !self.loops_in(index).is_disjoint(numbered)
    }

    /// The iterations in which an access may be made whose index is made of their numbers, if there are not too many.
    pub(crate) fn cases_of(&self, id: Id, index: Value) -> Option<Vec<Iterations>> {
        if !self.is_of_numbered(index) {
            return None;
        }
        let intervals = self.numbered_intervals(None);
        let all = intervals.as_ref().as_ref()?.iter().flatten();
        let cases = all.filter(|(at, _)| *at == id);
        let cases: Vec<Iterations> = cases.map(|(_, iterations)| iterations.clone()).collect();
        (cases.len() <= MOST_CASES && cases.iter().any(is_numbered)).then_some(cases)
    }

    /// The pairs of iterations that stand for a pair of accesses in all of them, if there are not too many.
    pub(crate) fn cases_of_pair(&self, pair: &Pair) -> Option<Vec<Pair>> {
        let [a, b] = [pair.a.0, pair.b.0].map(|site| &self.sites[site]);
        let (space, _) = self.space(a.memory)?;
        let among = match pair.relation {
            Relation::OtherGroup => None,
            Relation::SameGroup | Relation::OtherSimdgroup => Some((space, false)),
            Relation::SameSimdgroup => Some((space, true)),
        };
        let intervals = self.numbered_intervals(among);
        let mut cases: BTreeSet<(Iterations, Iterations)> = BTreeSet::new();
        for interval in intervals.as_ref().as_ref()? {
            let of = |id: Id| interval.iter().filter(move |(at, _)| *at == id);
            for (_, first) in of(a.id) {
                for (_, second) in of(b.id) {
                    // Of two threads at one access either may be the first.
                    if pair.a.0 != pair.b.0 || first <= second {
                        cases.insert(relate(first, second));
                    }
                    if cases.len() > MOST_CASES {
                        return None;
                    }
                }
            }
        }
        let of_iterations = |(first, second)| Pair {
            a: (pair.a.0, first),
            b: (pair.b.0, second),
            relation: pair.relation,
        };
        Some(cases.into_iter().map(of_iterations).collect())
    }
}

/// Whether any of these iterations is told by its number.
fn is_numbered(iterations: &Iterations) -> bool {
    let mut iterations = iterations.values();
    iterations.any(|iteration| matches!(iteration, Iteration::Numbered(_)))
}

/// What constants say of the ways through a kernel.
struct Constants<'s, 'k>(&'s Subject<'k>);

impl Guide for Constants<'_, '_> {
    fn iterations(&self, loop_: Id, around: &Iterations) -> Option<usize> {
        let iterations = self.0.numbered_iterations(loop_, around);
        iterations.map(|iterations| iterations.len())
    }

    fn holds(&self, condition: Value, iterations: &Iterations) -> Option<bool> {
        self.0
            .holds(condition, &self.0.in_numbered_iterations(iterations))
    }

    fn most_states(&self) -> usize {
        MOST_STATES
    }
}
