//! Functions written out by the operations that define them (A10).
//!
//! An expansion is a Rust function of type [`crate::ops::Expansion`]: it gets the builder and the
//! operands and builds the defining operations. It must be straight-line where it can, work for
//! every type its signature admits (operations go component by component, so most need not ask),
//! and use rows whose meaning is an evaluator, other expansions, or those that arrange components.
//!
//! An expansion is the same in every float mode: [`expand`] comes after
//! [`crate::contract::contract`], never before it, and an expansion holds no float product that is
//! the only one added in a sum, so that contraction finds nothing in it. What is to be fused says
//! `fma`. Functions of f16 and bf16 that round more than once are computed in f32, and their result
//! is rounded once more.
//!
//! Files: `common.rs` (rounding, limits, interpolation), `bits.rs` (integers and the bits of
//! floats), `vector.rs`, `matrix.rs`, `pack.rs`; the math functions in `exponential.rs`,
//! `logarithm.rs`, `trigonometric.rs`, `inverse_trigonometric.rs`, `power.rs` and `remainder.rs`.
//!
//! The math functions are written in the terms of `term.rs`, once for f32 and f64; what differs
//! between the two, the polynomials above all, stands in `coefficients.rs`, which
//! `scripts/coefficients.py` derives. None uses a table in memory; a branch and a loop serve what is
//! dear and rare (arguments too large for a short reduction, the quotient's bits of `fmod`, and steps that
//! overflow or underflow though the result does not). Sums that look redundant recover what rounding lost;
//! where whole formulas do so, they are written in the numbers of `double.rs`, and in those of `wide.rs` where
//! a step may overflow or underflow. Each function's largest error is in its row of the op table: for f32
//! functions of one argument `scripts/exhaustive.sh` measures it over all inputs, and the golden values bound
//! the others.

use half::{bf16, f16};

use crate::builder::KernelBuilder;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::inst::{Const, InstKind, Value};
use crate::module::Module;
use crate::ops::{Imm, Meaning, Op, Swizzle};
use crate::rewrite::rewrite;
use crate::room::{PASSES_BYTES, with_room};
use crate::rules::Rule;
use crate::types::{Scalar, Type};

pub(crate) mod bits;
mod coefficients;
pub(crate) mod common;
mod double;
pub(crate) mod exponential;
pub(crate) mod inverse_trigonometric;
pub(crate) mod logarithm;
pub(crate) mod matrix;
pub(crate) mod pack;
pub(crate) mod power;
pub(crate) mod remainder;
mod shared;
mod term;
pub(crate) mod trigonometric;
pub(crate) mod vector;
mod wide;

use term::{Float, Term, Terms};

/// The numbers in the expansion of `exp` of f32, for targets that write it in their own terms (A10):
/// with n the integer nearest to x log2(e), r = x - n ln(2), where ln(2) is a sum of two, and
/// e^r = 1 + r + r^2 P(r).
#[derive(Clone, Copy, Debug)]
pub struct ExpOfF32 {
    /// log2(e).
    pub log2_e: f32,
    /// ln(2), as a sum of two.
    pub ln_2: [f32; 2],
    /// The coefficients of P, lowest order first.
    pub polynomial: &'static [f64],
}

/// See [`ExpOfF32`].
pub fn exp_of_f32() -> ExpOfF32 {
    let k = &coefficients::F32;
    ExpOfF32 {
        log2_e: k.log2_e[0] as f32,
        ln_2: k.ln_2.map(|x| x as f32),
        polynomial: k.exp,
    }
}

/// The most values that a kernel may have when its functions are written out: more would take gigabytes.
pub const MAX_EXPANDED_VALUES: usize = 1 << 20;

/// Writes out, in every kernel, each operation that has an expansion and that `keep` does not keep.
/// What expansions build is written out in turn. Comes after [`crate::contract::contract`].
///
/// # Errors
/// `limit-exceeded` if a kernel would have more than [`MAX_EXPANDED_VALUES`] values; else only for an expansion
/// that does not fit its own signature, which a test rules out.
pub fn expand(
    module: Module,
    keep: &dyn Fn(Op, Imm, &[Type]) -> bool,
) -> Result<Module, Diagnostics> {
    with_room(PASSES_BYTES, || expanded(module, keep))
}

