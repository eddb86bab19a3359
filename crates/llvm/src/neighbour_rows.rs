//! Whether neighbouring rows of threads read the same memory: the thread below reads, with another load, what
//! its neighbour above reads, as in filters and stencils.
//!
//! Indices are looked at without regard to wrapping: the answer decides what is fast and nothing else.

use invar_codegen::analysis::affine::{Affine, Product, Sum, Symbol};
use invar_ir::inst::{InstKind, Memory};
use invar_ir::ops::{Dim, Imm};
use invar_ir::{Kernel, Op};

use crate::tuning::{SHARED_ELEMENTS_BESIDE, SHARED_ROWS_APART};

/// Whether a kernel asks in which row a thread is.
pub(crate) fn tells_rows(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op { op, imm, .. } = &inst.kind {
            let position = matches!(
                op,
                Op::ThreadPositionInGrid | Op::ThreadPositionInThreadgroup
            );
            found |= position && *imm == Imm::Dim(Dim::Y);
        }
    });
    found
}

/// Whether a row of threads reads what another load reads in a row close to it.
pub(crate) fn share_loads(kernel: &Kernel, affine: &Affine<'_>) -> bool {
    let mut loads: Vec<(Memory, Sum<Product>, Sum<Product>)> = Vec::new();
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Load(place) = &inst.kind else {
            return;
        };
        let index = affine.of(place.index).sum;
        let Some(pitch) = index.coefficient(Symbol::Thread(Dim::Y)) else {
            return;
        };
        if found || pitch == Sum::constant(0) {
            return;
        }
        found = loads.iter().any(|(memory, other, other_pitch)| {
            (*memory, other_pitch) == (place.memory, &pitch) && is_rows_apart(&index, other, &pitch)
        });
        loads.push((place.memory, index, pitch));
    });
    found
}

/// Whether two indices are a few rows apart, and not far to the side.
fn is_rows_apart(a: &Sum<Product>, b: &Sum<Product>, pitch: &Sum<Product>) -> bool {
    let difference = a.clone().plus(b, -1);
    (1..=SHARED_ROWS_APART).flat_map(|k| [k, -k]).any(|k| {
        let beside = difference.clone().plus(pitch, -k).as_constant();
        beside.is_some_and(|by| by.abs() <= SHARED_ELEMENTS_BESIDE)
    })
}
