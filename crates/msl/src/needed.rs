//! What a kernel computes for something: templates leave code in it whose results go nowhere, such as accesses to an
//! array that one instance does not have.
//!
//! Nobody but the thread sees its variables, so what is stored there and never comes out of them is needed for nothing,
//! and neither are the loads that it comes from.

use std::collections::{HashMap, HashSet};

use invar_llvm::foreign::{Function, Global, Kind, Operand, Type};

use crate::objects::{Objects, Root};

/// What ends a block, or is seen by others.
fn acts(f: &Function, inst: usize) -> bool {
    let inst = &f.insts[inst];
    match &inst.kind {
        Kind::Jump(_) | Kind::Branch(..) | Kind::Return | Kind::Unreachable => true,
        Kind::Call(name) => {
            let of_all = [
                "invar.simd",
                "invar.quad",
                "invar.atomic",
                "invar.texture.atomic",
            ];
            let is_copy = name.starts_with("llvm.mem");
            !is_copy && (inst.ty == Type::Void || of_all.iter().any(|p| name.starts_with(p)))
        }
        _value => false,
    }
}

/// Where an instruction stores, and from where it loads.
fn places(f: &Function, inst: usize) -> (Option<&Operand>, Option<&Operand>) {
    let inst = &f.insts[inst];
    match &inst.kind {
        Kind::Store => (inst.operands.get(1), None),
        Kind::Load => (None, inst.operands.first()),
        Kind::Call(name) if name.starts_with("llvm.memset") => (inst.operands.first(), None),
        Kind::Call(name) if name.starts_with("llvm.mem") => {
            (inst.operands.first(), inst.operands.get(1))
        }
        // Atomics act anyway, and functions of matrices are given addresses.
        Kind::Call(_) => (None, inst.operands.iter().find(|o| is_address(f, o))),
        _other => (None, None),
    }
}

fn is_address(f: &Function, operand: &Operand) -> bool {
    match operand {
        Operand::Inst(number) => f.insts[*number].ty == Type::Pointer,
        Operand::Param(number) => f.params[*number].ty == Type::Pointer,
        Operand::Global(..) => true,
        _number => false,
    }
}

/// Whether each instruction is needed.
pub(crate) fn needed(f: &Function, objects: &Objects) -> Vec<bool> {
    let is_own = |operand: &Operand| {
        let roots = objects.roots_of(operand);
        !roots.is_empty() && roots.iter().all(|r| matches!(r, Root::Variable(_)))
    };
    let mut stores: HashMap<Root, Vec<usize>> = HashMap::new();
    for inst in 0..f.insts.len() {
        for root in places(f, inst)
            .0
            .map_or_else(Vec::new, |to| objects.roots_of(to))
        {
            stores.entry(root).or_default().push(inst);
        }
    }
    let mut needed = vec![false; f.insts.len()];
    let mut read: HashSet<Root> = HashSet::new();
    let mut open: Vec<usize> = (0..f.insts.len())
        .filter(|inst| acts(f, *inst) || places(f, *inst).0.is_some_and(|to| !is_own(to)))
        .collect();
    while let Some(inst) = open.pop() {
        if std::mem::replace(&mut needed[inst], true) {
            continue;
        }
        open.extend(f.insts[inst].operands.iter().flat_map(within));
        let from = places(f, inst).1;
        for root in from.map_or_else(Vec::new, |from| objects.roots_of(from)) {
            if read.insert(root) {
                open.extend(stores.get(&root).into_iter().flatten());
            }
        }
    }
    needed
}

/// A variable outside functions that has no value before the kernel runs: a function constant that nobody gave one, or
/// one that is computed from it.
pub(crate) fn is_unknown(global: &Global) -> bool {
    global.section == "function_constant" || global.computed_from.is_some()
}

/// The first instruction that reads such a variable for something, and which.
pub(crate) fn unknown(f: &Function, objects: &Objects) -> Option<(usize, usize)> {
    let globals = (0..f.globals.len()).filter(|number| is_unknown(&f.globals[*number]));
    let reads = globals.flat_map(|number| {
        let accesses = objects.accesses.get(&Root::Global(number));
        let accesses = accesses.into_iter().flatten().filter(|a| a.reads);
        accesses.map(move |access| (access.inst, number))
    });
    reads
        .filter(|(inst, _)| objects.is_needed(*inst))
        .min_by_key(|(inst, _)| *inst)
}

/// Whether a kernel needs the value of such a variable.
pub(crate) fn needs_unknown(f: &Function) -> bool {
    unknown(f, &Objects::of(f)).is_some()
}

/// The instructions in an operand.
fn within(operand: &Operand) -> Vec<usize> {
    match operand {
        Operand::Inst(number) => vec![*number],
        Operand::Parts(parts) => parts.iter().flat_map(within).collect(),
        _other => Vec::new(),
    }
}