fn expanded(
    module: Module,
    keep: &dyn Fn(Op, Imm, &[Type]) -> bool,
) -> Result<Module, Diagnostics> {
    let mut module = module;
    for index in 0..module.kernels.len() {
        // An expansion may use rows that have one themselves; each iteration writes out one level.
        while needs_expansion(&module, index, keep) {
            let mut exceeded = false;
            module = rewrite(module, index, &mut |b, inst| {
                let (op, imm, args) = inst.kind.as_op()?;
                exceeded |= b.kernel_mut().values.len() > MAX_EXPANDED_VALUES;
                if exceeded {
                    return None;
                }
                let Meaning::Expand(expansion) = op.row().meaning else {
                    return None;
                };
                let types: Vec<Type> = args.iter().map(|v| b.ty(*v)).collect();
                if keep(op, imm, &types) {
                    return None;
                }
                Some([expansion(b, imm, args)].into_iter().collect())
            })?;
            if exceeded {
                let kernel = &module.kernels[index];
                let message = format!(
                    "kernel `{}` has more than {MAX_EXPANDED_VALUES} values once its functions are written out",
                    kernel.name
                );
                let error = Diagnostic::error(Rule::LimitExceeded, kernel.span, message);
                let error = error.help("divide it into several kernels");
                return Err(Diagnostics(vec![error]));
            }
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

// ---- what expansions share ----

/// The scalar that a value of this type is made of.
fn scalar_of(ty: Type) -> Scalar {
    ty.component_scalar()
}

/// The same shape with another scalar.
fn with_scalar(ty: Type, scalar: Scalar) -> Type {
    ty.with_scalar(scalar).unwrap_or(Type::Scalar(scalar))
}

/// Unsigned integers of this type's width and shape.
fn unsigned(ty: Type) -> Type {
    let scalar = match scalar_of(ty).bits() {
        8 => Scalar::U8,
        16 => Scalar::U16,
        32 => Scalar::U32,
        _ => Scalar::U64,
    };
    with_scalar(ty, scalar)
}

/// A scalar for all components of a scalar or vector type.
fn splat(b: &mut KernelBuilder, ty: Type, scalar: Value) -> Value {
    if b.ty(scalar) == ty {
        scalar
    } else {
        b.construct(ty, &[scalar])
    }
}

/// These bits in every component.
fn constant(b: &mut KernelBuilder, ty: Type, bits: u64) -> Value {
    let scalar = scalar_of(ty);
    let bits = bits & (u64::MAX >> (64 - scalar.bits()));
    let value = b.constant(Const { scalar, bits });
    splat(b, ty, value)
}

/// This number in every component, rounded if it has to be.
fn number(b: &mut KernelBuilder, ty: Type, x: f64) -> Value {
    let scalar = scalar_of(ty);
    let constant = match scalar {
        Scalar::F16 => Const::from(f16::from_f32(x as f32)),
        Scalar::BF16 => Const::from(bf16::from_f32(x as f32)),
        Scalar::F32 => Const::from(x as f32),
        Scalar::F64 => Const::from(x),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => {
            let bits = x as i64 as u64 & (u64::MAX >> (64 - scalar.bits()));
            Const { scalar, bits }
        }
    };
    let value = b.constant(constant);
    splat(b, ty, value)
}

/// A vector of these numbers.
fn vector_of(b: &mut KernelBuilder, scalar: Scalar, numbers: &[f64]) -> Value {
    let parts: Vec<Value> = numbers
        .iter()
        .map(|x| number(b, Type::Scalar(scalar), *x))
        .collect();
    b.construct(Type::Vector(scalar, numbers.len() as u8), &parts)
}

/// A vector's components.
fn components(b: &mut KernelBuilder, vector: Value) -> Vec<Value> {
    let count = b.ty(vector).component_count();
    ["x", "y", "z", "w"]
        .iter()
        .take(count as usize)
        .filter_map(|name| Swizzle::parse(name))
        .map(|component| b.swizzle(vector, component))
        .collect()
}

/// Computes a function of floats, in f32 if they are shorter.
fn in_f32(
    b: &mut KernelBuilder,
    args: &[Value],
    f: impl FnOnce(&mut KernelBuilder, &[Value]) -> Value,
) -> Value {
    let scalar = scalar_of(b.ty(args[0]));
    if !matches!(scalar, Scalar::F16 | Scalar::BF16) {
        return f(b, args);
    }
    let wide: Vec<Value> = args
        .iter()
        .map(|arg| cast_scalar(b, *arg, Scalar::F32))
        .collect();
    let result = f(b, &wide);
    cast_scalar(b, result, scalar)
}

/// Builds a function of one float that is written in terms, in f32 if the float is shorter.
pub(crate) fn unary(
    b: &mut KernelBuilder,
    args: &[Value],
    f: for<'t> fn(Float<'t>) -> Float<'t>,
) -> Value {
    in_f32(b, args, |b, x| {
        let ty = b.ty(x[0]);
        let terms = Terms::new(b, ty);
        f(terms.float_of(x[0])).value()
    })
}

/// Builds a function of two floats that is written in terms, in f32 if the floats are shorter.
pub(crate) fn binary(
    b: &mut KernelBuilder,
    args: &[Value],
    f: for<'t> fn(Float<'t>, Float<'t>) -> Float<'t>,
) -> Value {
    in_f32(b, args, |b, x| {
        let ty = b.ty(x[0]);
        let terms = Terms::new(b, ty);
        f(terms.float_of(x[0]), terms.float_of(x[1])).value()
    })
}

/// A scalar, vector or matrix cast to another scalar type.
fn cast_scalar(b: &mut KernelBuilder, value: Value, scalar: Scalar) -> Value {
    let ty = with_scalar(b.ty(value), scalar);
    if let Type::Matrix { .. } = ty {
        let columns: Vec<Value> = matrix::columns(b, value)
            .into_iter()
            .map(|column| cast_scalar(b, column, scalar))
            .collect();
        b.construct(ty, &columns)
    } else {
        b.cast(value, ty)
    }
}
