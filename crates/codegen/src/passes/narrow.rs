//! Narrow integers: what is computed from bytes and other small integers in 32 bits, and certainly fits in 8 or 16, is
//! computed in so many.
//!
//! ```text
//! a = cast u32 x[i]; b = cast u32 x[i + 1]; store cast u8 ((a + b) / 2)   ->   the same of casts to u16
//! ```
//!
//! This is for pictures of bytes, cellular automata and quantised numbers, whose authors widen what they load so that
//! sums do not wrap. Vectors have twice as many of half the width.
//!
//! A value of 32 bits is held by its low 8 or 16: what it stands for, as a signed number, lies in an interval that those
//! of so many bits have without a sign, or with one. Groups of values that are computed from each other are narrowed
//! where that saves more than widening what others use of them. In 8 bits nothing is multiplied, divided or shifted, for
//! which processors have no instructions.
//!
//! Deliberately absent: vectors; what loops and branches hand on.

use std::collections::{HashMap, HashSet};

use invar_ir::inst::InstKind;
use invar_ir::{Const, Imm, Inst, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo};

use crate::analysis::ranges::{self, Range};

use super::common::{change_body, push_const, push_inst};

/// Bits of the integers that are narrowed.
const WIDE_BITS: u32 = 32;
/// What widening a value costs, in narrow operations.
const WIDENING: i64 = 2;

/// Where a value lies.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Interval {
    low: i64,
    high: i64,
}

impl Interval {
    const fn new(low: i64, high: i64) -> Interval {
        Interval { low, high }
    }

    fn of((low, high): Range) -> Option<Interval> {
        Some(Interval::new(low.try_into().ok()?, high.try_into().ok()?))
    }

    fn range(self) -> Range {
        (self.low.into(), self.high.into())
    }

    /// If so many bits have all of it, with a sign or without.
    fn if_fits(self, bits: u32) -> Option<Interval> {
        let signed = self.low >= -1 << (bits - 1) && self.high < 1 << (bits - 1);
        let unsigned = self.low >= 0 && self.high < 1 << bits;
        (signed || unsigned).then_some(self)
    }

    fn is_signed(self) -> bool {
        self.low < 0
    }

    fn and(self, other: Interval) -> Interval {
        Interval::new(self.low.min(other.low), self.high.max(other.high))
    }
}

/// What is done with a value that fits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A conversion of a smaller integer.
    Widened,
    Constant,
    /// Computed from others that fit, by so much work.
    Computed(u32),
}

/// The values of a kernel that fit.
pub(super) struct Found {
    /// Into how many bits.
    bits: u32,
    values: HashMap<Value, (Interval, Role)>,
    /// What each is computed from or compared with: the first of its group, in the end.
    groups: HashMap<Value, Value>,
    /// Comparisons of values that fit, each with one of them that is no constant.
    compared: HashMap<Value, Value>,
}

pub(super) fn run(kernel: &mut Kernel) {
    for bits in [8, 16] {
        narrow(kernel, bits);
    }
}

fn narrow(kernel: &mut Kernel, bits: u32) {
    let found = Found::of(kernel, bits);
    let chosen = found.worth_it(kernel);
    if chosen.is_empty() {
        return;
    }
    let mut values = std::mem::take(&mut kernel.values);
    let mut narrow = Narrow {
        found: &found,
        chosen: &chosen,
        used_wide: used_wide(kernel, &found, &chosen),
        values: &mut values,
        narrowed: HashMap::new(),
    };
    change_body(kernel, |_, body| narrow.region(body));
    kernel.values = values;
}

impl Found {
    fn of(kernel: &Kernel, bits: u32) -> Found {
        let mut found = Found {
            bits,
            values: HashMap::new(),
            groups: HashMap::new(),
            compared: HashMap::new(),
        };
        found.region(kernel, &kernel.body);
        found
    }

    /// The values that fit into bytes.
    pub(super) fn in_bytes(kernel: &Kernel) -> Found {
        Found::of(kernel, 8)
    }

    /// If a value fits, and is not less than 0.
    pub(super) fn is_natural(&self, value: Value) -> bool {
        self.interval(value).is_some_and(|i| !i.is_signed())
    }

    fn region(&mut self, kernel: &Kernel, region: &Region) {
        for inst in &region.insts {
            self.inst(kernel, inst);
            for inner in inst.kind.regions() {
                self.region(kernel, inner);
            }
        }
    }

    fn interval(&self, value: Value) -> Option<Interval> {
        self.values.get(&value).map(|(interval, _)| *interval)
    }

