//! Functions written out by the operations that define them (A10).
//!
//! An expansion is a Rust function of type [`crate::ops::Expansion`]: it gets the builder and the
//! operands and builds the defining operations. It must be straight-line where it can, work for
//! every type its signature admits (operations go component by component, so most need not ask),
//! and use rows whose meaning is an evaluator, other expansions, or `construct` and `extract`.
//!
//! The math functions are written in the terms of [`term`], once for `f32` and `f64`; what differs
//! between the two, the polynomials above all, stands in `coefficients`, which
//! `scripts/coefficients.py` derives. `f16` and `bf16` go through `f32` and are rounded once more.
//! None uses a table in memory; two branches and one loop serve what is dear and rare (arguments
//! too large for a short reduction, and the quotient's bits of `fmod`). The operations must be
//! evaluated as they stand: sums that look redundant recover what rounding lost, so an expansion is
//! written out after `contract` has run (A8).
//!
//! Each function's largest error is in its row of the op table. For `f32` functions of one argument
//! `scripts/exhaustive.sh` measures it over all 2^32 inputs; the golden values bound the others.

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostics;
use crate::inst::{InstKind, Value};
use crate::module::Module;
use crate::ops::{Imm, Meaning, Op};
use crate::rewrite::rewrite;
use crate::types::{Scalar, Type};

mod coefficients;
pub(crate) mod exponential;
pub(crate) mod inverse_trigonometric;
pub(crate) mod logarithm;
pub(crate) mod power;
pub(crate) mod remainder;
pub(crate) mod shared;
mod term;
pub(crate) mod trigonometric;

use term::{Float, Term, Terms};

/// A function of one float.
pub(crate) type Unary = for<'t> fn(Float<'t>) -> Float<'t>;
/// A function of two floats.
pub(crate) type Binary = for<'t> fn(Float<'t>, Float<'t>) -> Float<'t>;

/// Builds a function of one float, for 16-bit floats in `f32`.
pub(crate) fn unary(b: &mut KernelBuilder, args: &[Value], f: Unary) -> Value {
    wide(b, args, |t, x| f(t.float_of(x[0])).value())
}

/// Builds a function of two floats, for 16-bit floats in `f32`.
pub(crate) fn binary(b: &mut KernelBuilder, args: &[Value], f: Binary) -> Value {
    wide(b, args, |t, x| {
        f(t.float_of(x[0]), t.float_of(x[1])).value()
    })
}

/// Builds what `f` builds of these floats, with 16-bit floats converted to `f32` and back.
fn wide(
    b: &mut KernelBuilder,
    args: &[Value],
    f: impl for<'t> FnOnce(&'t Terms<'t>, &[Value]) -> Value,
) -> Value {
    let ty = b.ty(args[0]);
    let narrow = matches!(ty.scalar(), Some(Scalar::F16 | Scalar::BF16));
    let wide = match ty.with_scalar(Scalar::F32) {
        Some(wide) if narrow => wide,
        _ => ty,
    };
    let args: Vec<Value> = args
        .iter()
        .map(|&x| if narrow { b.cast(x, wide) } else { x })
        .collect();
    let result = f(&Terms::new(b, wide), &args);
    if narrow { b.cast(result, ty) } else { result }
}

/// Writes out, in every kernel, each operation that has an expansion and that `keep` does not keep.
/// What expansions build is written out in turn.
///
/// # Errors
/// Only for an expansion that does not fit its own signature, which a test rules out.
pub fn expand(
    module: Module,
    keep: &dyn Fn(Op, Imm, &[Type]) -> bool,
) -> Result<Module, Diagnostics> {
    let mut module = module;
    for index in 0..module.kernels.len() {
        // An expansion may use rows that have one themselves; each round writes out one level.
        while needs_expansion(&module, index, keep) {
            module = rewrite(module, index, &mut |b, inst| {
                let (op, imm, args) = inst.kind.as_op()?;
                let Meaning::Expand(expansion) = op.row().meaning else {
                    return None;
                };
                let types: Vec<Type> = args.iter().map(|v| b.ty(*v)).collect();
                if keep(op, imm, &types) {
                    return None;
                }
                Some([expansion(b, imm, args)].into_iter().collect())
            })?;
        }
    }
    Ok(module)
}

fn needs_expansion(module: &Module, index: usize, keep: &dyn Fn(Op, Imm, &[Type]) -> bool) -> bool {
    let kernel = &module.kernels[index];
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op { op, imm, args } = &inst.kind
            && matches!(op.row().meaning, Meaning::Expand(_))
        {
            let types: Vec<Type> = args.iter().map(|v| kernel.ty(*v)).collect();
            found |= !keep(*op, *imm, &types);
        }
    });
    found
}
