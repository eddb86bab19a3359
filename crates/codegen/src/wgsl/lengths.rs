//! Lengths of buffers that are counted in 32 bits.
//!
//! A length is a `u64`, which few GPUs have and no browser. On a GPU it fits 32 bits, and where a kernel asks for no
//! more, as every shader does by `arrayLength`, it is written as a `u32`.

use std::collections::HashSet;

use invar_ir::{InstKind, Kernel, Op, Scalar, Type, Value};

/// Makes lengths `u32`s that are only converted to integers of at most 32 bits.
pub(super) fn narrow(kernel: &mut Kernel) {
    let mut lengths: HashSet<Value> = HashSet::new();
    let mut wide: HashSet<Value> = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::BufferLength(_) = inst.kind {
            lengths.extend(inst.results.iter().copied());
        }
        let narrows = match (&inst.kind, inst.results.first()) {
            (InstKind::Op { op: Op::Cast, .. }, Some(result)) => matches!(
                kernel.ty(*result),
                Type::Scalar(
                    Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32
                )
            ),
            _other => false,
        };
        if !narrows {
            inst.kind.for_each_use(|value| {
                wide.insert(value);
            });
        }
    });
    for length in lengths.difference(&wide) {
        kernel.values[length.0 as usize].ty = Type::U32;
    }
}