    fn inst(&mut self, kernel: &Kernel, inst: &Inst) {
        let &[result] = &inst.results[..] else {
            return;
        };
        let Type::Scalar(scalar) = kernel.ty(result) else {
            return;
        };
        if let InstKind::Const(constant) = inst.kind {
            let value = i64::from(constant.bits as u32 as i32);
            let interval = Interval::new(value, value).if_fits(self.bits);
            if let Some(interval) = interval.filter(|_| is_wide(scalar)) {
                self.values.insert(result, (interval, Role::Constant));
            }
            return;
        }
        let Some((op, _, args)) = inst.kind.as_op() else {
            return;
        };
        let args = args.to_vec();
        if is_comparison(op) {
            self.comparison(kernel, op, &args, result);
        } else if !is_wide(scalar) {
        } else if op == Op::Cast {
            if let Some(interval) = range_of_small(kernel.ty(args[0]), self.bits) {
                self.values.insert(result, (interval, Role::Widened));
            }
        } else if let Some((interval, work)) = self.computed(op, &args, scalar) {
            let role = Role::Computed(work);
            self.values.insert(result, (interval, role));
            for arg in args {
                self.join(result, arg);
            }
        }
    }

    /// Where the result of an operation lies, and how much narrow operands save.
    fn computed(&self, op: Op, args: &[Value], scalar: Scalar) -> Option<(Interval, u32)> {
        let of = |n: usize| self.interval(args[n]);
        let constant = |n: usize| of(n).filter(|i| i.low == i.high).map(|i| i.low);
        let natural = |n: usize| of(n).filter(|i| !i.is_signed());
        let has_op =
            self.bits > 8 || !matches!(op, Op::Mul | Op::Shl | Op::Shr | Op::Div | Op::Rem);
        if !has_op {
            return None;
        }
        let args = if op == Op::Select { &args[..2] } else { args };
        let own: Option<Vec<Range>> = (0..args.len())
            .map(|n| of(n).map(Interval::range))
            .collect();
        let own = own?;
        let work = match op {
            // LLVM multiplies what was widened in 16 bits itself.
            Op::Add | Op::Sub | Op::Mul | Op::Select => 1,
            Op::Shl => constant(1).filter(|by| (0..16).contains(by)).map(|_| 1)?,
            Op::Shr => {
                natural(0)?;
                constant(1).filter(|by| (0..16).contains(by)).map(|_| 1)?
            }
            Op::Div | Op::Rem => {
                natural(0)?;
                constant(1).filter(|by| *by > 0).map(|_| 4)?
            }
            Op::And | Op::Or | Op::Xor => {
                natural(0)?;
                natural(1)?;
                1
            }
            Op::Min | Op::Max => {
                let both = of(0)?.and(of(1)?);
                if both.is_signed() && !scalar.is_signed_integer() {
                    return None;
                }
                both.if_fits(self.bits)?;
                1
            }
            _other => return None,
        };
        let interval = Interval::of(ranges::of_operation(op, &own, WIDE_BITS)?)?;
        Some((interval.if_fits(self.bits)?, work))
    }

    fn comparison(&mut self, kernel: &Kernel, op: Op, args: &[Value], result: Value) {
        let Type::Scalar(scalar) = kernel.ty(args[0]) else {
            return;
        };
        let (Some(a), Some(b)) = (self.interval(args[0]), self.interval(args[1])) else {
            return;
        };
        let both = a.and(b);
        let tells_equal = matches!(op, Op::Eq | Op::Ne);
        let is_right = tells_equal || scalar.is_signed_integer() || !both.is_signed();
        let is_constant = |arg: &Value| self.values[arg].1 == Role::Constant;
        let member = args.iter().find(|arg| !is_constant(arg)).copied();
        if let Some(member) = member.filter(|_| is_right && both.if_fits(self.bits).is_some()) {
            self.compared.insert(result, member);
            for arg in args {
                self.join(member, *arg);
            }
        }
    }

    fn first(&self, value: Value) -> Value {
        let mut at = value;
        while let Some(next) = self.groups.get(&at) {
            at = *next;
        }
        at
    }

    /// Puts two values into one group. Constants are in none.
    fn join(&mut self, a: Value, b: Value) {
        let is_member = |v: &Value| {
            let role = self.values.get(v).map(|(_, role)| *role);
            role.is_some_and(|role| role != Role::Constant)
        };
        if is_member(&a) && is_member(&b) {
            let (a, b) = (self.first(a), self.first(b));
            if a != b {
                self.groups.insert(b, a);
            }
        }
    }

