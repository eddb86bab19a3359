//! Constants computed at compile time, and operations that give one of their operands.
//!
//! The evaluators of the op table compute, which are correctly rounded: what is folded has the bits
//! that a device would have had. Identities are of integers, and of what is the same bits for floats
//! too (`select` of two equal values, `cast` to the same type). An `if` on a constant becomes the side
//! that is taken; a `for` without iterations becomes its first values.

use std::collections::HashMap;

use invar_ir::ops::Meaning;
use invar_ir::ops::evaluate::evaluate;
use invar_ir::{Const, Imm, Inst, InstKind, Kernel, Module, Op, Region, Type, Value, ValueInfo};

use super::common::{Map, integer, resolve, substitute, yielded};

pub(super) fn run(_module: &Module, kernel: &mut Kernel) {
    let mut fold = Fold {
        values: &kernel.values,
        known: HashMap::new(),
        map: Map::new(),
    };
    let mut body = std::mem::take(&mut kernel.body);
    fold.region(&mut body);
    kernel.body = body;
}

struct Fold<'a> {
    values: &'a [ValueInfo],
    /// The components of values that are constant.
    known: HashMap<Value, Vec<u64>>,
    map: Map,
}

impl Fold<'_> {
    fn ty(&self, value: Value) -> Type {
        self.values[value.0 as usize].ty
    }

    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            self.inst(inst, &mut region.insts);
            // What follows a way out is never run; only an `if` that was decided leaves any.
            if region.insts.last().is_some_and(|i| i.kind.is_terminator()) {
                break;
            }
        }
    }

    fn inst(&mut self, inst: Inst, out: &mut Vec<Inst>) {
        let mut inst = inst;
        for region in inst.kind.regions_mut() {
            self.region(region);
        }
        if let Some(decided) = self.decided(&inst) {
            let region = match (inst.kind, decided) {
                (InstKind::If { then, .. }, true) => then,
                (InstKind::If { otherwise, .. }, false) => otherwise,
                (_other, _) => return,
            };
            self.splice(region, &inst.results, out);
            return;
        }
        match &inst.kind {
            InstKind::Const(constant) => {
                self.known.insert(inst.results[0], vec![constant.bits]);
            }
            InstKind::Op { op, imm, args } => {
                let result = inst.results[0];
                if let Some(same) = self.same_as_operand(*op, *imm, args) {
                    self.map.insert(result, same);
                    return;
                }
                if let Some(bits) = self.evaluated(*op, *imm, args) {
                    if let (Type::Scalar(scalar), [bits]) = (self.ty(result), &bits[..]) {
                        let bits = *bits;
                        inst.kind = InstKind::Const(Const { scalar, bits });
                    }
                    self.known.insert(result, bits);
                } else if *op == Op::AsType && self.keeps_bits(args[0], result) {
                    // Of integers of one width `cast` does the same (A5), and what looks at numbers knows it.
                    let (imm, args) = (*imm, args.clone());
                    let op = Op::Cast;
                    inst.kind = InstKind::Op { op, imm, args };
                }
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                ..
            } => {
                let bound = |v: &Value| self.integer(*v);
                if let (Some(lower), Some(upper), Some(step)) =
                    (bound(lower), bound(upper), bound(step))
                    && (step == 0 || (step > 0 && lower >= upper) || (step < 0 && lower <= upper))
                {
                    for (result, value) in inst.results.iter().zip(init) {
                        self.map.insert(*result, *value);
                    }
                    return;
                }
            }
            _nothing_is_known => {}
        }
        out.push(inst);
    }

    /// Whether two values are integers, or vectors of them, whose components have one width.
    fn keeps_bits(&self, from: Value, to: Value) -> bool {
        let shape = |value| {
            let ty = self.ty(value);
            let scalar = ty.scalar().filter(|s| s.is_integer())?;
            match ty {
                Type::Scalar(_) => Some((scalar.bits(), 1)),
                Type::Vector(_, length) => Some((scalar.bits(), length)),
                _other => None,
            }
        };
        shape(from).is_some() && shape(from) == shape(to)
    }

    /// The side of an `if` whose condition is constant.
    fn decided(&self, inst: &Inst) -> Option<bool> {
        match &inst.kind {
            InstKind::If { condition, .. } => self.known.get(condition).map(|bits| bits[0] != 0),
            _other => None,
        }
    }

    /// Puts a region's instructions here; what it yields stands for these results.
    fn splice(&mut self, region: Region, results: &[Value], out: &mut Vec<Inst>) {
        let yields = yielded(&region).map(<[Value]>::to_vec);
        let mut insts = region.insts;
        if let Some(values) = yields {
            insts.pop();
            for (result, value) in results.iter().zip(values) {
                self.map.insert(*result, resolve(&self.map, value));
            }
        }
        out.append(&mut insts);
    }

    fn integer(&self, value: Value) -> Option<i128> {
        let bits = *self.known.get(&value)?.first()?;
        match self.ty(value) {
            Type::Scalar(scalar) => integer(Const { scalar, bits }),
            _not_a_scalar => None,
        }
    }

    /// The bits of the result, if the operands are constant.
    fn evaluated(&self, op: Op, imm: Imm, args: &[Value]) -> Option<Vec<u64>> {
        let computes = match op.row().meaning {
            Meaning::Eval(_) | Meaning::Arrange => true,
            Meaning::Expand(_) => !op.exchanges_lanes(),
            Meaning::Lanes(..) | Meaning::Query => false,
        };
        if !computes || args.is_empty() {
            return None;
        }
        let mut columns: Vec<[u64; 1]> = Vec::new();
        for arg in args {
            columns.extend(self.known.get(arg)?.iter().map(|bits| [*bits]));
        }
        let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
        let types: Vec<Type> = args.iter().map(|v| self.ty(*v)).collect();
        let out = evaluate(op, imm, &types, &columns).ok()?;
        Some(out.into_iter().map(|column| column[0]).collect())
    }

    /// An operand that the result equals bit by bit, whatever the others are.
    fn same_as_operand(&self, op: Op, imm: Imm, args: &[Value]) -> Option<Value> {
        let ty = self.ty(*args.first()?);
        let integer_type = ty.scalar().is_some_and(|s| !s.is_float());
        let all = |value: Value, wanted: i128| {
            let scalar = self.ty(value).scalar();
            let bits = self.known.get(&value);
            bits.zip(scalar).is_some_and(|(bits, scalar)| {
                let same = |b: &u64| integer(Const { scalar, bits: *b }) == Some(wanted);
                bits.iter().all(same)
            })
        };
        match (op, args) {
            (Op::Cast | Op::AsType, [x]) => (imm == Imm::Type(ty)).then_some(*x),
            (Op::Select, [on_false, on_true, condition]) => {
                if on_false == on_true {
                    return Some(*on_false);
                }
                match self.known.get(condition).map(|bits| &bits[..]) {
                    Some(bits) if bits.iter().all(|b| *b != 0) => Some(*on_true),
                    Some(bits) if bits.iter().all(|b| *b == 0) => Some(*on_false),
                    Some(_) | None => None,
                }
            }
            (Op::Add | Op::Or | Op::Xor, [a, b]) if integer_type => {
                if all(*b, 0) {
                    Some(*a)
                } else {
                    all(*a, 0).then_some(*b)
                }
            }
            (Op::Sub | Op::Shl | Op::Shr, [a, b]) if integer_type => all(*b, 0).then_some(*a),
            (Op::Mul, [a, b]) if integer_type => {
                if all(*b, 1) || all(*a, 0) {
                    Some(*a)
                } else {
                    (all(*a, 1) || all(*b, 0)).then_some(*b)
                }
            }
            (Op::Div, [a, b]) if integer_type => all(*b, 1).then_some(*a),
            (Op::And, [a, b]) if integer_type && a == b => Some(*a),
            _no_identity => None,
        }
    }
}
