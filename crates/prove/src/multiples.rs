//! Offsets in bytes that have to be multiples (L4).
//!
//! Whether one is is asked like whether an access is in bounds. Of products that wrap the solver knows nothing, but their
//! lowest bits are those of the factors: of sums of strides of 64 bits by places, which no condition keeps from wrapping,
//! it is told how many are zero.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::{InstKind, Op, Region, Scalar, Value, Values};

use crate::condition::{Condition, Number};
use crate::linear::{Formula, Linear};
use crate::required;
use crate::shape::{Definition, Id};
use crate::subject::{Finding, Offset, Subject};
use crate::thread::Thread;

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
    /// Values that are being looked at. Of those a loop carries every iteration may count on the iteration before: no
    /// operation here gives less than the fewer of what it gets and of what it would give to zeros alone.
    open: BTreeSet<Value>,
    left: usize,
}

impl Subject<'_> {
    /// Whether a value is one that the kernel says.
    pub fn is_constant(&self, value: Value) -> bool {
        self.run(value, &HashMap::new(), 0).is_some()
    }

    /// Finds them, once for all of a list of instructions.
    pub fn find_offsets(&mut self) {
        let mut seen = HashSet::new();
        for (id, statement) in self.shape.statements.iter().enumerate() {
            let InstKind::Op { op, args, .. } = &statement.inst.kind else {
                continue;
            };
            if *op != Op::ShrExact {
                continue;
            }
            let value = args[0];
            let bits = self.kernel.ty(value).scalar().map_or(64, Scalar::bits);
            let count = self.run(args[1], &HashMap::new(), 0);
            let of = count.map(|count| 1i128 << count.rem_euclid(i128::from(bits)));
            if of != Some(1) && seen.insert((value, of, statement.parent)) {
                self.offsets.push(Offset { id, value, of });
            }
        }
    }

    /// Whether an offset in bytes can be no multiple.
    pub fn offset(&self, number: usize, limits: Option<i128>) -> Finding {
        let offset = self.offsets[number];
        self.used.borrow_mut().clear();
        let (zeros, by) = self.zeros(offset.value);
        if offset.of.is_some_and(|of| of.trailing_zeros() <= zeros) {
            return Finding::Excluded(by);
        }
        let (mut q, marks) = self.query(true);
        q.condition_facts = marks;
        let mut t = Thread::new(1, self.any_iterations(offset.id));
        t.asks = true;
        self.reach(&mut q, &mut t, offset.id);
        let value = self.int(&mut q, &mut t, offset.value);
        let Some((value, of)) = value.zip(offset.of) else {
            return Finding::Open;
        };
        let Some((_, rest)) = self.floor(&mut q, &value, of) else {
            return Finding::Open;
        };
        match Formula::lt(&Linear::constant(0), &rest.form) {
            Some(off) => self.ask(&q, &t.path, off, limits),
            None => Finding::Open,
        }
    }

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
        let mut iterations = Vec::new();
        continues(body, &mut iterations);
        if let Some(InstKind::Yield(values)) = body.insts.last().map(|inst| &inst.kind) {
            iterations.push(values);
        }
        let all = iterations.into_iter().chain([init]);
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

/// What a loop's iterations hand to the next.
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
