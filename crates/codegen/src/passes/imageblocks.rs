//! Imageblocks become threadgroup arrays, and barriers that order them order threadgroup memory: no target has them.
//!
//! A barrier then orders more than its author asked for, never less, so that what a kernel means does not change (O2).
//! Checkers and the prover look at the kernel as it was: what the other space's barriers order, they do not.

use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{AddressSpace, InstKind, Kernel, Region, Spaces};

/// Rewrites a kernel; one without imageblocks stays as it is.
pub fn lower(kernel: &mut Kernel) {
    if !kernel.has_imageblocks() {
        return;
    }
    for alloc in &mut kernel.allocs {
        if alloc.space == AddressSpace::Imageblock {
            alloc.space = AddressSpace::Threadgroup;
        }
    }
    with_room(PASSES_BYTES, || widen_barriers(&mut kernel.body));
}

fn widen_barriers(region: &mut Region) {
    for inst in &mut region.insts {
        if let InstKind::Barrier { spaces, .. } = &mut inst.kind
            && spaces.contains(Spaces::IMAGEBLOCK)
        {
            spaces.0 &= !Spaces::IMAGEBLOCK.0;
            *spaces = spaces.with(Spaces::THREADGROUP);
        }
        for inner in inst.kind.regions_mut() {
            widen_barriers(inner);
        }
    }
}
