//! Unrolling: a `for` of a few iterations, known at compile time, whose body is small and leaves only by
//! its end, becomes its iterations one after another. The index is a constant in each.
//!
//! So does a `loop` whose counter goes another way, by halves mostly, and which ends where a comparison of it says so:
//!
//! ```text
//! loop carry(k, ..) { if k > 0 {} else { break .. } .. yield k >> 1, .. }
//! loop carry(k, ..) { if k > 0 { .. continue k >> 1, .. } break .. }
//! ```
//!
//! For the steps of reductions, scans and sorts in threadgroup memory, of which `trees` and the CPU compiler know more
//! where each says how many threads make it.

use std::collections::HashMap;

use invar_ir::ops::Meaning;
use invar_ir::ops::evaluate::evaluate;
use invar_ir::{Const, Inst, InstKind, Kernel, Region, Type, Value, ValueInfo};

use crate::tuning::UNROLLED_HALVES;

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

/// Values that are constants in an iteration.
type Known = HashMap<Value, Const>;

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
            if let Some(iterations) = self.iterations(&inst) {
                self.unroll(inst, &iterations, &mut region.insts);
            } else if let Some((parts, iterations)) = self.iterations_by_halves(&inst) {
                self.unroll_by_halves(&inst, &parts, &iterations, &mut region.insts);
            } else {
                region.insts.push(inst);
            }
        }
    }

    /// The index of each iteration, if there are few and the body is small.
    fn iterations(&self, inst: &Inst) -> Option<Vec<Const>> {
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
        let mut iterations = Vec::new();
        let mut index = lower;
        while (step > 0 && index < upper) || (step < 0 && index > upper) {
            let bits = index as u64 & mask;
            iterations.push(Const { scalar, bits });
            if iterations.len() > self.options.unroll_iterations as usize {
                return None;
            }
            index += step;
        }
        (iterations.len() * count(body) <= self.options.unroll_instructions).then_some(iterations)
    }

    /// The constants that a `loop` begins each of its iterations with, and that in which it ends, if there are few and
    /// the body is small.
    fn iterations_by_halves(&self, inst: &Inst) -> Option<(Parts, Vec<Known>)> {
        let InstKind::Loop { init, body, .. } = &inst.kind else {
            return None;
        };
        let parts = Parts::of(body)?;
        let of_init =
            |(param, value): (&Value, &Value)| Some((*param, *self.constants.get(value)?));
        let mut known: Known = body.params.iter().zip(init).filter_map(of_init).collect();
        let size = count(&parts.iteration);
        let mut iterations = Vec::new();
        loop {
            iterations.push(known.clone());
            if iterations.len() > UNROLLED_HALVES as usize + 1
                || iterations.len() * size > self.options.unroll_instructions
            {
                return None;
            }
            let mut all = known;
            let (head, behind) = parts.iteration.insts.split_at(parts.before);
            self.evaluate(head, &mut all);
            let condition = self.known(parts.condition, &all)?;
            if (condition.bits != 0) != parts.goes_on {
                return Some((parts, iterations));
            }
            self.evaluate(behind, &mut all);
            let next = body.params.iter().zip(yielded(&parts.iteration)?);
            let next = next.filter_map(|(p, v)| Some((*p, self.known(*v, &all)?)));
            known = next.collect();
        }
    }

    fn known(&self, value: Value, known: &Known) -> Option<Const> {
        known
            .get(&value)
            .or_else(|| self.constants.get(&value))
            .copied()
    }

    /// Adds what instructions compute of what is known.
    fn evaluate(&self, insts: &[Inst], known: &mut Known) {
        let ty = |value: Value| self.values[value.0 as usize].ty;
        for inst in insts {
            let constant = match &inst.kind {
                InstKind::Const(constant) => Some(*constant),
                InstKind::Op { op, imm, args } if matches!(op.row().meaning, Meaning::Eval(_)) => {
                    let args_known: Option<Vec<[u64; 1]>> = args
                        .iter()
                        .map(|v| Some([self.known(*v, known)?.bits]))
                        .collect();
                    let columns = args_known.filter(|all| !all.is_empty());
                    columns.and_then(|columns| {
                        let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
                        let types: Vec<Type> = args.iter().map(|v| ty(*v)).collect();
                        let bits = evaluate(*op, *imm, &types, &columns).ok()?;
                        let Type::Scalar(scalar) = ty(inst.results[0]) else {
                            return None;
                        };
                        Some(Const {
                            scalar,
                            bits: bits[0][0],
                        })
                    })
                }
                _another => None,
            };
            if let Some(constant) = constant {
                known.insert(inst.results[0], constant);
            }
        }
    }

    fn unroll_by_halves(
        &mut self,
        inst: &Inst,
        parts: &Parts,
        iterations: &[Known],
        out: &mut Vec<Inst>,
    ) {
        let InstKind::Loop { init, body, .. } = &inst.kind else {
            return;
        };
        let mut carried: Vec<Value> = init.to_vec();
        for (n, known) in iterations.iter().enumerate() {
            for (param, value) in body.params.iter().zip(&mut carried) {
                if let Some(constant) = known.get(param) {
                    *value = push_const(&mut self.values, out, *constant, inst.span);
                    self.constants.insert(*value, *constant);
                }
            }
            let mut map: Map = body
                .params
                .iter()
                .copied()
                .zip(carried.iter().copied())
                .collect();
            let is_last = n + 1 == iterations.len();
            let mut region = if is_last {
                parts.last.clone()
            } else {
                parts.iteration.clone()
            };
            substitute_region(&self.map, &mut region);
            let mut copy = clone_region(&mut self.values, &region, &mut map);
            carried = yielded(&copy).map(<[Value]>::to_vec).unwrap_or_default();
            copy.insts.pop();
            out.append(&mut copy.insts);
        }
        for (result, value) in inst.results.iter().zip(carried) {
            self.map.insert(*result, resolve(&self.map, value));
        }
    }

    fn unroll(&mut self, inst: Inst, iterations: &[Const], out: &mut Vec<Inst>) {
        let InstKind::For { init, body, .. } = inst.kind else {
            return;
        };
        let mut body = body;
        substitute_region(&self.map, &mut body);
        let mut carried: Vec<Value> = init.to_vec();
        for iteration in iterations {
            let index = push_const(&mut self.values, out, *iteration, inst.span);
            self.constants.insert(index, *iteration);
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

/// A `loop` that ends where a condition says so, which is all that is computed before.
struct Parts {
    /// What an iteration comes to, and what it gives the next.
    iteration: Region,
    /// What the last comes to where the loop ends, and the results.
    last: Region,
    /// What computes the condition.
    before: usize,
    condition: Value,
    /// Whether the loop goes on where it holds.
    goes_on: bool,
}

impl Parts {
    fn of(body: &Region) -> Option<Parts> {
        let before = body.insts.iter().position(|i| !i.kind.is_speculatable())?;
        let (head, rest) = body.insts.split_at(before);
        let (choice, behind) = rest.split_first()?;
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &choice.kind
        else {
            return None;
        };
        let is_nothing = |side: &Region| matches!(&side.insts[..], [only] if matches!(&only.kind, InstKind::Yield(values) if values.is_empty()));
        let (goes_on, side) = match (is_nothing(then), is_nothing(otherwise)) {
            (true, false) => (true, otherwise),
            (false, true) => (false, then),
            _both => return None,
        };
        let ends = |insts: &[Inst]| {
            let (end, own) = insts.split_last()?;
            let only_computes = own.iter().all(|inst| inst.kind.is_speculatable());
            let values = match &end.kind {
                InstKind::Break(values) if only_computes => values.clone(),
                _goes_on => return None,
            };
            Some((own.to_vec(), values))
        };
        let goes = |insts: &[Inst]| {
            let (end, own) = insts.split_last()?;
            let (InstKind::Yield(values) | InstKind::Continue(values)) = &end.kind else {
                return None;
            };
            Some((own.to_vec(), values.clone()))
        };
        // The side leaves, and what is behind goes on, or the other way around.
        let (leaving, going, goes_on) = match ends(&side.insts) {
            Some(leaving) => (leaving, goes(behind)?, goes_on),
            None => (ends(behind)?, goes(&side.insts)?, !goes_on),
        };
        let region = |(own, values): (Vec<Inst>, _)| {
            let mut insts = [head, &own[..]].concat();
            let span = choice.span;
            insts.push(Inst {
                kind: InstKind::Yield(values),
                results: Default::default(),
                span,
            });
            Region {
                params: body.params.clone(),
                insts,
            }
        };
        let parts = Parts {
            iteration: region(going),
            last: region(leaving),
            before,
            condition: *condition,
            goes_on,
        };
        (!leaves(&parts.iteration)).then_some(parts)
    }
}

/// Whether a loop's body leaves it, or its iteration, early; an array that begins in each iteration stays
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
