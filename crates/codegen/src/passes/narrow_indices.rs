//! Narrow indices: a 64-bit index that is computed from smaller integers is computed in 32 bits.
//!
//! ```text
//! w = cast u64 i; j = as_type i64 w; load x[j]   ->   load x[i]
//! ```
//!
//! This is for languages with pointers, such as Metal's, in which every index becomes as wide as an address, and for
//! targets without 64-bit integers. An index is a number (B4), whatever its type.
//!
//! - What certainly fits 32 bits is computed modulo 2^32: sums, products, shifts to the left and bits have the low bits of
//!   what their operands' low bits give.
//! - A natural number that may be larger is computed as the lesser of it and 2^32 - 1, which no object of such a target
//!   has as an index. With `M` for that, and `a'` for `min(a, M)`:
//!
//! ```text
//! min(a + b, M) = min(a' + b', M)        min(a * b, M) = min(a' * b', M)
//! ```
//!
//! Deliberately absent: what loops and branches hand on; what is loaded with 64 bits; differences that may be negative and
//! may be large.

use std::collections::HashMap;

use invar_ir::inst::InstKind;
use invar_ir::{Const, Imm, Inst, Kernel, Op, Region, Role, Scalar, Span, Type, Value, ValueInfo};

use super::common::{change_body, definitions, new_value, push_const, push_inst};
use crate::analysis::ranges::{Known, Range, Ranges, analyse};

/// No object has an element of this number.
const BEYOND: u64 = 0xffff_ffff;

/// How a wide number is computed in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Its low 32 bits.
    Low,
    /// The lesser of it and [`BEYOND`]; it is natural.
    Capped,
}

/// What an index becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    /// The number of another value.
    Other(Value),
    /// A form, which is the number without a sign.
    Natural(Form),
    /// The low bits, which are the number with a sign.
    Signed,
}

/// Narrows the indices of a kernel; whether there were any.
pub(crate) fn run(kernel: &mut Kernel, known: &Known) -> bool {
    convert(kernel);
    let ranges = analyse(kernel, known);
    let found = {
        let mut found = Finder {
            kernel,
            definitions: definitions(kernel),
            ranges: &ranges,
            indices: HashMap::new(),
            forms: HashMap::new(),
        };
        kernel.for_each_inst(&mut |inst| found.accesses(inst));
        (found.indices, found.forms)
    };
    let (indices, forms) = found;
    if indices.is_empty() {
        return false;
    }
    let mut values = std::mem::take(&mut kernel.values);
    let mut narrow = Narrow {
        indices,
        forms,
        ranges: &ranges,
        values: &mut values,
        made: HashMap::new(),
        signed: HashMap::new(),
        numbers: HashMap::new(),
    };
    change_body(kernel, |_, body| narrow.region(body));
    kernel.values = values;
    true
}

/// A number without a sign that was widened and is then taken for one with a sign, or the other way, is the same number:
/// `as_type i64 (cast u64 x)` is `cast i64 x`.
fn convert(kernel: &mut Kernel) {
    let mut from: HashMap<Value, Value> = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        if let Some((Op::Cast, _, &[x])) = inst.kind.as_op() {
            let is_natural = matches!(
                kernel.ty(x),
                Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32)
            );
            if is_natural && is_wide(kernel.ty(inst.results[0])) {
                from.insert(inst.results[0], x);
            }
        }
    });
    change_body(kernel, |kernel, body| convert_in(kernel, &from, body));
}

fn convert_in(kernel: &Kernel, from: &HashMap<Value, Value>, region: &mut Region) {
    for inst in &mut region.insts {
        for inner in inst.kind.regions_mut() {
            convert_in(kernel, from, inner);
        }
        let is_wide = inst.results.first().is_some_and(|v| is_wide(kernel.ty(*v)));
        if let InstKind::Op { op, args, .. } = &mut inst.kind
            && *op == Op::AsType
            && is_wide
            && let Some(x) = from.get(&args[0])
        {
            *op = Op::Cast;
            args[0] = *x;
        }
    }
}

struct Finder<'a> {
    kernel: &'a Kernel,
    definitions: Vec<Option<&'a Inst>>,
    ranges: &'a Ranges,
    indices: HashMap<Value, Index>,
    /// The forms that are needed of wide values.
    forms: HashMap<Value, Vec<Form>>,
}

