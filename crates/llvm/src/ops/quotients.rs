//! Quotients by constants as products (`codegen/src/analysis/quotients.rs`), and of bytes as one conversion.
//!
//! A byte `c` divided by 255 is `0.cccc...` in base 256. Behind the 24 bits from its leading one on comes that leading
//! one again, so the nearest `f32` is the next one above these bits, and 0 for 0. The integer `cccc` of 32 bits becomes
//! the same digits where its conversion rounds up. What is left is the scale: a constant that multiplies the quotient is
//! multiplied by it instead, since powers of two lose nothing.

use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, InstructionOpcode, VectorValue};
use invar_codegen::analysis::quotients::Reciprocal;
use invar_ir::Scalar;

use super::float;
use super::words::{Any, Words, known_float};
use crate::emit::{BUILT, Emit};

/// The conversion of unsigned integers that says how it rounds.
const CONVERSION: &str = "llvm.x86.avx512.uitofp.round";
/// How many it takes.
const LANES: u32 = 16;
/// How many operands it has.
const OPERANDS: u32 = 2;
/// What it takes for "up, and no exceptions".
const UP: u32 = 10;
/// Where the point of `cccc` is.
const SCALE: f64 = 1.0 / (1u64 << 32) as f64;
/// Magnitudes of constants that a scale may be multiplied with: no product of these is subnormal or infinite.
const USUAL: std::ops::Range<f64> = 1.0 / (1u64 << 60) as f64..(1u64 << 60) as f64;

/// An `f32` divided by what products divide it by.
pub(crate) fn divided<'c>(
    e: &Emit<'c>,
    x: BasicValueEnum<'c>,
    by: Reciprocal,
) -> BasicValueEnum<'c> {
    let w = Words::like(e, x);
    if by.of_bytes
        && e.target.has_avx512
        && let Some(codes) = codes(w, x)
    {
        return w.fmul(rounded_up(w, codes), w.float(Scalar::F32, SCALE));
    }
    let [high, low] = [by.high, by.low].map(|factor| w.float(Scalar::F32, factor.into()));
    float::fma(w, Scalar::F32, x, high, w.fmul(x, low))
}

/// The integers that floats were made of, none of which is more than a byte, in 32 bits each.
fn codes<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Option<VectorValue<'c>> {
    let inst = x
        .into_vector_value()
        .as_instruction()
        .filter(|_| w.lanes() == Some(LANES))?;
    let converts = [InstructionOpcode::SIToFP, InstructionOpcode::UIToFP];
    let code = inst
        .get_operand(0)?
        .value()
        .filter(|_| converts.contains(&inst.get_opcode()))?;
    let bits = code
        .get_type()
        .into_vector_type()
        .get_element_type()
        .into_int_type()
        .get_bit_width();
    (bits <= 32).then(|| w.resize(bits, 32, code).into_vector_value())
}

/// `cccc` of each `c` as the nearest float that is not below it.
fn rounded_up<'c>(w: Words<'_, 'c>, codes: VectorValue<'c>) -> Any<'c> {
    let bytes = w.e.context.i8_type().vec_type(4 * LANES);
    let bytes = w.bits_as(codes.into(), bytes.into()).into_vector_value();
    let order: Vec<_> = (0..4 * LANES).map(|byte| w.e.i32(byte / 4 * 4)).collect();
    let order = VectorType::const_vector(&order);
    let repeated = w.e.builder.build_shuffle_vector(bytes, bytes, order, "");
    let repeated = w.bits_as(repeated.expect(BUILT).into(), w.int(32));
    let types = [w.ty(Scalar::F32), w.int(32)];
    w.call_for(CONVERSION, &types, &[repeated, w.e.i32(UP).into()])
}

/// The factors of a product, of which one may be a quotient of bytes and the other a constant: that has the scale then.
pub(super) fn factors<'c>(w: Words<'_, 'c>, scalar: Scalar, of: [Any<'c>; 2]) -> [Any<'c>; 2] {
    if scalar != Scalar::F32 || w.lanes() != Some(LANES) {
        return of;
    }
    let scaled = |quotient: Any<'c>, factor: Any<'c>| {
        let factor = known_float(factor).filter(|f| USUAL.contains(&f.abs()))?;
        Some([unscaled(quotient)?, w.float(scalar, factor * SCALE)])
    };
    let [a, b] = of;
    scaled(a, b).or_else(|| scaled(b, a)).unwrap_or(of)
}

/// What [`divided`] scaled.
fn unscaled(quotient: Any<'_>) -> Option<Any<'_>> {
    let product = quotient.into_vector_value().as_instruction()?;
    if product.get_opcode() != InstructionOpcode::FMul {
        return None;
    }
    let [whole, scale] = [0, 1].map(|number| product.get_operand(number)?.value());
    let whole = whole.filter(|_| scale.and_then(known_float) == Some(SCALE))?;
    let call = whole.into_vector_value().as_instruction()?;
    // Behind the operands of a call is what it calls.
    let called =
        (call.get_opcode() == InstructionOpcode::Call).then(|| call.get_operand(OPERANDS))?;
    let BasicValueEnum::PointerValue(function) = called?.value()? else {
        return None;
    };
    let name = function.get_name().to_bytes();
    name.starts_with(CONVERSION.as_bytes()).then_some(whole)
}
