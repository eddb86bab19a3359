//! Sinking: what only computes a value stands where the value is first used, among loads and stores.
//!
//! A kernel that loads all its elements, then computes, then stores all of them needs a register for
//! each and touches every array in turn; element by element it needs few, and its accesses to one
//! place in several arrays stand together. Nothing moves past a branch, a loop, a barrier or another
//! exchange between threads: a load that stands before one is meant to be under way meanwhile.
//! Loads move only from memory that the dispatch does not write (R2, B5); stores and other loads keep their order.

use std::collections::HashMap;

use invar_ir::{Inst, InstKind, Kernel, Module, Region, Value};

use super::common::change_body;

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    change_body(kernel, |kernel, body| region(module, kernel, body));
}

fn region(module: &Module, kernel: &Kernel, r: &mut Region) {
    let mut out = Vec::with_capacity(r.insts.len());
    let mut waiting = Waiting::default();
    for mut inst in std::mem::take(&mut r.insts) {
        for inner in inst.kind.regions_mut() {
            region(module, kernel, inner);
        }
        if inst.kind.is_pure(module, kernel) {
            waiting.push(inst);
        } else {
            if matches!(inst.kind, InstKind::Load(_) | InstKind::Store { .. }) {
                waiting.emit_needed(&inst, &mut out);
            } else {
                waiting.emit_all(&mut out);
            }
            out.push(inst);
        }
    }
    waiting.emit_all(&mut out);
    r.insts = out;
}

/// Instructions that stand nowhere yet, in the author's order, in which each follows its operands.
#[derive(Default)]
struct Waiting {
    insts: Vec<Option<Inst>>,
    /// Which of them gives a value.
    of: HashMap<Value, usize>,
}

impl Waiting {
    fn push(&mut self, inst: Inst) {
        let at = self.insts.len();
        self.of.extend(inst.results.iter().map(|&v| (v, at)));
        self.insts.push(Some(inst));
    }

    /// Puts what an instruction is computed from in front of it.
    fn emit_needed(&mut self, user: &Inst, out: &mut Vec<Inst>) {
        let (mut needed, mut open) = (Vec::new(), Vec::new());
        let need = |of: &HashMap<Value, usize>, inst: &Inst, open: &mut Vec<usize>| {
            inst.kind.for_each_use(|v| open.extend(of.get(&v)));
        };
        need(&self.of, user, &mut open);
        while let Some(at) = open.pop() {
            if let Some(inst) = self.insts[at].take() {
                need(&self.of, &inst, &mut open);
                needed.push((at, inst));
            }
        }
        needed.sort_unstable_by_key(|(at, _)| *at);
        out.extend(needed.into_iter().map(|(_, inst)| inst));
    }

    fn emit_all(&mut self, out: &mut Vec<Inst>) {
        out.extend(self.insts.drain(..).flatten());
        self.of.clear();
    }
}