fn is_wide(ty: Type) -> bool {
    matches!(ty, Type::Scalar(Scalar::I64 | Scalar::U64))
}

/// Whether 32 bits without a sign hold all of a range.
fn is_u32((least, most): Range) -> bool {
    least >= 0 && most <= i128::from(u32::MAX)
}

/// Whether 32 bits with a sign do.
fn is_i32((least, most): Range) -> bool {
    least >= i128::from(i32::MIN) && most <= i128::from(i32::MAX)
}

impl<'a> Finder<'a> {
    fn accesses(&mut self, inst: &Inst) {
        let mut wide = Vec::new();
        inst.kind.for_each_operand(|role, value| {
            if matches!(role, Role::Index | Role::Part) && is_wide(self.kernel.ty(value)) {
                wide.push(value);
            }
        });
        for value in wide {
            if !self.indices.contains_key(&value)
                && let Some(index) = self.index(value)
            {
                self.indices.insert(value, index);
                match index {
                    Index::Other(_) => {}
                    Index::Natural(form) => self.need(value, form),
                    Index::Signed => self.need(value, Form::Low),
                }
            }
        }
    }

    /// An operation and what it is of, if that is what computes a value.
    fn op(&self, value: Value) -> Option<(Op, &'a [Value])> {
        let inst = self.definitions[value.0 as usize]?;
        inst.kind.as_op().map(|(op, _, args)| (op, args))
    }

    /// Where a value lies.
    fn range(&self, value: Value) -> Option<Range> {
        let range = self.ranges.of(value);
        match self.op(value) {
            Some((Op::AsType, &[from])) if is_wide(self.kernel.ty(value)) => {
                let of = self.ranges.of(from);
                let fits = |(least, most): &Range| *least >= 0 && *most <= i128::from(i64::MAX);
                of.filter(fits).or(range)
            }
            _computed => range,
        }
    }

    /// Whether what computes a value gives the number that it is of integers as they are in mathematics.
    fn is_exact(&self, value: Value) -> bool {
        match self.op(value) {
            Some((Op::AsType, &[from])) => self.ranges.of(from) == self.range(value),
            _other => self.ranges.never_wraps(value),
        }
    }

    fn index(&self, value: Value) -> Option<Index> {
        if let Some(other) = self.widened(value) {
            return Some(Index::Other(other));
        }
        let range = self.range(value)?;
        match () {
            () if is_u32(range) && self.has(value, Form::Low) => Some(Index::Natural(Form::Low)),
            () if is_i32(range) && self.has(value, Form::Low) => Some(Index::Signed),
            () if self.has(value, Form::Capped) => Some(Index::Natural(Form::Capped)),
            () => None,
        }
    }

    /// The integer of at most 32 bits that a wide number is.
    fn widened(&self, value: Value) -> Option<Value> {
        let (op, args) = self.op(value)?;
        let &[from] = args else {
            return None;
        };
        let (ty, range) = (self.kernel.ty(from), self.range(from)?);
        let same =
            range.0 >= 0 || op == Op::Cast && self.kernel.ty(value) == Type::Scalar(Scalar::I64);
        match op {
            Op::Cast if same && !is_wide(ty) => Some(from),
            Op::Cast | Op::AsType if is_wide(ty) && self.is_exact(value) => self.widened(from),
            _computed => None,
        }
    }

    /// Whether a form of a value can be computed.
    fn has(&self, value: Value, form: Form) -> bool {
        let Some(inst) = self.definitions[value.0 as usize] else {
            return false;
        };
        if matches!(inst.kind, InstKind::Const(_)) {
            return form == Form::Low || self.range(value).is_some_and(|r| r.0 >= 0);
        }
        self.needs(value, form)
            .is_some_and(|needed| needed.iter().all(|(of, form)| self.has(*of, *form)))
    }

