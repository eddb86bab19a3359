//! Sums that saturate: a sum of bytes that is only compared with small constants is computed in bytes, and stays at 255.
//!
//! ```text
//! a, b, ... = cast u32 of bytes; sum = a + b + ...; eq sum, 3   ->   the same of bytes whose sums are at most 255
//! ```
//!
//! This is for cellular automata, for what counts neighbours, flags and votes, and for thresholds of sums. The sum may
//! be more than a byte holds; it is less than 255 where what saturates is, and compares with what is less than 255
//! alike. What is added and taken away again (`count - alive`) is left out, since sums that saturate cannot be
//! subtracted from.
//!
//! Deliberately absent: sums that loops hand on; comparisons of two sums.

use std::collections::HashMap;

use invar_ir::inst::InstKind;
use invar_ir::{Const, Imm, Inst, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo};

use super::common::{change_body, push_const, push_inst};
use super::narrow::{Found, is_comparison, is_wide};

/// As many terms has a sum at most.
const MOST_TERMS: usize = 64;

/// How a value was computed.
enum Def {
    Sum(Value, Value),
    Difference(Value, Value),
    Constant(i64),
}

/// What a kernel computes.
#[derive(Default)]
struct Defs {
    all: HashMap<Value, Def>,
    /// How often each is used, and how often compared with a constant less than 255.
    uses: HashMap<Value, (usize, usize)>,
    /// The bytes that were widened.
    bytes: HashMap<Value, Value>,
}

/// A sum of bytes: each as often as it is in it.
type Terms = Vec<(Value, i64)>;

pub(super) fn run(kernel: &mut Kernel) {
    let mut defs = Defs::default();
    kernel.for_each_inst(&mut |inst| defs.define(kernel, inst));
    kernel.for_each_inst(&mut |inst| defs.count_uses(inst));
    let fits = Found::in_bytes(kernel);
    let mut sums = HashMap::new();
    for (value, (uses, compared)) in &defs.uses {
        let is_new = uses == compared && !fits.is_natural(*value);
        if let Some(terms) = Some(*value)
            .filter(|_| is_new)
            .and_then(|v| defs.terms(&fits, v))
        {
            sums.insert(*value, terms);
        }
    }
    if sums.is_empty() {
        return;
    }
    let mut values = std::mem::take(&mut kernel.values);
    let mut change = Change {
        defs: &defs,
        sums: &sums,
        values: &mut values,
        saturated: HashMap::new(),
    };
    change_body(kernel, |_, body| change.region(body));
    kernel.values = values;
}

impl Defs {
    fn define(&mut self, kernel: &Kernel, inst: &Inst) {
        let &[result] = &inst.results[..] else {
            return;
        };
        if !matches!(kernel.ty(result), Type::Scalar(scalar) if is_wide(scalar)) {
            return;
        }
        if let InstKind::Const(constant) = inst.kind {
            let value = i64::from(constant.bits as u32 as i32);
            self.all.insert(result, Def::Constant(value));
        }
        let Some((op, _, args)) = inst.kind.as_op() else {
            return;
        };
        match (op, args) {
            (Op::Add, &[a, b]) => {
                self.all.insert(result, Def::Sum(a, b));
            }
            (Op::Sub, &[a, b]) => {
                self.all.insert(result, Def::Difference(a, b));
            }
            (Op::Cast, &[small]) if kernel.ty(small) == Type::Scalar(Scalar::U8) => {
                self.bytes.insert(result, small);
            }
            _other => {}
        }
    }

    fn count_uses(&mut self, inst: &Inst) {
        let compared = self.comparison(&inst.kind).map(|(sum, _)| sum);
        inst.kind.for_each_use(|v| {
            if matches!(self.all.get(&v), Some(Def::Sum(..) | Def::Difference(..))) {
                let (uses, comparisons) = self.uses.entry(v).or_default();
                *uses += 1;
                *comparisons += usize::from(compared == Some(v));
            }
        });
    }

    /// The sum that is compared with a constant less than 255, and which of the two is that.
    fn comparison(&self, kind: &InstKind) -> Option<(Value, usize)> {
        let (op, _, args) = kind.as_op()?;
        let &[a, b] = args else {
            return None;
        };
        let small = |v: Value| match self.all.get(&v) {
            Some(Def::Constant(c)) => (0..255).contains(c),
            _other => false,
        };
        match (small(a), small(b)) {
            (false, true) if is_comparison(op) => Some((a, 0)),
            (true, false) if is_comparison(op) => Some((b, 1)),
            _other => None,
        }
    }

