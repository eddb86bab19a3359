//! How many lanes a vector has: as many as a register has numbers of 32 bits, or more for kernels of small integers.
//!
//! This is for pictures of bytes, texts and cellular automata: what they load, compute and store is 8 or 16 bits wide,
//! and vectors of as many lanes as there are numbers of 32 bits would leave most of each register empty. Wider numbers
//! of such a kernel, mostly indices, then take several registers.

use std::collections::HashSet;

use invar_codegen::analysis::affine::Affine;
use invar_ir::inst::{InstKind, Value};
use invar_ir::{Kernel, Region, Scalar, Type};

use crate::target::Features;
use crate::tuning::{MOST_COST_OF_MORE_LANES, WIDEST_FILLED_BITS};

/// The most lanes of a vector.
const MOST_LANES: u32 = 32;

/// How many lanes the vectors of a kernel have that tells no simdgroups.
pub(crate) fn lanes(kernel: &Kernel, affine: &Affine<'_>, target: &Features) -> u32 {
    let natural = target.vector_bits / 32;
    let filled = target.vector_bits.min(WIDEST_FILLED_BITS);
    let Some(bits) = data_bits(kernel, affine) else {
        return natural;
    };
    // What operations of these widths take, for each lane.
    let cost = |lanes: u32| {
        let registers = |bits: &u32| f64::from((lanes * bits).div_ceil(filled));
        bits.iter().map(registers).sum::<f64>() / f64::from(lanes)
    };
    let mut best = natural;
    let mut lanes = natural * 2;
    while lanes <= MOST_LANES {
        if cost(lanes) < MOST_COST_OF_MORE_LANES * cost(best) {
            best = lanes;
        }
        lanes *= 2;
    }
    best
}

/// The widths of what is stored and of what that is computed from, as far as the loads; none if there is anything but
/// integers and truth values among it.
fn data_bits(kernel: &Kernel, affine: &Affine<'_>) -> Option<Vec<u32>> {
    let (mut open, mut only_stores) = (Vec::new(), true);
    kernel.for_each_inst(&mut |inst| match &inst.kind {
        InstKind::Store { value, .. } => open.push(*value),
        other => only_stores &= !other.may_change_memory(),
    });
    let mut seen: HashSet<Value> = open.iter().copied().collect();
    let mut bits = Vec::new();
    while let Some(value) = open.pop() {
        let Type::Scalar(scalar) = kernel.ty(value) else {
            return None;
        };
        let Some(inst) = affine.definition(value) else {
            // A parameter is one number for all threads; what a loop carries is found from where it goes on.
            continue;
        };
        if scalar.is_float() {
            return None;
        }
        let mut from = Vec::new();
        if inst.kind.as_op().is_some() {
            inst.kind.for_each_use(|value| from.push(value));
        }
        inst.kind
            .regions()
            .into_iter()
            .for_each(|region| handed_on(region, &mut from));
        if !inst.kind.is_constant() && scalar != Scalar::Bool {
            bits.push(scalar.bits());
        }
        open.extend(from.into_iter().filter(|value| seen.insert(*value)));
    }
    (only_stores && !bits.is_empty()).then_some(bits)
}

/// What a region hands on, also out of a loop that it is in.
fn handed_on(region: &Region, values: &mut Vec<Value>) {
    for inst in &region.insts {
        if inst.kind.is_terminator() {
            inst.kind.for_each_use(|value| values.push(value));
        }
        inst.kind
            .regions()
            .into_iter()
            .for_each(|inner| handed_on(inner, values));
    }
}
