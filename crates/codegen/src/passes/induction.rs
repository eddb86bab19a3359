//! Induction variables: what a `for` carries and grows by the same in every iteration is computed from the loop's
//! index.
//!
//! ```text
//! carried value in an iteration = first + iteration * growth,    iteration = |index - lower| / |step|
//! value at the loop's end  = first + iterations * growth,   iterations = |upper - lower|, for steps of 1 and -1
//! ```
//!
//! This is for kernels that move a pointer or an index along (`p += n`) instead of multiplying, in any loop and
//! in loops in it: analyses know what a loop carries by nothing but its type, and an index of the loop's own as a
//! sum that they look into. Integers wrap (A1), so both equations hold modulo two to the width, whatever the
//! numbers are; the distance of an index from `lower` is exact in the unsigned type of its width.
//!
//! What it grows by must be the same for all threads: a product in place of a sum costs nothing then.
//!
//! Deliberately absent: floats, whose sums are not products; iterations that end by `continue`, which may hand on
//! anything.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{
    Const, Imm, Inst, InstKind, Kernel, Op, ParamKind, Region, Scalar, Span, Type, Value, ValueInfo,
};

use super::common::{
    Map, constants, integer, new_value, push_const, push_inst, substitute, substitute_region,
    yielded,
};

/// Sums of an iteration that are followed from the value that it hands on to the one that it got.
const MOST_SUMS: usize = 64;

pub(super) fn run(kernel: &mut Kernel) {
    let mut used = HashSet::new();
    let mut steady = HashSet::new();
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = param.kind {
            steady.insert(value);
        }
    }
    kernel.for_each_inst(&mut |inst| {
        inst.kind.for_each_use(|value| {
            used.insert(value);
        });
        if is_steady(&inst.kind, &steady) {
            steady.extend(inst.results.iter().copied());
        }
    });
    let mut find = Find {
        constants: constants(kernel),
        used,
        steady,
        map: Map::new(),
        values: std::mem::take(&mut kernel.values),
    };
    let mut body = std::mem::take(&mut kernel.body);
    find.region(&mut body);
    kernel.values = find.values;
    kernel.body = body;
}

/// Whether an instruction computes one number for all threads of a dispatch, anywhere, from such numbers.
pub(super) fn is_steady(kind: &InstKind, steady: &HashSet<Value>) -> bool {
    if kind.is_constant() {
        return true;
    }
    let Some((op, _, args)) = kind.as_op() else {
        return false;
    };
    let of_the_dispatch = matches!(
        op,
        Op::ThreadsPerGrid | Op::ThreadgroupsPerGrid | Op::DispatchThreadsPerThreadgroup
    );
    match op.row().meaning {
        Meaning::Eval(_) | Meaning::Arrange => args.iter().all(|arg| steady.contains(arg)),
        Meaning::Query => of_the_dispatch,
        Meaning::Expand(_) | Meaning::Lanes(..) => false,
    }
}

/// How a loop counts.
struct Count {
    index: Value,
    lower: Value,
    upper: Value,
    step: Value,
    /// The step, where it is constant.
    by: Option<i128>,
    /// Of its index.
    scalar: Scalar,
}

struct Find {
    constants: HashMap<Value, Const>,
    /// Values that something uses.
    used: HashSet<Value>,
    /// The same for all threads of a dispatch, and in every iteration.
    steady: HashSet<Value>,
    /// What stands for results of loops.
    map: Map,
    values: Vec<ValueInfo>,
}

