//! Integer division (A2), the upper halves of products, and counts of ones in bytes.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use invar_ir::Scalar;

use super::words::{Any, Words, known_integer};
use crate::emit::Emit;

/// What stands for the most negative number of a type, and for -1.
const fn extremes(bits: u32) -> (u64, u64) {
    (1 << (bits - 1), u64::MAX >> (64 - bits))
}

/// `a / b` truncated toward zero; 0 if `b` is 0.
pub(super) fn divide<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    let bits = scalar.bits();
    let zero = w.integer(bits, 0);
    match known_integer(b) {
        Some(0) => return zero,
        Some(k) if scalar.is_signed_integer() && k == extremes(bits).1 => return w.sub(zero, a),
        Some(_) => return w.binary(opcode(scalar, true), a, b),
        None => {}
    }
    let none = w.compare(IntPredicate::EQ, b, zero);
    w.choose(
        none,
        zero,
        quotient(w, scalar, a, safe_divisor(w, scalar, a, b)),
    )
}

/// The remainder of [`divide`], with the sign of `a`; 0 if `b` is 0.
pub(super) fn remainder<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    let bits = scalar.bits();
    match known_integer(b) {
        Some(0) => return w.integer(bits, 0),
        Some(k) if scalar.is_signed_integer() && k == extremes(bits).1 => {
            return w.integer(bits, 0);
        }
        Some(_) => return w.binary(opcode(scalar, false), a, b),
        None => {}
    }
    // By 1 instead of 0, the remainder is the 0 that it should be; so it is by 1 instead of -1.
    let b = safe_divisor(w, scalar, a, b);
    if in_floats(w, scalar).is_none() {
        return w.binary(opcode(scalar, false), a, b);
    }
    w.sub(a, w.mul(quotient(w, scalar, a, b), b))
}

fn opcode(scalar: Scalar, quotient: bool) -> InstructionOpcode {
    match (scalar.is_signed_integer(), quotient) {
        (true, true) => InstructionOpcode::SDiv,
        (true, false) => InstructionOpcode::SRem,
        (false, true) => InstructionOpcode::UDiv,
        (false, false) => InstructionOpcode::URem,
    }
}

/// 1 in place of 0, and of the -1 by which the most negative number cannot be divided.
///
/// By sums and not by a `select`: LLVM 19 moves a division of constants into the sides of one, and takes
/// a side with a zero in any lane for poison, also where the other lanes are selected from it.
fn safe_divisor<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    let bits = scalar.bits();
    let (least, minus_one) = extremes(bits);
    let one_if = |condition| w.convert(InstructionOpcode::ZExt, condition, w.int(bits));
    let none = w.compare(IntPredicate::EQ, b, w.integer(bits, 0));
    let safe = w.add(b, one_if(none));
    if !scalar.is_signed_integer() {
        return safe;
    }
    let wraps = w.and(
        w.compare(IntPredicate::EQ, a, w.integer(bits, least)),
        w.compare(IntPredicate::EQ, b, w.integer(bits, minus_one)),
    );
    // -1 + 2
    let two = w.add(one_if(wraps), one_if(wraps));
    w.add(safe, two)
}

/// The float type in which the quotient of integers on vectors is computed, where that is exact: no
/// processor here divides vectors of integers.
///
/// Let `x` of `n` bits be `k*b + r` for `0 < r < b`. Then `x/b` is at least `1/b` below the next
/// integer, and a float with `p` bits rounds it by at most `2^-p * x/b`, which is less as long as
/// `n < p`; so the rounded quotient truncates to `k`. An exact one is not rounded.
fn in_floats(w: Words<'_, '_>, scalar: Scalar) -> Option<Scalar> {
    match (w.lanes(), scalar.bits()) {
        (Some(_), 8 | 16) => Some(Scalar::F32),
        (Some(_), 32) => Some(Scalar::F64),
        (Some(_) | None, _) => None,
    }
}

/// `a / b` for a safe divisor.
fn quotient<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    let Some(float) = in_floats(w, scalar) else {
        return w.binary(opcode(scalar, true), a, b);
    };
    let (to_float, to_integer) = if scalar.is_signed_integer() {
        (InstructionOpcode::SIToFP, InstructionOpcode::FPToSI)
    } else {
        (InstructionOpcode::UIToFP, InstructionOpcode::FPToUI)
    };
    let [a, b] = [a, b].map(|x| w.convert(to_float, x, w.ty(float)));
    let ratio = w.binary(InstructionOpcode::FDiv, a, b);
    w.convert(to_integer, ratio, w.ty(scalar))
}

/// The upper half of the product.
pub(super) fn multiply_high<'c>(
    w: Words<'_, 'c>,
    scalar: Scalar,
    a: Any<'c>,
    b: Any<'c>,
) -> Any<'c> {
    let bits = scalar.bits();
    let extend = if scalar.is_signed_integer() {
        InstructionOpcode::SExt
    } else {
        InstructionOpcode::ZExt
    };
    let [a, b] = [a, b].map(|x| w.convert(extend, x, w.int(2 * bits)));
    let upper = w.down(2 * bits, w.mul(a, b), bits);
    w.resize(2 * bits, bits, upper)
}

/// Whether counts of ones are computed by shifts and sums. LLVM 19 looks them up for x86 without AVX-512, and
/// goes on forever over some that are stored side by side, of bytes shifted by 4.
pub(super) fn counts_by_hand(e: &Emit<'_>, bits: u32) -> bool {
    bits == 8 && e.target.is_x86 && !e.target.has_avx512
}

/// How many of eight bits are 1.
pub(super) fn ones_of_byte<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Any<'c> {
    let masked = |x, mask| w.and(x, w.integer(8, mask));
    let pairs = w.sub(x, masked(w.down(8, x, 1), 0x55));
    let fours = w.add(masked(pairs, 0x33), masked(w.down(8, pairs, 2), 0x33));
    masked(w.add(fours, w.down(8, fours, 4)), 0x0f)
}