    /// The groups that save more than they cost, by their first values.
    fn worth_it(&self, kernel: &Kernel) -> HashSet<Value> {
        let mut saved: HashMap<Value, i64> = HashMap::new();
        let mut add = |value: Value, work: i64| {
            *saved.entry(self.first(value)).or_default() += work;
        };
        for (value, (_, role)) in &self.values {
            if let Role::Computed(work) = role {
                add(*value, i64::from(*work));
            }
        }
        for member in self.compared.values() {
            add(*member, 1);
        }
        let mut widened = HashSet::new();
        kernel.for_each_inst(&mut |inst| {
            for value in self.others(kernel, inst) {
                let is_computed = matches!(self.values[&value].1, Role::Computed(_));
                if is_computed && widened.insert(value) {
                    add(value, -WIDENING);
                }
            }
            // Less is to be packed.
            if let Some(value) = self.packed(kernel, inst) {
                add(value, 1);
            }
        });
        let worth = saved.into_iter().filter(|(_, saved)| *saved > 0);
        worth.map(|(first, _)| first).collect()
    }

    /// The value that an instruction converts to an integer of at most so many bits.
    fn packed(&self, kernel: &Kernel, inst: &Inst) -> Option<Value> {
        let (op, _, args) = inst.kind.as_op()?;
        let small = range_of_small(kernel.ty(*inst.results.first()?), self.bits).is_some();
        let is_member = |v: &&Value| {
            let known = self.values.get(v);
            known.is_some_and(|(_, role)| *role != Role::Constant)
        };
        let packs = op == Op::Cast && small && kernel.ty(inst.results[0]) != Type::BOOL;
        args.first().filter(is_member).copied().filter(|_| packs)
    }

    /// The values that fit, and that an instruction uses otherwise than to compute or to compare others that do.
    fn others(&self, kernel: &Kernel, inst: &Inst) -> Vec<Value> {
        let results = &inst.results;
        let inside = results.iter().any(|v| {
            let computed = self.values.get(v).map(|(_, role)| *role);
            matches!(computed, Some(Role::Computed(_))) || self.compared.contains_key(v)
        });
        let mut used = Vec::new();
        if !inside && self.packed(kernel, inst).is_none() {
            inst.kind.for_each_use(|v| {
                let known = self.values.get(&v).map(|(_, role)| *role);
                if known.is_some_and(|role| role != Role::Constant) {
                    used.push(v);
                }
            });
        }
        used
    }
}

/// The values of chosen groups that somebody uses as they were.
fn used_wide(kernel: &Kernel, found: &Found, chosen: &HashSet<Value>) -> HashSet<Value> {
    let mut used = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        let others = found.others(kernel, inst).into_iter();
        used.extend(others.filter(|v| chosen.contains(&found.first(*v))));
    });
    used
}

pub(super) fn is_wide(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::U32 | Scalar::I32)
}

pub(super) fn is_comparison(op: Op) -> bool {
    matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
}

/// Where the numbers of a type of at most so many bits lie.
fn range_of_small(ty: Type, bits: u32) -> Option<Interval> {
    let Type::Scalar(scalar) = ty else {
        return None;
    };
    let interval = match scalar {
        Scalar::Bool => Interval::new(0, 1),
        Scalar::U8 => Interval::new(0, u8::MAX.into()),
        Scalar::I8 => Interval::new(i8::MIN.into(), i8::MAX.into()),
        Scalar::U16 => Interval::new(0, u16::MAX.into()),
        Scalar::I16 => Interval::new(i16::MIN.into(), i16::MAX.into()),
        _other => return None,
    };
    (scalar == Scalar::Bool || scalar.bits() <= bits).then_some(interval)
}

/// The change of a kernel.
struct Narrow<'a> {
    found: &'a Found,
    chosen: &'a HashSet<Value>,
    used_wide: HashSet<Value>,
    values: &'a mut Vec<ValueInfo>,
    /// The narrow values, all without a sign.
    narrowed: HashMap<Value, Value>,
}

