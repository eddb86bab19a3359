//! Conditions under which the index of a loop stays in its type: `for (i = t; i < n; i += 256)` goes on behind the
//! largest number of the type, from its least, where `n` is within 256 of it, and threads meet there.
//!
//! What is below the type's end by a step is below it for any index, so that is asked of what an index may be compared
//! with: what the author passes, lengths, and products of these.

use std::collections::BTreeSet;

use invar_ir::{InstKind, Op, Required, Type, Value};

use crate::condition::{Condition, Number, Term};
use crate::positions::dim;
use crate::shape::Definition;
use crate::subject::Subject;
use crate::thread::{LARGEST_THREADGROUP, range};
use crate::vocabulary::Vocabulary;

/// Products of two are limits where no more numbers than these are passed.
const MOST_SIDES: usize = 4;

/// What a loop adds to its index in each iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// No more than this.
    AtMost(i128),
    /// What a launch says, of the threadgroup or passed by the author.
    Number(Term),
    /// The threads of the grid, so many times, or what is not known.
    Grid(i128),
}

/// A loop whose index may leave its type: one more than the largest number of that, and the step.
type Strided = (i128, Step);

impl Subject<'_> {
    /// The loops that carry an index by steps, whose type it may leave.
    fn strided(&self) -> BTreeSet<Strided> {
        let mut found = BTreeSet::new();
        for loop_ in 0..self.shape.statements.len() {
            let again = self.shape.exits(loop_, true);
            let [(_, values)] = again[..] else {
                continue;
            };
            for (carried, next) in self.shape.carried(loop_).iter().zip(values) {
                let Type::Scalar(scalar) = self.kernel.ty(*carried) else {
                    continue;
                };
                if !scalar.is_integer() {
                    continue;
                }
                let stride = self.stride_of(loop_, *carried, *next);
                let step = match (self.step_of(*carried, *next), stride) {
                    (Some(step @ 1..), _) => Step::AtMost(step),
                    (_, Some(stride)) => self.step(stride),
                    _another => continue,
                };
                found.insert((range(scalar).1 + 1, step));
            }
        }
        found
    }

    fn step(&self, stride: Value) -> Step {
        let Some(term) = self.step_term(stride, 0) else {
            return Step::Grid(1);
        };
        let is_grid = |n: &Number| matches!(n, Number::Grid(_) | Number::Groups(_));
        let is_side = |n: &Number| matches!(n, Number::Threadgroup(_));
        match &term.numbers[..] {
            [Number::Grid(_)] => Step::Grid(term.factor),
            numbers if numbers.iter().any(is_grid) => Step::Grid(1),
            [] => Step::AtMost(term.factor),
            [_] => Step::Number(term),
            sides if sides.iter().all(is_side) => Step::AtMost(term.factor * LARGEST_THREADGROUP),
            [_, _] => Step::Number(term),
            _several => Step::Grid(1),
        }
    }

    /// A stride as a product of numbers of a launch.
    fn step_term(&self, value: Value, depth: usize) -> Option<Term> {
        const DEEPEST: usize = 6;
        let one = |number| Some(Term::of(1, [number]));
        if let Some(Definition::Parameter(place)) = self.shape.definition(value) {
            return one(Number::Argument(place));
        }
        let (op, imm, args) = match self.shape.defining(value)? {
            InstKind::Const(constant) if constant.scalar.is_integer() => {
                let number = constant.scalar.integer(constant.bits);
                return (number > 0).then(|| Term::of(number, []));
            }
            InstKind::FunctionConstant(place) => return one(Number::Constant(*place as usize)),
            InstKind::Load(place) => return one(self.field_number(place, None)?),
            InstKind::Op { op, imm, args } if depth < DEEPEST => (*op, *imm, args),
            _another => return None,
        };
        let inner = |place: usize| self.step_term(*args.get(place)?, depth + 1);
        match op {
            Op::ThreadsPerGrid => one(Number::Grid(dim(imm))),
            Op::ThreadgroupsPerGrid => one(Number::Groups(dim(imm))),
            Op::ThreadsPerThreadgroup | Op::DispatchThreadsPerThreadgroup => {
                let d = dim(imm);
                match self.kernel.threadgroup_size {
                    Some(size) => Some(Term::of(size[d as usize].into(), [])),
                    None => one(Number::Threadgroup(d)),
                }
            }
            Op::ThreadsPerSimdgroup | Op::SimdgroupsPerThreadgroup => {
                Some(Term::of(LARGEST_THREADGROUP, []))
            }
            Op::Cast | Op::AsType => inner(0),
            Op::Mul => {
                let (a, b) = (inner(0)?, inner(1)?);
                let numbers = a.numbers.into_iter().chain(b.numbers);
                Some(Term::of(a.factor.checked_mul(b.factor)?, numbers))
            }
            Op::Shl => {
                let (a, b) = (inner(0)?, self.constant_of(*args.get(1)?)?);
                let times = (0..32).contains(&b).then(|| 1i128 << b)?;
                Some(Term::of(a.factor.checked_mul(times)?, a.numbers))
            }
            _another => None,
        }
    }
}

fn is_of_threadgroup(step: &Term) -> bool {
    let is = |n: &Number| matches!(n, Number::Threadgroup(_));
    step.numbers.iter().all(is)
}

