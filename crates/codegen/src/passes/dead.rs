//! Dead code: what computes a value that nothing uses, loads that nobody looks at, thread arrays that
//! are only written, `if`s without contents. Stores to what others can see, atomics and barriers stay;
//! so does every `loop`, which may be one that never ends (X3).

use std::collections::HashSet;

use invar_ir::{AccessMode, AddressSpace, Inst, InstKind, Kernel, Memory, Region, Value};

use super::common::yielded;

pub(super) fn run(kernel: &mut Kernel) {
    loop {
        let mut live = Live {
            used: vec![false; kernel.values.len()],
            read: HashSet::new(),
        };
        live.region(&kernel.body);
        let thread: HashSet<Memory> = (0..kernel.allocs.len())
            .filter(|i| kernel.allocs[*i].space == AddressSpace::Thread)
            .map(|i| Memory::Alloc(i as u32))
            .collect();
        let unread: HashSet<Memory> = thread.difference(&live.read).copied().collect();
        let mut body = std::mem::take(&mut kernel.body);
        let changed = sweep(&mut body, &live.used, &unread);
        kernel.body = body;
        if !changed {
            return;
        }
    }
}

/// What is used somewhere.
struct Live {
    used: Vec<bool>,
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
        inst.kind.for_each_use(|v| self.used[v.0 as usize] = true);
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

/// Drops what is dead; whether anything was.
fn sweep(region: &mut Region, used: &[bool], unread: &HashSet<Memory>) -> bool {
    let mut changed = false;
    // From the last: a use goes before what it used.
    let mut kept = Vec::with_capacity(region.insts.len());
    for mut inst in std::mem::take(&mut region.insts).into_iter().rev() {
        for inner in inst.kind.regions_mut() {
            changed |= sweep(inner, used, unread);
        }
        if is_dead(&inst, used, unread) {
            changed = true;
        } else {
            kept.push(inst);
        }
    }
    kept.reverse();
    region.insts = kept;
    changed
}

fn is_dead(inst: &Inst, used: &[bool], unread: &HashSet<Memory>) -> bool {
    let unused = |v: &Value| !used[v.0 as usize];
    match &inst.kind {
        kind if kind.is_removable() => inst.results.iter().all(unused),
        InstKind::Store { place, .. } => unread.contains(&place.memory),
        InstKind::Copy { operands, .. } => unread.contains(&operands.destination),
        InstKind::If {
            then, otherwise, ..
        } => {
            let empty = |r: &Region| r.insts.len() == 1 && yielded(r).is_some();
            empty(then) && empty(otherwise) && inst.results.iter().all(unused)
        }
        InstKind::For { body, .. } => {
            let empty = body.insts.len() == 1 && yielded(body).is_some();
            empty && inst.results.iter().all(unused)
        }
        // Its stores go in the same sweep.
        InstKind::Alloc(id) => unread.contains(&Memory::Alloc(*id)),
        _made_for_its_effect => false,
    }
}
