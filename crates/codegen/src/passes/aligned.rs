//! Aligned positions: a kernel that takes its place in the grid apart by bits, or divides it, is made twice, once for
//! where all threads of a threadgroup differ in the low bits alone.
//!
//! ```text
//! k = i & (half - 1)   ->   if (half - 1) & (size - 1) == size - 1 { k = (first & (half - 1)) + t, .. } else { .. }
//! ```
//!
//! `first` is the place of the threadgroup's first thread and `t` where a thread stands in it. This is for steps of
//! Fourier transforms and of bitonic sorts, and for places in rows and columns of a length that the dispatch gives:
//! threads side by side access what lies side by side, which no one can see who does not know the number.
//!
//! Sizes are powers of two where bits are taken apart. A mask that is less by one than another number is hoped to have
//! the low bits, any other to have none of them.
//!
//! Deliberately absent: constants, of which the lanes' analysis knows; kernels whose threads meet; other axes than x.

use std::collections::{HashMap, HashSet};

use invar_ir::inst::InstKind;
use invar_ir::{
    Const, Dim, Exit, Imm, Inst, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo,
};

use super::common::{
    Map, clone_region, constants, count, definitions, push_const, push_inst, substitute_region,
};
use super::induction::is_steady;
use super::interior::{choice, needed, params, runs_alone};
use crate::tuning::ALIGNED_INSTRUCTIONS;

/// How many operations deep a number is followed that the dispatch gives.
const DEPTH: u32 = 8;
/// Operations that are looked at, at most.
const MOST: usize = 8;

/// An operation on the place in the grid and a number that the dispatch gives.
struct Taken {
    op: Op,
    result: Value,
    number: Value,
    /// The low bits of a mask are all set.
    has_low_bits: bool,
}

pub(super) fn run(kernel: &mut Kernel) {
    if count(&kernel.body) > ALIGNED_INSTRUCTIONS || !runs_alone(kernel) {
        return;
    }
    let taken = find(kernel);
    let Some((end, inner)) = kernel.body.insts.split_last() else {
        return;
    };
    let inner = Region {
        insts: inner.to_vec(),
        ..Region::default()
    };
    if taken.is_empty() || inner.exits().any() || end.kind.exit() != Some(Exit::Return) {
        return;
    }
    let end = end.clone();
    let mut make = Make {
        definitions: definitions(kernel)
            .into_iter()
            .map(|i| i.cloned())
            .collect(),
        params: params(kernel),
        values: std::mem::take(&mut kernel.values),
        front: Vec::new(),
        moved: Map::new(),
    };
    if let Some((condition, becomes)) = make.all(&taken) {
        let mut map = Map::new();
        let mut copy = clone_region(&mut make.values, &inner, &mut map);
        let of = |value: &Value| *map.get(value).unwrap_or(value);
        let same = becomes.iter().map(|(old, new)| (of(old), *new)).collect();
        substitute_region(&same, &mut copy);
        let mut insts = std::mem::take(&mut make.front);
        insts.push(choice(condition, copy.insts, inner.insts, end.span));
        insts.push(end);
        kernel.body.insts = insts;
    }
    kernel.values = make.values;
}

/// The operations of a kernel from which it computes where it accesses memory.
fn find(kernel: &Kernel) -> Vec<Taken> {
    let (constants, definitions) = (constants(kernel), definitions(kernel));
    let mut steady = params(kernel);
    let mut places = HashSet::new();
    let mut found = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        let &[result] = &inst.results[..] else {
            return;
        };
        if is_steady(&inst.kind, &steady) {
            steady.insert(result);
            return;
        }
        let Some((op, imm, args)) = inst.kind.as_op() else {
            return;
        };
        if (op, imm) == (Op::ThreadPositionInGrid, Imm::Dim(Dim::X)) {
            places.insert(result);
        }
        let number = match args {
            [i, number] if places.contains(i) => *number,
            [number, i] if places.contains(i) && matches!(op, Op::And | Op::Xor) => *number,
            _other => return,
        };
        let takes = matches!(op, Op::And | Op::Xor | Op::Rem | Op::Div | Op::Shr);
        if takes && steady.contains(&number) && !constants.contains_key(&number) {
            let definition = definitions[number.0 as usize].and_then(|inst| inst.kind.as_op());
            let is =
                |value: &Value, bits: u64| constants.get(value).is_some_and(|c| c.bits == bits);
            let has_low_bits = match definition {
                Some((Op::Sub, _, [_, one])) => is(one, 1),
                Some((Op::Add, _, [a, b])) => [a, b].iter().any(|v| is(v, u32::MAX.into())),
                _other => false,
            };
            found.push(Taken {
                op,
                result,
                number,
                has_low_bits,
            });
        }
    });
    let needed = needed(kernel);
    let reaches = found.iter().any(|taken| needed.contains(&taken.result));
    found.retain(|_| reaches);
    found.truncate(MOST);
    found
}

