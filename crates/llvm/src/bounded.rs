//! Accesses of the kernel's own arrays and of tables whose index is in bounds whatever the dispatch is, by the range of
//! its value ([`invar_codegen::analysis::ranges`]): they need no check in any chunk, full or not.
//!
//! For kernels with threadgroup memory as large as a threadgroup of a known size: sums and scans by trees, sorts, tiles.
//! Of those the code for any chunk is most of what LLVM is given.
//!
//! Deliberately absent: buffers, whose lengths a dispatch gives, and indices into arrays of arrays that are computed.

use std::collections::HashSet;

use invar_codegen::analysis::ranges::{Known, Ranges, analyse};
use invar_ir::inst::{InstKind, Memory, Place, Step, Width};
use invar_ir::{AddressSpace, Elements, Kernel, Module};

use crate::plan::{InstKey, Plan};

/// The instructions all of whose accesses are always in bounds for the threads that come to them.
pub(crate) fn always_in_bounds(
    module: &Module,
    kernel: &Kernel,
    plan: &Plan<'_>,
    threadgroup_size: Option<[u32; 3]>,
) -> HashSet<InstKey> {
    let has_own = kernel
        .allocs
        .iter()
        .any(|a| a.space == AddressSpace::Threadgroup);
    if !has_own && module.constants.is_empty() {
        return HashSet::new();
    }
    let known = Known {
        threadgroup_size,
        threads: None,
    };
    let ranges = analyse(kernel, &known);
    let mut found = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        let accesses = inst.kind.accesses();
        let is_inside = |place: &Place| {
            elements(module, kernel, place.memory)
                .is_some_and(|length| is_in_bounds(plan, &ranges, place, length))
        };
        let all = accesses.iter().all(|access| match &access.elements {
            Elements::Place(place) => is_inside(place),
            _matrices_and_whole_objects => false,
        });
        if all && !accesses.is_empty() {
            found.insert(std::ptr::from_ref(inst));
        }
    });
    found
}

/// How many elements an object has, if the kernel says so.
fn elements(module: &Module, kernel: &Kernel, memory: Memory) -> Option<u64> {
    match memory {
        Memory::Alloc(i) => {
            let alloc = &kernel.allocs[i as usize];
            (alloc.space == AddressSpace::Threadgroup).then_some(alloc.length.into())
        }
        Memory::Constant(_) => module.memory(kernel, memory)?.length.map(u64::from),
        Memory::Param(_) => None,
    }
}

fn is_in_bounds(plan: &Plan<'_>, ranges: &Ranges, place: &Place, length: u64) -> bool {
    let fixed = place.path.iter().all(|step| match step {
        Step::Field(_) => true,
        Step::Index(v) => {
            let made = plan.definitions.get(v).map(|inst| &inst.kind);
            matches!(made, Some(InstKind::Const(_)))
        }
    });
    let first_of_last = match place.width {
        Width::One => length,
        Width::Run(n) => (length + 1).saturating_sub(n.into()),
        Width::Group(n) => length / u64::from(n),
    };
    fixed && ranges.is_inside(place.index, first_of_last)
}