    /// The forms of other wide values that a form of one is computed from; `None` if it is not.
    fn needs(&self, value: Value, form: Form) -> Option<Vec<(Value, Form)>> {
        let (op, args) = self.op(value)?;
        let first = *args.first()?;
        let one = |of: Value, form| match self.range(of).is_some_and(is_u32) {
            true => (of, Form::Low),
            false => (of, form),
        };
        let all = |form| args.iter().map(|of| one(*of, form)).collect();
        if form == Form::Capped {
            let is_natural = |of: &Value| self.range(*of).is_some_and(|r| r.0 >= 0);
            if !self.is_exact(value) || !is_natural(&first) {
                return None;
            }
            return match op {
                Op::Cast | Op::AsType if is_wide(self.kernel.ty(first)) => Some(all(form)),
                Op::Add | Op::Mul | Op::Min | Op::Max if is_natural(&args[1]) => Some(all(form)),
                Op::Select if is_natural(&args[1]) => {
                    Some(vec![one(first, form), one(args[1], form)])
                }
                Op::Shl => self.shift(args[1]).map(|_| vec![one(first, form)]),
                _other => None,
            };
        }
        match op {
            Op::Cast => match self.kernel.ty(first) {
                ty if is_wide(ty) => Some(all(form)),
                Type::Scalar(s) if s.is_integer() || s == Scalar::Bool => Some(Vec::new()),
                _other => None,
            },
            Op::AsType => is_wide(self.kernel.ty(first)).then(|| all(form)),
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor => Some(all(form)),
            Op::Shl => self.shift(args[1]).map(|_| vec![one(first, form)]),
            Op::Select => Some(vec![one(first, form), one(args[1], form)]),
            // Of naturals that fit.
            Op::Div | Op::Rem | Op::Min | Op::Max => {
                let fits = |of: &Value| self.range(*of).is_some_and(is_u32);
                args.iter().all(fits).then(|| all(form))
            }
            Op::Shr => {
                let fits = self.range(first).is_some_and(is_u32);
                self.shift(args[1])
                    .filter(|_| fits)
                    .map(|_| vec![one(first, form)])
            }
            _other => None,
        }
    }

    /// By how many bits something is shifted: a constant below 32.
    fn shift(&self, by: Value) -> Option<u32> {
        let (least, most) = self.range(by)?;
        (least == most && (0..32).contains(&least)).then_some(least as u32)
    }

    fn need(&mut self, value: Value, form: Form) {
        let forms = self.forms.entry(value).or_default();
        if forms.contains(&form) {
            return;
        }
        forms.push(form);
        for (of, form) in self.needs(value, form).unwrap_or_default() {
            self.need(of, form);
        }
    }
}

struct Narrow<'a> {
    indices: HashMap<Value, Index>,
    forms: HashMap<Value, Vec<Form>>,
    ranges: &'a Ranges,
    values: &'a mut Vec<ValueInfo>,
    made: HashMap<(Value, Form), Value>,
    /// The indices that are numbers with a sign.
    signed: HashMap<Value, Value>,
    /// Constants that were made.
    numbers: HashMap<Value, u64>,
}

