//! Counted loops: a `loop` that counts becomes a `for`.
//!
//! ```text
//! loop carry(k, ..) { if k < n {} else { break k, .. } .. yield k + step, .. }
//!     =>  for index = k to n step step carry(k, ..) { .. yield k + step, .. }
//! ```
//!
//! This is for kernels that are written with `while`: everything that knows loops knows more of a `for`. What the loop
//! carries it still carries; its counter is written in terms of the index by `induction`.
//!
//! The two end in the same round if the counter comes to its end without wrapping around (A1). Steps of one meet every
//! number on the way, the end included. Others may pass it by, so that they are taken only where it is a constant and
//! the type has a number for what lies one step behind the last one in front of it.
//!
//! Deliberately absent: conditions of more than one comparison, loops that test at their end, and steps that are not
//! constant.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{Const, Inst, InstKind, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo};

use crate::analysis::ranges;

use super::common::{Map, constants, integer, new_value, push_const, substitute, yielded};

pub(super) fn run(kernel: &mut Kernel) {
    let mut find = Find {
        constants: constants(kernel),
        map: Map::new(),
        values: std::mem::take(&mut kernel.values),
    };
    let mut body = std::mem::take(&mut kernel.body);
    find.region(&mut body);
    kernel.values = find.values;
    kernel.body = body;
}

struct Find {
    constants: HashMap<Value, Const>,
    /// What stands for results of loops.
    map: Map,
    values: Vec<ValueInfo>,
}

/// A `loop` that counts.
struct Count {
    /// Which of its parameters.
    slot: usize,
    upper: Value,
    /// Never 0; negative ones go down.
    step: i128,
    /// Where among its instructions the test is.
    test: usize,
    /// What it gives at its end.
    given: Vec<Value>,
}

impl Find {
    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            let count = match &inst.kind {
                InstKind::Loop { init, body } => self.count(init, body),
                _no_loop => None,
            };
            match count {
                Some(count) => self.rewrite(inst, count, &mut region.insts),
                None => region.insts.push(inst),
            }
        }
    }

    fn integer(&self, value: Value) -> Option<i128> {
        integer(*self.constants.get(&value)?)
    }

    fn count(&self, init: &[Value], body: &Region) -> Option<Count> {
        let next = yielded(body)?;
        let (test, given, condition, continues) = exit(body)?;
        let exits = body.insts[test + 1..].iter().map(Inst::exits);
        let mut others = exits.filter(|exits| exits.continues || exits.breaks);
        if others.next().is_some() {
            return None;
        }
        let front = &body.insts[..test];
        if !front.iter().all(is_value) {
            return None;
        }
        let own: HashSet<Value> = front
            .iter()
            .flat_map(|i| i.results.iter().copied())
            .collect();
        let outside = |v: Value| {
            self.constants.contains_key(&v) || !own.contains(&v) && !body.params.contains(&v)
        };
        let comparison = front.iter().find(|i| i.results[..] == [condition])?;
        let (op, _, &[a, b]) = comparison.kind.as_op()? else {
            return None;
        };
        // So that the loop goes on where `counter op upper`.
        let op = if continues { op } else { opposite(op)? };
        let (op, counter, upper) = if body.params.contains(&a) {
            (op, a, b)
        } else {
            (mirrored(op)?, b, a)
        };
        let slot = body.params.iter().position(|param| *param == counter)?;
        let given_from_outside = |v: &Value| body.params.contains(v) || !own.contains(v);
        if !outside(upper) || !given.iter().all(given_from_outside) {
            return None;
        }
        let step = self.step(body, counter, next[slot])?;
        let Type::Scalar(scalar) = self.values[counter.0 as usize].ty else {
            return None;
        };
        let range = ranges::of_type(Type::Scalar(scalar))?;
        let of_step = if step < 0 { signed(scalar) } else { scalar };
        let of_step = ranges::of_type(Type::Scalar(of_step))?;
        if step < of_step.0 || step > of_step.1 {
            return None;
        }
        let end = self.integer(upper);
        let stays = match op {
            Op::Lt => step == 1 || step > 1 && end.is_some_and(|end| end - 1 + step <= range.1),
            Op::Gt => step == -1 || step < -1 && end.is_some_and(|end| end + 1 + step >= range.0),
            // From the first number of all, every other one is met on the way up.
            Op::Ne => step == 1 && self.integer(init[slot]) == Some(range.0),
            _other => false,
        };
        stays.then_some(Count {
            slot,
            upper,
            step,
            test,
            given,
        })
    }

    /// What a round adds to the counter, as a constant.
    fn step(&self, body: &Region, counter: Value, next: Value) -> Option<i128> {
        let sum = body.insts.iter().find(|i| i.results[..] == [next])?;
        let (op, _, &[a, b]) = sum.kind.as_op()? else {
            return None;
        };
        match op {
            Op::Add if a == counter => self.integer(b),
            Op::Add if b == counter => self.integer(a),
            Op::Sub if a == counter => self.integer(b).map(|by| -by),
            _other => None,
        }
        .filter(|step| *step != 0)
    }

    fn rewrite(&mut self, mut inst: Inst, count: Count, out: &mut Vec<Inst>) {
        let InstKind::Loop { init, mut body } = inst.kind else {
            unreachable!("it is a loop");
        };
        let span = inst.span;
        let ty = self.values[body.params[count.slot].0 as usize].ty;
        let scalar = ty.scalar().expect("a counter is an integer");
        // A constant may be written in the loop.
        let upper = match self.constants.get(&count.upper) {
            Some(end) => self.constant(*end, span, out),
            None => count.upper,
        };
        let scalar = if count.step < 0 {
            signed(scalar)
        } else {
            scalar
        };
        let bits = count.step as u64 & (u64::MAX >> (64 - scalar.bits()));
        let step = self.constant(Const { scalar, bits }, span, out);
        body.insts.remove(count.test);
        // All that is carried is given, each once.
        let mut results: Vec<Option<Value>> = vec![None; body.params.len()];
        for (old, given) in inst.results.iter().zip(&count.given) {
            match body.params.iter().position(|param| param == given) {
                Some(at) => match results[at] {
                    Some(same) => _ = self.map.insert(*old, same),
                    None => results[at] = Some(*old),
                },
                None => _ = self.map.insert(*old, *given),
            }
        }
        let types = body.params.iter().map(|v| self.values[v.0 as usize].ty);
        let types: Vec<Type> = types.collect();
        let results = results.into_iter().zip(types);
        inst.results = results
            .map(|(result, ty)| result.unwrap_or_else(|| new_value(&mut self.values, ty)))
            .collect();
        body.params.insert(0, new_value(&mut self.values, ty));
        inst.kind = InstKind::For {
            lower: init[count.slot],
            upper,
            step,
            init,
            body,
        };
        out.push(inst);
    }

    fn constant(&mut self, constant: Const, span: Span, out: &mut Vec<Inst>) -> Value {
        let value = push_const(&mut self.values, out, constant, span);
        self.constants.insert(value, constant);
        value
    }
}

