//! Dead code: what computes a value that nothing uses, loads whose values are unused, thread arrays that
//! are only written, `if`s and `for`s that only compute what nothing uses. Stores to what others can see,
//! atomics and barriers stay; so does every `loop`, which may be one that never ends (X3).

use std::collections::HashSet;

use invar_ir::{AccessMode, AddressSpace, Inst, InstKind, Kernel, Memory, Region, Value};

use super::common::yielded;

pub(super) fn run(kernel: &mut Kernel) {
    loop {
        let mut live = Live {
            uses: vec![0; kernel.values.len()],
            read: HashSet::new(),
        };
        live.region(&kernel.body);
        let unread: HashSet<Memory> = (0..kernel.allocs.len())
            .filter(|i| kernel.allocs[*i].space == AddressSpace::Thread)
            .map(|i| Memory::Alloc(i as u32))
            .filter(|memory| !live.read.contains(memory))
            .collect();
        let mut body = std::mem::take(&mut kernel.body);
        let changed = sweep(&mut body, &mut live.uses, &unread);
        kernel.body = body;
        if !changed {
            return;
        }
    }
}

/// What is used somewhere.
struct Live {
    /// How often each value is.
    uses: Vec<u32>,
    /// Objects that something reads.
    read: HashSet<Memory>,
}

impl Live {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &Inst) {
        inst.kind.for_each_use(|v| self.uses[v.0 as usize] += 1);
        for access in inst.kind.accesses() {
            if access.mode != AccessMode::Write {
                self.read.insert(access.memory);
            }
        }
        for region in inst.kind.regions() {
            self.region(region);
        }
    }
}

/// Drops what is dead; whether anything was. What only dead instructions use goes with them, so that a chain
/// takes one sweep.
fn sweep(region: &mut Region, uses: &mut [u32], unread: &HashSet<Memory>) -> bool {
    let mut changed = false;
    // From the last: a use goes before what it used.
    let mut kept = Vec::with_capacity(region.insts.len());
    for mut inst in std::mem::take(&mut region.insts).into_iter().rev() {
        for inner in inst.kind.regions_mut() {
            changed |= sweep(inner, uses, unread);
        }
        if is_dead(&inst, uses, unread) {
            changed = true;
            drop_uses(&inst, uses);
        } else {
            kept.push(inst);
        }
    }
    kept.reverse();
    region.insts = kept;
    changed
}

fn drop_uses(inst: &Inst, uses: &mut [u32]) {
    inst.kind.for_each_use(|v| uses[v.0 as usize] -= 1);
    for inner in inst.kind.regions().into_iter().flat_map(|r| &r.insts) {
        drop_uses(inner, uses);
    }
}

fn is_dead(inst: &Inst, uses: &[u32], unread: &HashSet<Memory>) -> bool {
    let unused = |v: &Value| uses[v.0 as usize] == 0;
    match &inst.kind {
        kind if kind.is_removable() => inst.results.iter().all(unused),
        InstKind::Store { place, .. } => unread.contains(&place.memory),
        InstKind::Copy { operands, .. } => unread.contains(&operands.destination),
        // It would end: only a `loop` may never do.
        InstKind::If { .. } | InstKind::For { .. } => {
            inst.results.iter().all(unused) && inst.kind.regions().into_iter().all(is_idle)
        }
        // Its stores go in the same sweep.
        InstKind::Alloc(id) => unread.contains(&Memory::Alloc(*id)),
        _made_for_its_effect => false,
    }
}

/// Whether a region does nothing but give results.
fn is_idle(region: &Region) -> bool {
    let is_idle_inst = |inst: &Inst| match &inst.kind {
        InstKind::If { .. } | InstKind::For { .. } => inst.kind.regions().into_iter().all(is_idle),
        InstKind::Yield(_) => true,
        flat => flat.is_removable(),
    };
    yielded(region).is_some() && region.insts.iter().all(is_idle_inst)
}
