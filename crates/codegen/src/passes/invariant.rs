//! Loop-invariant motion: what a loop's body computes in every iteration from values of outside moves in
//! front of the loop. Loads move only from memory that the dispatch does not write (R2, B5); nothing moves out of an
//! `if`, where it may run seldom; stores never move.

use std::collections::HashSet;

use invar_ir::{Inst, InstKind, Kernel, Module, Region, Value};

use super::PassOptions;
use super::common::change_body;

pub(super) fn run(module: &Module, kernel: &mut Kernel, _options: &PassOptions) {
    change_body(kernel, |kernel, body| region(module, kernel, body));
}

fn region(module: &Module, kernel: &Kernel, r: &mut Region) {
    let old = std::mem::take(&mut r.insts);
    for mut inst in old {
        for inner in inst.kind.regions_mut() {
            region(module, kernel, inner);
        }
        if let InstKind::For { body, .. } | InstKind::Loop { body, .. } = &mut inst.kind {
            hoist(module, kernel, body, &mut r.insts);
        }
        r.insts.push(inst);
    }
}

/// Moves what is invariant from a loop's body to the end of `out`.
fn hoist(module: &Module, kernel: &Kernel, body: &mut Region, out: &mut Vec<Inst>) {
    let mut inside: HashSet<Value> = body.params.iter().copied().collect();
    let mut rest = Vec::with_capacity(body.insts.len());
    // Whether the iteration may have ended before this instruction.
    let mut left = false;
    for inst in std::mem::take(&mut body.insts) {
        let mut invariant = inst.kind.is_pure(module, kernel);
        // Behind a way out a load may be one that never runs: it would cost, and touch memory.
        invariant &= !left || inst.kind.is_speculatable();
        inst.kind
            .for_each_use(|v| invariant &= !inside.contains(&v));
        if invariant {
            out.push(inst);
        } else {
            left |= inst.kind.has_regions();
            define(&inst, &mut inside);
            rest.push(inst);
        }
    }
    body.insts = rest;
}

fn define(inst: &Inst, inside: &mut HashSet<Value>) {
    inside.extend(inst.results.iter().copied());
    for region in inst.kind.regions() {
        inside.extend(region.params.iter().copied());
        for inner in &region.insts {
            define(inner, inside);
        }
    }
}
