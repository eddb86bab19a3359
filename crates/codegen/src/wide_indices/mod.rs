//! Copies and simdgroup matrices at extreme 64-bit indices, before a target sees them.
//!
//! Indices are mathematical integers (B4). Where a target adds what an access of many elements is given, it
//! takes what lies beyond some limit as if it lay there, for no memory is as large. One operand alone that is
//! so far takes the access out of bounds anyway; two may come back: an element at `-2^63 + (2^63 - 1) + 9` is
//! element 8. Such accesses are rewritten to what is near, by 64-bit code that is exact; all others are left
//! as they are, above all those whose operands have at most 32 bits.
//!
//! What a target may rely on afterwards: taking each operand that is beyond ±2^58 to be there, and each start
//! of a row beyond ±2^58, changes nothing.
//!
//! Files: `exact.rs` numbers of more than 64 bits, `copies.rs`, `matrices.rs`.

mod copies;
mod exact;
mod matrices;

use invar_ir::inst::{CopyShape, InstKind, Value};
use invar_ir::rewrite::rewrite;
use invar_ir::{Diagnostics, Module, Type};

use crate::analysis::ranges::{Known, Ranges, analyse};
use exact::NARROW_LIMIT;

/// Rewrites the accesses of many elements of kernel number `index` that may have two extreme operands.
///
/// ```
/// use invar_codegen::wide_indices::legalize;
/// use invar_ir::{InstKind, text::parse};
///
/// let text = "kernel @k(%x: device read f32, %y: device write f32, %i: i64, %n: u32) {
///     copy %y[%i], %x[%n], %n
///     copy %y[%i], %x[%i], %n
/// }";
/// let near = legalize(parse("k.inv", text)?, 0)?;
/// let insts = &near.kernels[0].body.insts;
/// // The first is as it was. The second's operands are computed; it is still one copy.
/// assert!(matches!(insts[0].kind, InstKind::Copy { .. }));
/// assert!(!matches!(insts[1].kind, InstKind::Copy { .. }));
/// let copies = insts.iter().filter(|inst| matches!(inst.kind, InstKind::Copy { .. }));
/// assert_eq!(copies.count(), 2);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// None for a verified module.
///
/// # Panics
/// If there is no kernel of that number.
pub fn legalize(module: Module, index: usize) -> Result<Module, Diagnostics> {
    let kernel = &module.kernels[index];
    let mut accesses = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        if is_access(&inst.kind) {
            accesses.push(&inst.kind);
        }
    });
    if accesses.is_empty() {
        return Ok(module);
    }
    let ranges = analyse(kernel, &Known::default());
    // For each, in the kernel's order: whether it is rewritten.
    let meant: Vec<bool> = accesses
        .iter()
        .map(|kind| may_come_back(kind, &ranges))
        .collect();
    if !meant.contains(&true) {
        return Ok(module);
    }
    let types: Vec<Type> = kernel.values.iter().map(|v| v.ty).collect();
    let mut meant = meant.into_iter();
    rewrite(module, index, &mut |b, inst| {
        if !is_access(&inst.kind) || meant.next() != Some(true) {
            return None;
        }
        let mut kind = inst.kind.clone();
        match &mut kind {
            InstKind::Copy { operands, count }
            | InstKind::AsyncCopy {
                operands,
                shape: CopyShape::Linear { count },
            } => copies::legalize(b, operands, count),
            InstKind::AsyncCopy { operands, shape } => copies::rows(b, operands, shape),
            InstKind::MatrixLoad { place } | InstKind::MatrixStore { place, .. } => {
                matrices::legalize(b, place);
            }
            _no_access => {}
        }
        let results: Vec<Type> = inst.results.iter().map(|v| types[v.0 as usize]).collect();
        Some(b.push(kind, &results))
    })
}

fn is_access(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::Copy { .. }
            | InstKind::AsyncCopy { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
    )
}

/// Whether sums of an access's operands may be near though operands are not.
fn may_come_back(kind: &InstKind, ranges: &Ranges) -> bool {
    let far = |value: &Value| {
        let near =
            |(least, most)| least >= -i128::from(NARROW_LIMIT) && most <= i128::from(NARROW_LIMIT);
        !ranges.of(*value).is_some_and(near)
    };
    match kind {
        InstKind::Copy { operands, count }
        | InstKind::AsyncCopy {
            operands,
            shape: CopyShape::Linear { count },
        } => {
            let all = [&operands.destination_index, &operands.source_index, count];
            all.into_iter().filter(|v| far(v)).count() >= 2
        }
        InstKind::AsyncCopy {
            operands,
            shape:
                CopyShape::Tile {
                    destination_row,
                    columns,
                    ..
                },
        } => {
            // A start comes back after many rows that are near, and a row before the destination reaches it
            // if it is long enough.
            let falls = ranges.of(*destination_row).is_none_or(|r| r.0 < 0);
            far(&operands.destination_index)
                || far(&operands.source_index)
                || far(columns) && (falls || far(destination_row))
        }
        InstKind::MatrixLoad { place } | InstKind::MatrixStore { place, .. } => {
            far(&place.index) && far(&place.row)
        }
        _no_access => false,
    }
}
