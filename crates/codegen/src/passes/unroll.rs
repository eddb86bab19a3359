//! Unrolling: a `for` of a few rounds, known at compile time, whose body is small and leaves only by
//! its end, becomes its rounds one after another. The index is a constant in each.

use std::collections::HashMap;

use invar_ir::{Const, Inst, InstKind, Kernel, Region, Type, Value, ValueInfo};

use super::PassOptions;
use super::common::{
    Map, clone_region, constants, count, integer, push_const, resolve, substitute,
    substitute_region, yielded,
};

pub(super) fn run(kernel: &mut Kernel, options: &PassOptions) {
    let mut unroll = Unroll {
        constants: constants(kernel),
        values: std::mem::take(&mut kernel.values),
        map: Map::new(),
        options,
    };
    let mut body = std::mem::take(&mut kernel.body);
    unroll.region(&mut body);
    kernel.values = unroll.values;
    kernel.body = body;
}

struct Unroll<'a> {
    constants: HashMap<Value, Const>,
    values: Vec<ValueInfo>,
    map: Map,
    options: &'a PassOptions,
}

impl Unroll<'_> {
    fn region(&mut self, region: &mut Region) {
        let old = std::mem::take(&mut region.insts);
        for mut inst in old {
            substitute(&self.map, &mut inst.kind);
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            match self.rounds(&inst) {
                Some(rounds) => self.unroll(inst, &rounds, &mut region.insts),
                None => region.insts.push(inst),
            }
        }
    }

    /// The index of each round, if there are few and the body is small.
    fn rounds(&self, inst: &Inst) -> Option<Vec<Const>> {
        let InstKind::For {
            lower,
            upper,
            step,
            body,
            ..
        } = &inst.kind
        else {
            return None;
        };
        let constant = |v: &Value| integer(*self.constants.get(v)?);
        let (lower, upper, step) = (constant(lower)?, constant(upper)?, constant(step)?);
        yielded(body)?;
        if step == 0 || leaves(body) {
            return None;
        }
        let Type::Scalar(scalar) = self.values[body.params.first()?.0 as usize].ty else {
            return None;
        };
        let mask = u64::MAX >> (64 - scalar.bits());
        let mut rounds = Vec::new();
        let mut index = lower;
        while (step > 0 && index < upper) || (step < 0 && index > upper) {
            let bits = index as u64 & mask;
            rounds.push(Const { scalar, bits });
            if rounds.len() > self.options.unroll_rounds as usize {
                return None;
            }
            index += step;
        }
        (rounds.len() * count(body) <= self.options.unroll_instructions).then_some(rounds)
    }

    fn unroll(&mut self, inst: Inst, rounds: &[Const], out: &mut Vec<Inst>) {
        let InstKind::For { init, body, .. } = inst.kind else {
            return;
        };
        let mut body = body;
        substitute_region(&self.map, &mut body);
        let mut carried: Vec<Value> = init.to_vec();
        for round in rounds {
            let index = push_const(&mut self.values, out, *round, inst.span);
            self.constants.insert(index, *round);
            let mut map: Map = Map::new();
            let given = std::iter::once(index).chain(carried.iter().copied());
            map.extend(body.params.iter().copied().zip(given));
            let mut copy = clone_region(&mut self.values, &body, &mut map);
            carried = yielded(&copy).map(<[Value]>::to_vec).unwrap_or_default();
            copy.insts.pop();
            for inst in &copy.insts {
                if let InstKind::Const(constant) = inst.kind {
                    self.constants.insert(inst.results[0], constant);
                }
            }
            out.append(&mut copy.insts);
        }
        for (result, value) in inst.results.iter().zip(carried) {
            self.map.insert(*result, resolve(&self.map, value));
        }
    }
}

/// Whether a loop's body leaves it, or its round, early; an array that begins in each round stays
/// where it is too, since a copy of it would be another array.
pub(super) fn leaves(body: &Region) -> bool {
    fn begins_array(r: &Region) -> bool {
        r.insts.iter().any(|inst| {
            matches!(inst.kind, InstKind::Alloc(_))
                || inst.kind.regions().into_iter().any(begins_array)
        })
    }
    body.exits().leaves_loop() || begins_array(body)
}
