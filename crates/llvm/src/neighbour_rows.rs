//! Whether neighbouring rows of threads read the same memory: the thread below reads, with another load, what
//! its neighbour above reads, as in filters and stencils; and whether a thread itself goes from row to row.
//!
//! Indices are looked at without regard to wrapping: the answer decides what is fast and nothing else.

use invar_codegen::analysis::affine::{Affine, Product, Sum, Symbol};
use invar_ir::inst::{InstKind, Memory, Width};
use invar_ir::ops::{Dim, Imm};
use invar_ir::{Kernel, Op};

use crate::tuning::{LEAST_BETWEEN_ROWS, SHARED_ELEMENTS_BESIDE, SHARED_ROWS_APART};

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

/// Whether a row of a threadgroup's threads reads what another load reads in a row close to it.
pub(crate) fn share_loads(kernel: &Kernel, affine: &Affine<'_>) -> bool {
    rows_share(kernel, affine, |dim| vec![Symbol::Thread(dim)])
}

/// Whether a row of threads reads what another load reads in a row close to it, be it in the same threadgroup or, where
/// each has one row, in the next.
pub(crate) fn neighbours_read_the_same(kernel: &Kernel, affine: &Affine<'_>) -> bool {
    rows_share(kernel, affine, |dim| {
        vec![Symbol::Thread(dim), Symbol::Threadgroup(dim)]
    })
}

/// Whether loads share rows, of which the first of these positions that an index follows says how far apart they lie.
fn rows_share(
    kernel: &Kernel,
    affine: &Affine<'_>,
    positions: impl Fn(Dim) -> Vec<Symbol>,
) -> bool {
    let mut loads: Vec<(Memory, Sum<Product>, Sum<Product>)> = Vec::new();
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Load(place) = &inst.kind else {
            return;
        };
        let index = affine.of(place.index).sum;
        let mut pitches = (positions(Dim::Y).into_iter()).filter_map(|at| index.coefficient(at));
        let Some(pitch) = pitches.find(|pitch| *pitch != Sum::constant(0)) else {
            return;
        };
        found |= loads.iter().any(|(memory, other, other_pitch)| {
            (*memory, other_pitch) == (place.memory, &pitch) && is_rows_apart(&index, other, &pitch)
        });
        loads.push((place.memory, index, pitch));
    });
    found
}

/// Whether a kernel without loops and barriers accesses a buffer in several rows of memory, in which the threads of a row lie side by
/// side. A chunk then had better be the whole row: processors foresee what goes on for a while.
pub(crate) fn goes_between_rows(kernel: &Kernel, affine: &Affine<'_>) -> bool {
    let mut rows: Vec<(Memory, Sum<Product>)> = Vec::new();
    let (mut found, mut loops) = (false, false);
    kernel.for_each_inst(&mut |inst| {
        loops |= inst.kind.is_loop() || inst.kind.meets().is_some();
        let (InstKind::Load(place) | InstKind::Store { place, .. }) = &inst.kind else {
            return;
        };
        let index = affine.of(place.index).sum;
        let beside = index.coefficient(Symbol::Thread(Dim::X));
        let is_row = place.width == Width::One && beside == Some(Sum::constant(1));
        if found || !is_row || !matches!(place.memory, Memory::Param(_)) {
            return;
        }
        found = rows.iter().any(|(memory, other)| {
            let distance = index.clone().plus(other, -1).as_constant();
            let is_near = |by: i64| by.unsigned_abs() < LEAST_BETWEEN_ROWS;
            *memory == place.memory && !distance.is_some_and(is_near)
        });
        rows.push((place.memory, index));
    });
    found && !loops
}

/// Whether two indices are a few rows apart, and not far to the side.
fn is_rows_apart(a: &Sum<Product>, b: &Sum<Product>, pitch: &Sum<Product>) -> bool {
    let difference = a.clone().plus(b, -1);
    (1..=SHARED_ROWS_APART).flat_map(|k| [k, -k]).any(|k| {
        let beside = difference.clone().plus(pitch, -k).as_constant();
        beside.is_some_and(|by| by.abs() <= SHARED_ELEMENTS_BESIDE)
    })
}