/// The one way out of a loop: an `if` of which one side breaks and the other does nothing. Its place, what it gives,
/// its condition, and whether the loop goes on where that holds.
fn exit(body: &Region) -> Option<(usize, Vec<Value>, Value, bool)> {
    let at = body.insts.iter().position(|inst| inst.exits().any())?;
    let InstKind::If {
        condition,
        then,
        otherwise,
    } = &body.insts[at].kind
    else {
        return None;
    };
    let broken = |region: &Region| match &region.insts[..] {
        [only] => match &only.kind {
            InstKind::Break(values) => Some(values.to_vec()),
            _other => None,
        },
        _more => None,
    };
    let is_empty = |region: &Region| match &region.insts[..] {
        [] => true,
        [only] => matches!(&only.kind, InstKind::Yield(values) if values.is_empty()),
        _more => false,
    };
    let found = if is_empty(then) {
        broken(otherwise).map(|given| (given, true))
    } else {
        broken(then)
            .filter(|_| is_empty(otherwise))
            .map(|given| (given, false))
    };
    let (given, continues) = found.filter(|_| body.insts[at].results.is_empty())?;
    Some((at, given, *condition, continues))
}

/// Whether an instruction only computes: it may be left out in the round that leaves.
fn is_value(inst: &Inst) -> bool {
    let computes = |op: Op| matches!(op.row().meaning, Meaning::Eval(_) | Meaning::Query);
    inst.kind.is_constant() || inst.kind.as_op().is_some_and(|(op, ..)| computes(op))
}

/// The comparison that holds where this one does not: of integers.
fn opposite(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Ge,
        Op::Ge => Op::Lt,
        Op::Gt => Op::Le,
        Op::Le => Op::Gt,
        Op::Eq => Op::Ne,
        Op::Ne => Op::Eq,
        _other => return None,
    })
}

/// The comparison of the same operands in the other order.
fn mirrored(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Gt,
        Op::Gt => Op::Lt,
        Op::Le => Op::Ge,
        Op::Ge => Op::Le,
        Op::Eq | Op::Ne => op,
        _other => return None,
    })
}

/// The signed integer of the same width.
fn signed(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::U8 => Scalar::I8,
        Scalar::U16 => Scalar::I16,
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        other => other,
    }
}
