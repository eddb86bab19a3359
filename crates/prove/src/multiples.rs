//! How many of the lowest bits of an integer are zero whatever a launch passes within the conditions: of products that
//! wrap the solver knows nothing, and their lowest bits are those of the factors.
//!
//! For offsets in bytes that are sums of strides of 64 bits by places, which no condition keeps from wrapping.

use std::collections::{BTreeSet, HashMap};

use invar_ir::{InstKind, Op, Region, Value, Values};

use crate::condition::{Condition, Number};
use crate::kernel::Subject;
use crate::required;
use crate::shape::{Definition, Id};

/// As many as any integer has.
const ALL: u32 = 128;

/// Values looked at for one, at most.
const MOST: usize = 400;

struct Walk<'s, 'k> {
    subject: &'s Subject<'k>,
    conditions: Vec<Condition>,
    required: Vec<Condition>,
    /// The conditions that count, by their places.
    used: BTreeSet<usize>,
    /// Values that are being looked at. Of those a loop carries every round may count on the round before: no operation
    /// here gives less than the fewer of what it gets and of what it would give to zeros alone.
    open: BTreeSet<Value>,
    left: usize,
}

impl Subject<'_> {
    /// How many of the lowest bits of a value are zero, and by which conditions.
    pub fn zeros(&self, value: Value) -> (u32, BTreeSet<usize>) {
        let required = self.kernel.requires.iter();
        let mut walk = Walk {
            subject: self,
            conditions: self.conditions.borrow().clone(),
            required: required.filter_map(required::multiple).collect(),
            used: BTreeSet::new(),
            open: BTreeSet::new(),
            left: MOST,
        };
        let zeros = walk.of(value);
        (zeros, walk.used)
    }
}

impl Walk<'_, '_> {
    fn of(&mut self, value: Value) -> u32 {
        if let Some(number) = self.subject.run(value, &HashMap::new(), 0) {
            return if number == 0 {
                ALL
            } else {
                number.trailing_zeros()
            };
        }
        if self.left == 0 {
            return 0;
        }
        self.left -= 1;
        if !self.open.insert(value) {
            return ALL;
        }
        let zeros = match self.subject.shape.definition(value) {
            Some(Definition::Parameter(i)) => self.number(Number::Argument(i)),
            Some(Definition::Result(id, result)) => {
                let kind = self.subject.shape.kind(id);
                self.result(kind, result)
            }
            Some(Definition::Counter(id)) => match self.subject.shape.kind(id) {
                InstKind::For { lower, step, .. } => self.of(*lower).min(self.of(*step)),
                _other => 0,
            },
            Some(Definition::Carried(id, number)) => self.carried(id, number),
            None => 0,
        };
        self.open.remove(&value);
        zeros
    }

    /// A number that the launch says.
    fn number(&mut self, number: Number) -> u32 {
        let says = |condition: &Condition| match condition {
            Condition::Multiple(of, by) if *of == number => Some(by.trailing_zeros()),
            _other => None,
        };
        let required = self.required.iter().filter_map(says).max().unwrap_or(0);
        let all = self.conditions.iter().enumerate();
        let most = all
            .filter_map(|(i, condition)| Some((says(condition)?, i)))
            .max();
        match most {
            Some((zeros, i)) if zeros > required => {
                self.used.insert(i);
                zeros
            }
            _none => required,
        }
    }

    fn carried(&mut self, id: Id, number: usize) -> u32 {
        let kind = self.subject.shape.kind(id);
        let (InstKind::For { init, body, .. } | InstKind::Loop { init, body }) = kind else {
            return 0;
        };
        let mut rounds = Vec::new();
        continues(body, &mut rounds);
        if let Some(InstKind::Yield(values)) = body.insts.last().map(|inst| &inst.kind) {
            rounds.push(values);
        }
        let all = rounds.into_iter().chain([init]);
        let values: Option<Vec<Value>> = all.map(|values| values.get(number).copied()).collect();
        let values = values.unwrap_or_default().into_iter();
        values.map(|value| self.of(value)).min().unwrap_or(0)
    }

    fn result(&mut self, kind: &InstKind, result: usize) -> u32 {
        match kind {
            InstKind::Load(place) => {
                let number = self.subject.field_number(place, None);
                number.map_or(0, |number| self.number(number))
            }
            InstKind::If {
                then, otherwise, ..
            } => {
                let yields =
                    [then, otherwise].map(|side| match side.insts.last().map(|i| &i.kind) {
                        Some(InstKind::Yield(values)) => values.get(result).copied(),
                        _other => None,
                    });
                match yields {
                    [Some(a), Some(b)] => self.of(a).min(self.of(b)),
                    [Some(one), None] | [None, Some(one)] => self.of(one),
                    [None, None] => 0,
                }
            }
            InstKind::Op { op, args, .. } => self.op(*op, args),
            _other => 0,
        }
    }

    fn op(&mut self, op: Op, args: &[Value]) -> u32 {
        match op {
            Op::Add | Op::Sub | Op::Or | Op::Xor => self.of(args[0]).min(self.of(args[1])),
            Op::And => self.of(args[0]).max(self.of(args[1])),
            Op::Mul => self.of(args[0]).saturating_add(self.of(args[1])).min(ALL),
            Op::Neg => self.of(args[0]),
            Op::Cast | Op::AsType => {
                let is_integer = |value: &Value| self.subject.kernel.ty(*value).is_integer_scalar();
                if is_integer(&args[0]) {
                    self.of(args[0])
                } else {
                    0
                }
            }
            Op::Shl => match self.subject.run(args[1], &HashMap::new(), 0) {
                Some(count @ 0..64) => (self.of(args[0]) + count as u32).min(ALL),
                _other => self.of(args[0]),
            },
            _other => 0,
        }
    }
}

/// What a loop's rounds hand to the next.
fn continues<'k>(region: &'k Region, found: &mut Vec<&'k Values>) {
    for inst in &region.insts {
        match &inst.kind {
            InstKind::Continue(values) => found.push(values),
            InstKind::If {
                then, otherwise, ..
            } => {
                continues(then, found);
                continues(otherwise, found);
            }
            _other => {}
        }
    }
}