/// What is computed in front of both bodies.
struct Make {
    definitions: Vec<Option<Inst>>,
    params: HashSet<Value>,
    values: Vec<ValueInfo>,
    front: Vec<Inst>,
    /// What stands in front for a value of the body.
    moved: Map,
}

impl Make {
    /// The condition, and what each operation gives where it holds.
    fn all(&mut self, taken: &[Taken]) -> Option<(Value, HashMap<Value, Value>)> {
        let dim = Imm::Dim(Dim::X);
        let size = self.op(Op::DispatchThreadsPerThreadgroup, dim, &[]);
        let group = self.op(Op::ThreadgroupPositionInGrid, dim, &[]);
        let thread = self.op(Op::ThreadPositionInThreadgroup, dim, &[]);
        let [zero, one] = [0, 1].map(|number| self.number(number));
        let first = self.two(Op::Mul, group, size);
        let low = self.two(Op::Sub, size, one);
        let power = self.two(Op::And, size, low);
        let mut condition = self.compare(Op::Eq, power, zero);
        let mut becomes = HashMap::new();
        for Taken {
            op,
            result,
            number,
            has_low_bits,
        } in taken
        {
            let number = self.in_front(*number, DEPTH)?;
            let base = self.two(*op, first, number);
            let (holds, steps) = match op {
                Op::And if *has_low_bits => {
                    let own = self.two(Op::And, number, low);
                    (self.compare(Op::Eq, own, low), true)
                }
                Op::And | Op::Xor => {
                    let own = self.two(Op::And, number, low);
                    (self.compare(Op::Eq, own, zero), *op == Op::Xor)
                }
                Op::Rem | Op::Div => {
                    let rest = self.two(Op::Rem, number, size);
                    let whole = self.compare(Op::Eq, rest, zero);
                    let some = self.compare(Op::Ne, number, zero);
                    let both = self.push(Op::And, Imm::None, Type::BOOL, &[whole, some]);
                    (both, *op == Op::Rem)
                }
                _shift => {
                    let rest = self.two(Op::Shr, low, number);
                    (self.compare(Op::Eq, rest, zero), false)
                }
            };
            let value = match steps {
                true => self.two(Op::Add, base, thread),
                false => base,
            };
            becomes.insert(*result, value);
            condition = self.push(Op::And, Imm::None, Type::BOOL, &[condition, holds]);
        }
        Some((condition, becomes))
    }

    /// A number that the dispatch gives, computed in front.
    fn in_front(&mut self, value: Value, depth: u32) -> Option<Value> {
        if self.params.contains(&value) {
            return Some(value);
        }
        if let Some(moved) = self.moved.get(&value) {
            return Some(*moved);
        }
        let mut inst = self.definitions[value.0 as usize].clone()?;
        let mut operands = Vec::new();
        inst.kind.for_each_use(|v| operands.push(v));
        for operand in operands {
            self.in_front(operand, depth.checked_sub(1)?)?;
        }
        let moved = &self.moved;
        inst.kind
            .for_each_use_mut(|v| *v = *moved.get(v).unwrap_or(v));
        let ty = self.values[value.0 as usize].ty;
        let new = push_inst(&mut self.values, &mut self.front, inst.kind, ty, inst.span);
        self.moved.insert(value, new);
        Some(new)
    }

    fn number(&mut self, number: u32) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: number.into(),
        };
        push_const(&mut self.values, &mut self.front, constant, Span::NONE)
    }

    fn two(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.push(op, Imm::None, Type::U32, &[a, b])
    }

    fn compare(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.push(op, Imm::None, Type::BOOL, &[a, b])
    }

    fn op(&mut self, op: Op, imm: Imm, args: &[Value]) -> Value {
        self.push(op, imm, Type::U32, args)
    }

    fn push(&mut self, op: Op, imm: Imm, ty: Type, args: &[Value]) -> Value {
        let args = args.iter().copied().collect();
        let kind = InstKind::Op { op, imm, args };
        push_inst(&mut self.values, &mut self.front, kind, ty, Span::NONE)
    }
}