impl Vocabulary {
    /// What a loop compares its index with, mostly: what the author passes, lengths, and products of those.
    fn limits(&self, subject: &Subject<'_>) -> Vec<Term> {
        let one = |n: &Number| Term::of(1, [*n]);
        let mut found: Vec<Term> = self.scalars.iter().map(one).collect();
        found.extend(self.lengths.iter().map(one));
        // Of what is required of elements a loop over a row of a sparse matrix knows where it ends.
        for requirement in &subject.kernel.requires {
            if let Required::Each { comparison, .. } = &requirement.required {
                let numbers = comparison
                    .numbers()
                    .into_iter()
                    .filter_map(Number::required);
                let lengths = numbers.filter(|n| matches!(n, Number::Length(_)));
                found.extend(
                    lengths
                        .map(|n| one(&n))
                        .filter(|t| !found.contains(t))
                        .collect::<Vec<_>>(),
                );
            }
        }
        found
    }

    /// Products of what the author passes.
    fn wide_limits(&self) -> Vec<Term> {
        let mut found = Vec::new();
        for factor in self.constants.iter().copied().filter(|c| *c <= 16) {
            found.extend(self.scalars.iter().map(|n| Term::of(factor, [*n])));
        }
        if self.scalars.len() <= MOST_SIDES {
            for (i, a) in self.scalars.iter().enumerate() {
                found.extend(self.scalars[i + 1..].iter().map(|b| Term::of(1, [*a, *b])));
            }
        }
        found
    }

    /// That what the index of a loop is compared with is a step below the end of its type, where the step is a
    /// constant or the threads of a threadgroup: hardly a launch breaks it.
    pub fn steps(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = Vec::new();
        let mut add = |condition| {
            if !found.contains(&condition) {
                found.push(condition);
            }
        };
        let limits = self.limits(subject);
        for (bound, step) in subject.strided() {
            let step = match step {
                Step::AtMost(step) => step,
                Step::Number(step) if is_of_threadgroup(&step) => {
                    for most in [bound, bound - 1] {
                        for limit in &limits {
                            add(Condition::Together(limit.clone(), step.clone(), most));
                        }
                    }
                    continue;
                }
                Step::Number(_) | Step::Grid(_) => continue,
            };
            // Less than the limit, and no more than it.
            for most in [bound - step, bound - 1 - step] {
                for limit in &limits {
                    if let [number] = limit.numbers[..]
                        && number.range(subject).1 > most
                    {
                        add(Condition::Below(number, most));
                    }
                }
            }
            for limit in self.wide_limits() {
                add(Condition::AtMost(limit, Term::of(bound - step, [])));
            }
        }
        found
    }

    /// The same of steps that a launch says.
    pub fn strides(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = Vec::new();
        for (bound, step) in subject.strided() {
            match step {
                Step::AtMost(_) => {}
                // That of those is asked as that of constants is.
                Step::Number(step) if is_of_threadgroup(&step) => {
                    let more = self.wide_limits().into_iter();
                    found.extend(more.map(|limit| Condition::Together(limit, step.clone(), bound)));
                }
                Step::Number(step) => {
                    let mut limits = self.limits(subject);
                    limits.extend(self.wide_limits());
                    let is_own =
                        |limit: &Term| limit.numbers.iter().any(|n| step.numbers.contains(n));
                    limits.retain(|limit| !is_own(limit));
                    for most in [bound, bound - 1] {
                        let together =
                            |limit: &Term| Condition::Together(limit.clone(), step.clone(), most);
                        found.extend(limits.iter().map(together));
                    }
                }
                Step::Grid(times) => self.strides_of_grid(subject, (bound, times), &mut found),
            }
        }
        found
    }

    /// Where what the author passes is the step: that each thread goes by no less than there are, in its type.
    pub fn passed_strides(&self, subject: &Subject<'_>) -> Vec<Condition> {
        let mut found = Vec::new();
        for (bound, step) in subject.strided() {
            let Step::Number(step) = step else {
                continue;
            };
            let [passed] = step.numbers[..] else {
                continue;
            };
            if is_of_threadgroup(&step) {
                continue;
            }
            for d in &self.dims {
                for threads in [Number::Grid(*d), Number::Threadgroup(*d)] {
                    found.push(Condition::AtMost(Term::of(1, [threads]), step.clone()));
                }
            }
            for limit in self.limits(subject) {
                if !limit.numbers.contains(&passed) {
                    found.push(Condition::Together(limit, step.clone(), bound));
                }
            }
        }
        found
    }

    fn strides_of_grid(
        &self,
        subject: &Subject<'_>,
        (bound, times): (i128, i128),
        found: &mut Vec<Condition>,
    ) {
        // Nor do places in the grid leave one with a sign.
        let signed = self.dims.iter().filter(|_| bound < 1 << 32);
        found.extend(signed.map(|d| Condition::Below(Number::Grid(*d), bound)));
        let mut limits: Vec<Term> = self.scalars.iter().map(|n| Term::of(1, [*n])).collect();
        limits.extend(self.wide_limits());
        limits.extend(self.lengths.iter().map(|l| Term::of(1, [*l])));
        limits.extend(self.constants.iter().map(|c| Term::of(*c, [])));
        for limit in limits {
            for d in &self.dims {
                let together = |term, bound| Condition::Together(limit.clone(), term, bound);
                found.push(together(Term::of(times, [Number::Grid(*d)]), bound));
                // The threads of whole threadgroups are a number of that type, too.
                let whole = match subject.kernel.threadgroup_size {
                    Some(size) => {
                        let size = i128::from(size[*d as usize]);
                        Term::of(size, [Number::Groups(*d)])
                    }
                    None => Term::of(1, [Number::Groups(*d), Number::Threadgroup(*d)]),
                };
                found.push(together(whole, bound - 1));
            }
        }
    }
}