impl Narrow<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut insts = Vec::with_capacity(region.insts.len());
        for mut inst in std::mem::take(&mut region.insts) {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            self.accesses(&mut inst);
            let made = inst.results.first().copied();
            let of = made.filter(|v| self.forms.contains_key(v));
            insts.push(inst);
            if let Some(value) = of {
                let inst = insts[insts.len() - 1].clone();
                for form in self.forms[&value].clone() {
                    let is = self.form(&mut insts, &inst, form);
                    self.made.insert((value, form), is);
                }
                if self
                    .indices
                    .get(&value)
                    .is_some_and(|i| *i == Index::Signed)
                {
                    let low = self.made[&(value, Form::Low)];
                    let signed = self.push(&mut insts, Op::AsType, &[low], Type::I32, inst.span);
                    self.signed.insert(value, signed);
                }
            }
        }
        region.insts = insts;
    }

    /// The narrow indices of an access.
    fn accesses(&self, inst: &mut Inst) {
        let mut replaced = Vec::new();
        inst.kind.for_each_operand(|role, value| {
            let index = self.indices.get(&value);
            let index = index.filter(|_| matches!(role, Role::Index | Role::Part));
            replaced.push(index.map(|index| match index {
                Index::Other(other) => *other,
                Index::Natural(form) => self.made[&(value, *form)],
                Index::Signed => self.signed[&value],
            }));
        });
        let mut replaced = replaced.into_iter();
        inst.kind.for_each_use_mut(|value| {
            if let Some(Some(narrow)) = replaced.next() {
                *value = narrow;
            }
        });
    }

    fn push(
        &mut self,
        insts: &mut Vec<Inst>,
        op: Op,
        args: &[Value],
        ty: Type,
        span: Span,
    ) -> Value {
        let imm = match op {
            Op::Cast | Op::AsType => Imm::Type(ty),
            _other => Imm::None,
        };
        let args = args.iter().copied().collect();
        push_inst(self.values, insts, InstKind::Op { op, imm, args }, ty, span)
    }

    fn number(&mut self, insts: &mut Vec<Inst>, number: u64, span: Span) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: number,
        };
        let value = push_const(self.values, insts, constant, span);
        self.numbers.insert(value, number);
        value
    }

    /// Computes a form of what an instruction computes.
    fn form(&mut self, insts: &mut Vec<Inst>, inst: &Inst, form: Form) -> Value {
        let span = inst.span;
        if let InstKind::Const(constant) = inst.kind {
            let bits = match form {
                Form::Low => constant.bits & BEYOND,
                Form::Capped => constant.bits.min(BEYOND),
            };
            return self.number(insts, bits, span);
        }
        let Some((op, _, args)) = inst.kind.as_op() else {
            return new_value(self.values, Type::U32);
        };
        let first = args[0];
        if op == Op::Cast && !is_wide(self.values[first.0 as usize].ty) {
            return match self.values[first.0 as usize].ty {
                Type::U32 => first,
                _smaller => self.push(insts, Op::Cast, &[first], Type::U32, span),
            };
        }
        let fits = form == Form::Low;
        // Of what fits only the low bits are made, which are the number.
        let narrow = |of: usize| {
            let low = || self.made.get(&(args[of], Form::Low));
            let made = self.made.get(&(args[of], form)).or_else(low);
            made.copied()
        };
        let operands: Vec<Option<Value>> = (0..args.len()).map(narrow).collect();
        let a = operands[0].unwrap_or(first);
        match (op, fits) {
            (Op::Cast | Op::AsType, _) => a,
            (Op::Shl | Op::Shr, true) => {
                let by = self.shift(insts, args[1], span);
                self.push(insts, op, &[a, by], Type::U32, span)
            }
            (Op::Select, _) => {
                let args = [a, operands[1].unwrap_or(a), args[2]];
                self.push(insts, op, &args, Type::U32, span)
            }
            (_, true) | (Op::Min | Op::Max, false) => {
                let args = [a, operands[1].unwrap_or(a)];
                self.push(insts, op, &args, Type::U32, span)
            }
            (Op::Shl, false) => {
                let (by, _) = self.ranges.of(args[1]).unwrap_or_default();
                let by = self.number(insts, 1 << by, span);
                self.product(insts, a, by, span)
            }
            (Op::Mul, false) => {
                let (a, b) = (a, operands[1].unwrap_or(a));
                self.product(insts, a, b, span)
            }
            // A sum: it wrapped if it is less than an operand.
            (_, false) => {
                let (a, b) = (a, operands[1].unwrap_or(a));
                let sum = self.push(insts, Op::Add, &[a, b], Type::U32, span);
                let wrapped = self.push(insts, Op::Lt, &[sum, a], Type::BOOL, span);
                self.capped(insts, sum, wrapped, span)
            }
        }
    }

    fn shift(&mut self, insts: &mut Vec<Inst>, by: Value, span: Span) -> Value {
        let (by, _) = self.ranges.of(by).unwrap_or_default();
        self.number(insts, by as u64, span)
    }

    fn product(&mut self, insts: &mut Vec<Inst>, a: Value, b: Value, span: Span) -> Value {
        let product = self.push(insts, Op::Mul, &[a, b], Type::U32, span);
        let constant = [(a, b), (b, a)].into_iter().find_map(|(x, by)| {
            let by = self.numbers.get(&by).filter(|by| **by != 0);
            by.map(|by| (x, *by))
        });
        let over = match constant {
            Some((x, by)) => {
                let most = self.number(insts, BEYOND / by, span);
                self.push(insts, Op::Gt, &[x, most], Type::BOOL, span)
            }
            None => {
                let high = self.push(insts, Op::MulHi, &[a, b], Type::U32, span);
                let none = self.number(insts, 0, span);
                self.push(insts, Op::Ne, &[high, none], Type::BOOL, span)
            }
        };
        self.capped(insts, product, over, span)
    }

    /// A number, or [`BEYOND`].
    fn capped(&mut self, insts: &mut Vec<Inst>, number: Value, over: Value, span: Span) -> Value {
        let beyond = self.number(insts, BEYOND, span);
        self.push(insts, Op::Select, &[number, beyond, over], Type::U32, span)
    }
}