impl Find {
    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            // Loops inside first: what they give at their end may be what the one around grows by.
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            self.inst(&mut inst, &mut region.insts);
            region.insts.push(inst);
        }
    }

    fn integer(&self, value: Value) -> Option<i128> {
        integer(*self.constants.get(&value)?)
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        match self.values[value.0 as usize].ty {
            Type::Scalar(scalar) if scalar.is_integer() => Some(scalar),
            _no_integer => None,
        }
    }

    /// Rewrites a loop, if it is one; what it needs beforehand is put at the end of `out`.
    fn inst(&mut self, inst: &mut Inst, out: &mut Vec<Inst>) {
        let span = inst.span;
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &mut inst.kind
        else {
            return;
        };
        let exits = body.exits();
        let (continues, leaves) = (exits.continues, exits.leaves_loop());
        let Some(next) = yielded(body).map(<[Value]>::to_vec) else {
            return;
        };
        let index = body.params[0];
        let Some(scalar) = self.scalar(index).filter(|_| !continues) else {
            return;
        };
        let count = Count {
            index,
            lower: *lower,
            upper: *upper,
            step: *step,
            by: self.integer(*step),
            scalar,
        };
        let mut front = Vec::new();
        let mut grown = Map::new();
        for slot in (0..init.len()).rev() {
            let (param, first) = (body.params[slot + 1], init[slot]);
            if self.scalar(param).is_none() {
                continue;
            }
            let Some(sums) = self.sums(body, param, next[slot]) else {
                continue;
            };
            if count.by.is_none() && !matches!(sums[..], [(only, true)] if only == count.step) {
                continue;
            }
            if !self.can_divide(&count, param) {
                continue;
            }
            let growth = self.growth(body, param, &sums, span, out);
            let iterations = self.iteration(&count, param, growth, span, &mut front);
            let now = self.grown(first, iterations, span, &mut front);
            grown.insert(param, now);
            let result = inst.results[slot];
            if !leaves && self.used.contains(&result) {
                let Some(iterations) = self.iterations(&count, param, span, out) else {
                    continue;
                };
                let last = self.grown(first, (iterations, Some(growth)), span, out);
                self.map.insert(result, last);
            }
            if !leaves {
                init.remove(slot);
                body.params.remove(slot + 1);
                inst.results.remove(slot);
                if let Some(InstKind::Yield(values)) =
                    body.insts.last_mut().map(|inst| &mut inst.kind)
                {
                    values.remove(slot);
                }
            }
        }
        if grown.is_empty() {
            return;
        }
        substitute_region(&grown, body);
        front.append(&mut body.insts);
        body.insts = front;
    }

    /// What an iteration adds to a value (or takes from it, where `false`) before it hands it on.
    fn sums(&self, body: &Region, param: Value, next: Value) -> Option<Vec<(Value, bool)>> {
        let mut at = next;
        let mut found = Vec::new();
        // Each is defined in front of the one that it is part of.
        for inst in body.insts.iter().rev() {
            if inst.results[..] != [at] {
                continue;
            }
            let (op, _, args) = inst.kind.as_op()?;
            let [a, b] = args[..] else {
                return None;
            };
            let (rest, sum) = match op {
                Op::Add if self.steady.contains(&b) => (a, (b, true)),
                Op::Add if self.steady.contains(&a) => (b, (a, true)),
                Op::Sub if self.steady.contains(&b) => (a, (b, false)),
                _uneven => return None,
            };
            found.push(sum);
            at = rest;
            if at == param || found.len() > MOST_SUMS {
                break;
            }
        }
        (at == param && !found.is_empty() && found.len() <= MOST_SUMS).then_some(found)
    }

    /// A quotient by a step takes long, but for a power of two.
    fn can_divide(&self, count: &Count, param: Value) -> bool {
        let power = |by: i128| by != 0 && by.unsigned_abs().is_power_of_two();
        count.by.map_or_else(
            || count.scalar.is_unsigned_integer() && self.scalar(param) == Some(count.scalar),
            power,
        )
    }

    /// The sum of what an iteration adds, in front of the loop.
    fn growth(
        &mut self,
        body: &Region,
        param: Value,
        sums: &[(Value, bool)],
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        // What is computed in the loop is computed again.
        let mut needed: HashSet<Value> = sums.iter().map(|(value, _)| *value).collect();
        let mut insts = Vec::new();
        for inst in body.insts.iter().rev() {
            if inst.results.iter().any(|result| needed.contains(result)) {
                inst.kind.for_each_use(|value| {
                    needed.insert(value);
                });
                insts.push(inst);
            }
        }
        let mut map = Map::new();
        for inst in insts.into_iter().rev() {
            let mut copy = inst.clone();
            substitute(&map, &mut copy.kind);
            for result in &mut copy.results {
                let ty = self.values[result.0 as usize].ty;
                let new = new_value(&mut self.values, ty);
                map.insert(*result, new);
                self.steady.insert(new);
                if let InstKind::Const(constant) = copy.kind {
                    self.constants.insert(new, constant);
                }
                *result = new;
            }
            out.push(copy);
        }
        let ty = self.values[param.0 as usize].ty;
        let mut total: Option<Value> = None;
        for (value, adds) in sums {
            let value = map.get(value).copied().unwrap_or(*value);
            total = Some(match (total, adds) {
                (None, true) => value,
                (None, false) => self.op(Op::Neg, ty, &[value], span, out),
                (Some(sum), true) => self.op(Op::Add, ty, &[sum, value], span, out),
                (Some(sum), false) => self.op(Op::Sub, ty, &[sum, value], span, out),
            });
        }
        total.expect("an iteration adds something")
    }

    /// How many iterations were made before this one, as a number of the value's type, and what to multiply it by.
    fn iteration(
        &mut self,
        count: &Count,
        param: Value,
        growth: Value,
        span: Span,
        front: &mut Vec<Inst>,
    ) -> (Value, Option<Value>) {
        let ty = Type::Scalar(count.scalar);
        let down = count.by.is_some_and(|by| by < 0);
        let distance = if down {
            self.op(Op::Sub, ty, &[count.lower, count.index], span, front)
        } else if self.integer(count.lower) == Some(0) {
            count.index
        } else {
            self.op(Op::Sub, ty, &[count.index, count.lower], span, front)
        };
        let distance = self.cast(distance, unsigned(count.scalar), span, front);
        let to = self.scalar(param).unwrap_or(count.scalar);
        // By a step that is not constant only what grows by it is rewritten: its growth is the distance.
        let Some(by) = count.by.map(i128::unsigned_abs) else {
            return (self.cast(distance, to, span, front), None);
        };
        let whole = self.integer(growth).map(|n| n as i64 as u64);
        if let Some(whole) = whole.filter(|n| by > 1 && (*n as u128).is_multiple_of(by)) {
            let bits = (whole / by as u64) & (u64::MAX >> (64 - to.bits()));
            let factor = self.number(to, bits, span, front);
            return (self.cast(distance, to, span, front), Some(factor));
        }
        let iteration = if by == 1 {
            distance
        } else {
            let scalar = unsigned(count.scalar);
            let by = self.number(scalar, by as u64, span, front);
            self.op(Op::Div, Type::Scalar(scalar), &[distance, by], span, front)
        };
        (self.cast(iteration, to, span, front), Some(growth))
    }

    /// How many iterations a loop makes that nothing leaves, as a number of the value's type.
    fn iterations(
        &mut self,
        count: &Count,
        param: Value,
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Option<Value> {
        let ty = Type::Scalar(count.scalar);
        let (lower, upper) = (count.lower, count.upper);
        let distance = match count.by? {
            1 => {
                let end = self.op(Op::Max, ty, &[upper, lower], span, out);
                self.op(Op::Sub, ty, &[end, lower], span, out)
            }
            -1 => {
                let end = self.op(Op::Min, ty, &[upper, lower], span, out);
                self.op(Op::Sub, ty, &[lower, end], span, out)
            }
            _needs_a_quotient => return None,
        };
        let distance = self.cast(distance, unsigned(count.scalar), span, out);
        let to = self.scalar(param)?;
        Some(self.cast(distance, to, span, out))
    }

    /// `first + iterations * growth`.
    fn grown(
        &mut self,
        first: Value,
        (iterations, growth): (Value, Option<Value>),
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        let ty = self.values[first.0 as usize].ty;
        let growth = growth.filter(|growth| self.integer(*growth) != Some(1));
        let by = match growth {
            Some(growth) => self.op(Op::Mul, ty, &[iterations, growth], span, out),
            None => iterations,
        };
        self.op(Op::Add, ty, &[first, by], span, out)
    }

    fn number(&mut self, scalar: Scalar, bits: u64, span: Span, out: &mut Vec<Inst>) -> Value {
        let constant = Const { scalar, bits };
        let value = push_const(&mut self.values, out, constant, span);
        self.constants.insert(value, constant);
        self.steady.insert(value);
        value
    }

    fn cast(&mut self, value: Value, to: Scalar, span: Span, out: &mut Vec<Inst>) -> Value {
        let ty = Type::Scalar(to);
        if self.values[value.0 as usize].ty == ty {
            return value;
        }
        self.push(Op::Cast, Imm::Type(ty), ty, &[value], span, out)
    }

    fn op(&mut self, op: Op, ty: Type, args: &[Value], span: Span, out: &mut Vec<Inst>) -> Value {
        self.push(op, Imm::None, ty, args, span, out)
    }

    fn push(
        &mut self,
        op: Op,
        imm: Imm,
        ty: Type,
        args: &[Value],
        span: Span,
        out: &mut Vec<Inst>,
    ) -> Value {
        let args = args.iter().copied().collect();
        let kind = InstKind::Op { op, imm, args };
        let is_steady = is_steady(&kind, &self.steady);
        let result = push_inst(&mut self.values, out, kind, ty, span);
        if is_steady {
            self.steady.insert(result);
        }
        result
    }
}

/// The unsigned integer of the same width.
fn unsigned(scalar: Scalar) -> Scalar {
    match scalar.bits() {
        8 => Scalar::U8,
        16 => Scalar::U16,
        32 => Scalar::U32,
        _of_64_bits => Scalar::U64,
    }
}