impl Narrow<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut done = Vec::with_capacity(region.insts.len());
        for mut inst in std::mem::take(&mut region.insts) {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            self.inst(inst, &mut done);
        }
        region.insts = done;
    }

    /// The narrow type with a sign, or that without.
    fn scalar(&self, signed: bool) -> Scalar {
        match (self.found.bits, signed) {
            (8, false) => Scalar::U8,
            (8, true) => Scalar::I8,
            (_, false) => Scalar::U16,
            (_, true) => Scalar::I16,
        }
    }

    fn is_chosen(&self, value: Value) -> bool {
        self.chosen.contains(&self.found.first(value))
    }

    fn cast(&mut self, done: &mut Vec<Inst>, value: Value, to: Scalar, span: Span) -> Value {
        let ty = Type::Scalar(to);
        let kind = InstKind::Op {
            op: Op::Cast,
            imm: Imm::Type(ty),
            args: [value].into_iter().collect(),
        };
        push_inst(self.values, done, kind, ty, span)
    }

    fn inst(&mut self, mut inst: Inst, done: &mut Vec<Inst>) {
        let span = inst.span;
        let result = inst.results.first().copied();
        let known = result.and_then(|v| self.found.values.get(&v).map(|known| (v, *known)));
        match known {
            Some((value, (_, Role::Constant))) => {
                let InstKind::Const(constant) = inst.kind else {
                    unreachable!("it is a constant");
                };
                done.push(inst);
                let narrow = Const {
                    scalar: self.scalar(false),
                    bits: constant.bits & ((1 << self.found.bits) - 1),
                };
                let narrow = push_const(self.values, done, narrow, span);
                self.narrowed.insert(value, narrow);
            }
            Some((value, (_, Role::Widened))) if self.is_chosen(value) => {
                let (_, _, args) = inst.kind.as_op().expect("a conversion");
                let small = args[0];
                done.push(inst);
                let narrow = match self.values[small.0 as usize].ty {
                    ty if ty == Type::Scalar(self.scalar(false)) => small,
                    _other => self.cast(done, small, self.scalar(false), span),
                };
                self.narrowed.insert(value, narrow);
            }
            Some((value, (interval, Role::Computed(_)))) if self.is_chosen(value) => {
                self.computed(inst, (value, interval), done);
            }
            _other => {
                self.user(&mut inst, done);
                done.push(inst);
            }
        }
    }

    /// The operands of an operation, of 16 bits: signed ones if it tells signs and one of them has one.
    fn operands(&mut self, op: Op, args: &[Value], done: &mut Vec<Inst>, span: Span) -> Vec<Value> {
        let intervals = args.iter().filter_map(|arg| self.found.interval(*arg));
        let both = intervals.reduce(Interval::and);
        let tells = is_comparison(op) || matches!(op, Op::Min | Op::Max);
        let signed = tells && both.is_some_and(Interval::is_signed);
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            operands.push(match self.narrowed.get(arg).copied() {
                Some(value) if signed => self.cast(done, value, self.scalar(true), span),
                Some(value) => value,
                None => *arg,
            });
        }
        operands
    }

    fn computed(&mut self, inst: Inst, (value, interval): (Value, Interval), done: &mut Vec<Inst>) {
        let span = inst.span;
        let Some((op, imm, args)) = inst.kind.as_op() else {
            unreachable!("it is an operation");
        };
        let (imm, args) = (imm, args.to_vec());
        let operands = self.operands(op, &args, done, span);
        let ty = self.values[operands[0].0 as usize].ty;
        let kind = InstKind::Op {
            op,
            imm,
            args: operands.into_iter().collect(),
        };
        let mut narrow = push_inst(self.values, done, kind, ty, span);
        if ty != Type::Scalar(self.scalar(false)) {
            narrow = self.cast(done, narrow, self.scalar(false), span);
        }
        self.narrowed.insert(value, narrow);
        if self.used_wide.contains(&value) {
            let wide = self.values[value.0 as usize].ty;
            if interval.is_signed() {
                narrow = self.cast(done, narrow, self.scalar(true), span);
            }
            done.push(Inst {
                kind: InstKind::Op {
                    op: Op::Cast,
                    imm: Imm::Type(wide),
                    args: [narrow].into_iter().collect(),
                },
                results: [value].into_iter().collect(),
                span,
            });
        }
    }

    /// An instruction that is none of a group takes narrow operands where it compares or packs them.
    fn user(&mut self, inst: &mut Inst, done: &mut Vec<Inst>) {
        let span = inst.span;
        let result = inst.results.first().copied();
        let member = result.and_then(|v| self.found.compared.get(&v).copied());
        let compares = member.is_some_and(|member| self.is_chosen(member));
        let Some((op, imm, args)) = inst.kind.as_op() else {
            return;
        };
        let (imm, args) = (imm, args.to_vec());
        let to = result.map(|v| self.values[v.0 as usize].ty);
        let packs = op == Op::Cast
            && to.is_some_and(|ty| {
                ty != Type::BOOL && range_of_small(ty, self.found.bits).is_some()
            })
            && self
                .found
                .values
                .get(&args[0])
                .is_some_and(|(_, role)| *role != Role::Constant)
            && self.is_chosen(args[0]);
        if compares || packs {
            let args = self.operands(op, &args, done, span);
            inst.kind = InstKind::Op {
                op,
                imm,
                args: args.into_iter().collect(),
            };
        }
    }
}