    /// What a value is the sum of: bytes, none of them less than 0 times.
    fn terms(&self, fits: &Found, sum: Value) -> Option<Terms> {
        let mut terms: Terms = Vec::new();
        let mut rest = 0;
        let mut left = vec![(sum, 1)];
        let mut steps = 0;
        while let Some((value, times)) = left.pop() {
            steps += 1;
            match self.all.get(&value) {
                _many if steps > 2 * MOST_TERMS => return None,
                Some(Def::Sum(a, b)) => left.extend([(*b, times), (*a, times)]),
                Some(Def::Difference(a, b)) => left.extend([(*b, -times), (*a, times)]),
                Some(Def::Constant(c)) => rest += times * c,
                None => match terms.iter_mut().find(|(term, _)| *term == value) {
                    Some((_, all)) => *all += times,
                    None => terms.push((value, times)),
                },
            }
        }
        terms.retain(|(_, times)| *times != 0);
        let is_byte = |v: Value| fits.is_natural(v);
        let all_bytes = terms
            .iter()
            .all(|(term, times)| *times > 0 && is_byte(*term));
        let count: i64 = terms.iter().map(|(_, times)| times).sum();
        (all_bytes && rest == 0 && count > 1 && count <= MOST_TERMS as i64).then_some(terms)
    }
}

/// The change of a kernel.
struct Change<'a> {
    defs: &'a Defs,
    sums: &'a HashMap<Value, Terms>,
    values: &'a mut Vec<ValueInfo>,
    saturated: HashMap<Value, Value>,
}

impl Change<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut done = Vec::with_capacity(region.insts.len());
        for mut inst in std::mem::take(&mut region.insts) {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            self.compare(&mut inst, &mut done);
            let sum = inst.results.first().copied();
            let span = inst.span;
            done.push(inst);
            if let Some((sum, terms)) = sum.and_then(|sum| Some((sum, self.sums.get(&sum)?))) {
                let saturated = self.sum(terms, &mut done, span);
                self.saturated.insert(sum, saturated);
            }
        }
        region.insts = done;
    }

    fn op(&mut self, done: &mut Vec<Inst>, op: Op, args: [Value; 2], span: Span) -> Value {
        let kind = InstKind::Op {
            op,
            imm: Imm::None,
            args: args.into_iter().collect(),
        };
        push_inst(self.values, done, kind, Type::Scalar(Scalar::U8), span)
    }

    /// The sum, or 255 where it is more.
    fn sum(&mut self, terms: &Terms, done: &mut Vec<Inst>, span: Span) -> Value {
        let most = Const {
            scalar: Scalar::U8,
            bits: 255,
        };
        let most = push_const(self.values, done, most, span);
        let mut sum = None;
        for (term, times) in terms {
            let byte = match self.defs.bytes.get(term) {
                Some(byte) => *byte,
                None => {
                    let ty = Type::Scalar(Scalar::U8);
                    let kind = InstKind::Op {
                        op: Op::Cast,
                        imm: Imm::Type(ty),
                        args: [*term].into_iter().collect(),
                    };
                    push_inst(self.values, done, kind, ty, span)
                }
            };
            for _ in 0..*times {
                sum = Some(match sum {
                    None => byte,
                    // LLVM sees an addition that saturates.
                    Some(before) => {
                        let room = self.op(done, Op::Sub, [most, byte], span);
                        let least = self.op(done, Op::Min, [before, room], span);
                        self.op(done, Op::Add, [least, byte], span)
                    }
                });
            }
        }
        sum.expect("a sum has terms")
    }

    fn compare(&mut self, inst: &mut Inst, done: &mut Vec<Inst>) {
        let Some((sum, place)) = self.defs.comparison(&inst.kind) else {
            return;
        };
        let Some(saturated) = self.saturated.get(&sum).copied() else {
            return;
        };
        let InstKind::Op { args, .. } = &mut inst.kind else {
            unreachable!("it is a comparison");
        };
        let Some(Def::Constant(constant)) = self.defs.all.get(&args[1 - place]) else {
            unreachable!("the other is a constant");
        };
        let constant = Const {
            scalar: Scalar::U8,
            bits: *constant as u64,
        };
        args[1 - place] = push_const(self.values, done, constant, inst.span);
        args[place] = saturated;
    }
}
