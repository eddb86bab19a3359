//! Floats: the short ones computed in `f32`, whose one rounding more changes nothing (as the
//! evaluators of `invar-ir` say, with the proof), and what no single instruction does right.

use inkwell::FloatPredicate;
use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use invar_ir::Scalar;

use super::words::{Any, Words, known_float};

/// Whether it is computed in `f32`.
pub(super) const fn is_short(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::BF16)
}

/// The type that computes for a float type.
pub(super) const fn wide(scalar: Scalar) -> Scalar {
    if is_short(scalar) {
        Scalar::F32
    } else {
        scalar
    }
}

/// To the type that computes, exactly.
pub(super) fn widen<'c>(w: Words<'_, 'c>, scalar: Scalar, x: Any<'c>) -> Any<'c> {
    match scalar {
        // Without the fence LLVM compares, rounds and converts the narrow numbers instead, which on
        // vectors it then does lane by lane.
        Scalar::F16 if w.e.target.has_f16_conversions => {
            let wide = w.convert(InstructionOpcode::FPExt, x, w.ty(Scalar::F32));
            w.call("llvm.arithmetic.fence", &[wide])
        }
        Scalar::F16 => f16_to_f32(w, x),
        Scalar::BF16 => {
            let bits = w.resize(16, 32, w.bits_as(x, w.int(16)));
            w.bits_as(w.up(32, bits, 16), w.ty(Scalar::F32))
        }
        _ => x,
    }
}

/// From the type that computes, rounded to nearest even.
pub(super) fn narrow<'c>(w: Words<'_, 'c>, scalar: Scalar, x: Any<'c>) -> Any<'c> {
    match scalar {
        Scalar::F16 if w.e.target.has_f16_conversions => {
            w.convert(InstructionOpcode::FPTrunc, x, w.ty(Scalar::F16))
        }
        Scalar::F16 => f32_to_f16(w, x),
        Scalar::BF16 => {
            let bits = w.bits_as(x, w.int(32));
            let upper = w.down(32, bits, 16);
            let odd = w.and(upper, w.integer(32, 1));
            let rounded = w.add(bits, w.add(odd, w.integer(32, 0x7fff)));
            let nan = w.compare_floats(FloatPredicate::UNO, x, x);
            let quiet = w.or(upper, w.integer(32, 0x7fc0));
            let bits = w.choose(nan, quiet, w.down(32, rounded, 16));
            w.bits_as(w.resize(32, 16, bits), w.ty(Scalar::BF16))
        }
        _ => x,
    }
}

/// From the type that computes, of a number that the short type has, or a NaN of it.
fn narrow_exact<'c>(w: Words<'_, 'c>, scalar: Scalar, x: Any<'c>) -> Any<'c> {
    if scalar != Scalar::BF16 {
        return narrow(w, scalar, x);
    }
    let bits = w.down(32, w.bits_as(x, w.int(32)), 16);
    w.bits_as(w.resize(32, 16, bits), w.ty(Scalar::BF16))
}

/// The bits moved up as those of an `f32` are the number times 2^-112, subnormal ones included;
/// infinities and NaNs keep their exponent of ones.
fn f16_to_f32<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Any<'c> {
    let bits = w.resize(16, 32, w.bits_as(x, w.int(16)));
    let magnitude = w.and(bits, w.integer(32, 0x7fff));
    let sign = w.up(32, w.and(bits, w.integer(32, 0x8000)), 16);
    let moved = w.up(32, magnitude, 13);
    let scaled = w.fmul(
        w.bits_as(moved, w.ty(Scalar::F32)),
        w.float(Scalar::F32, 2f64.powi(112)),
    );
    let special = w.compare(IntPredicate::UGE, magnitude, w.integer(32, 0x7c00));
    let bits = w.choose(
        special,
        w.or(moved, w.integer(32, 0x7f80_0000)),
        w.bits_as(scaled, w.int(32)),
    );
    w.bits_as(w.or(bits, sign), w.ty(Scalar::F32))
}

/// As the evaluators' conversion, step by step.
fn f32_to_f16<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Any<'c> {
    let k = |bits: u64| w.integer(32, bits);
    let bits = w.bits_as(x, w.int(32));
    let sign = w.and(w.down(32, bits, 16), k(0x8000));
    let magnitude = w.and(bits, k(0x7fff_ffff));
    let rebased = w.sub(magnitude, k(112 << 23));
    let odd = w.and(w.down(32, magnitude, 13), k(1));
    let normal = w.down(32, w.add(rebased, w.add(odd, k(0x0fff))), 13);
    // One half has steps of 2^-24, those of subnormals: the addition rounds to them.
    let sum = w.fadd(
        w.bits_as(magnitude, w.ty(Scalar::F32)),
        w.float(Scalar::F32, 0.5),
    );
    let subnormal = w.sub(w.bits_as(sum, w.int(32)), k(0x3f00_0000));
    let least = |limit: u64| w.compare(IntPredicate::UGE, magnitude, k(limit));
    let small = w.choose(least(0x3880_0000), normal, subnormal);
    let finite = w.choose(least(0x4780_0000), k(0x7c00), small);
    let result = w.choose(least(0x7f80_0001), k(0x7e00), finite);
    let bits = w.resize(32, 16, w.or(result, sign));
    w.bits_as(bits, w.ty(Scalar::F16))
}

/// An `f64` rounded to odd, to `f32`: away from an even last bit, where that is not exact. Rounding
/// once more to a type of at most 22 bits equals rounding the exact value once (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums", 2008).
pub(super) fn f64_to_odd_f32<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Any<'c> {
    let nearest = w.convert(InstructionOpcode::FPTrunc, x, w.ty(Scalar::F32));
    let back = w.convert(InstructionOpcode::FPExt, nearest, w.ty(Scalar::F64));
    let inexact = w.compare_floats(FloatPredicate::ONE, back, x);
    let [far, near] = [back, x].map(|v| w.call("llvm.fabs", &[v]));
    let toward_zero = w.compare_floats(FloatPredicate::OGT, far, near);
    to_odd(w, Scalar::F32, nearest, inexact, toward_zero)
}

/// `nearest`, but one step toward zero or away from it where it is inexact and even.
fn to_odd<'c>(
    w: Words<'_, 'c>,
    scalar: Scalar,
    nearest: Any<'c>,
    inexact: Any<'c>,
    toward_zero: Any<'c>,
) -> Any<'c> {
    let width = scalar.bits();
    let bits = w.bits_as(nearest, w.int(width));
    let even = w.and(w.not(width, bits), w.integer(width, 1));
    let step = w.choose(inexact, even, w.integer(width, 0));
    let back = w.sub(w.integer(width, 0), step);
    let moved = w.add(bits, w.choose(toward_zero, back, step));
    w.bits_as(moved, w.ty(scalar))
}

/// `a * b + c` rounded to odd, computed in a type that holds the product exactly.
fn fma_to_odd<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>, c: Any<'c>) -> Any<'c> {
    let product = w.fmul(a, b);
    let sum = w.fadd(product, c);
    // Knuth's TwoSum: `sum + error` is `product + c` exactly. It is NaN where `sum` is not finite.
    let c_part = w.fsub(sum, product);
    let error = w.fadd(w.fsub(product, w.fsub(sum, c_part)), w.fsub(c, c_part));
    let inexact = w.compare_floats(FloatPredicate::ONE, error, w.float(scalar, 0.0));
    let width = scalar.bits();
    let [error, sum_bits] = [error, sum].map(|x| w.bits_as(x, w.int(width)));
    let differ = w.xor(error, sum_bits);
    let toward_zero = w.compare(IntPredicate::SLT, differ, w.integer(width, 0));
    to_odd(w, scalar, sum, inexact, toward_zero)
}

/// `a * b + c` rounded once.
pub(super) fn fma<'c>(
    w: Words<'_, 'c>,
    scalar: Scalar,
    a: Any<'c>,
    b: Any<'c>,
    c: Any<'c>,
) -> Any<'c> {
    let to_f64 = |x| {
        let x = widen(w, scalar, x);
        w.convert(InstructionOpcode::FPExt, x, w.ty(Scalar::F64))
    };
    match scalar {
        // A product of two has at most 22 bits, and its exponent lies in the range of `f32`.
        Scalar::F16 => {
            let [a, b, c] = [a, b, c].map(|x| widen(w, scalar, x));
            narrow(w, scalar, fma_to_odd(w, Scalar::F32, a, b, c))
        }
        Scalar::BF16 => {
            let [a, b, c] = [a, b, c].map(to_f64);
            let odd = fma_to_odd(w, Scalar::F64, a, b, c);
            narrow(w, scalar, f64_to_odd_f32(w, odd))
        }
        Scalar::F32 if !w.e.target.has_fma => {
            let [a, b, c] = [a, b, c].map(to_f64);
            let odd = fma_to_odd(w, Scalar::F64, a, b, c);
            w.convert(InstructionOpcode::FPTrunc, odd, w.ty(Scalar::F32))
        }
        _ => w.call("llvm.fma", &[a, b, c]),
    }
}

/// `-x`: the sign bit changes and nothing else.
pub(super) fn negate<'c>(w: Words<'_, 'c>, scalar: Scalar, x: Any<'c>) -> Any<'c> {
    if !is_short(scalar) {
        // An instruction of its own, which takes part in fused products.
        return match x {
            Any::VectorValue(v) => w.e.builder.build_float_neg(v, "").map(Into::into),
            one => {
                let one = one.into_float_value();
                w.e.builder.build_float_neg(one, "").map(Into::into)
            }
        }
        .expect(crate::emit::BUILT);
    }
    let bits = w.xor(w.bits_as(x, w.int(16)), w.integer(16, 0x8000));
    w.bits_as(bits, w.ty(scalar))
}

/// `|x|`: the sign bit changes and nothing else.
pub(super) fn magnitude<'c>(w: Words<'_, 'c>, scalar: Scalar, x: Any<'c>) -> Any<'c> {
    if !is_short(scalar) {
        return w.call("llvm.fabs", &[x]);
    }
    let bits = w.and(w.bits_as(x, w.int(16)), w.integer(16, 0x7fff));
    w.bits_as(bits, w.ty(scalar))
}

/// The smaller (A7).
pub(super) fn minimum<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    // Against a known number that is not +0: whatever equals it may be replaced by it, and so may a
    // NaN.
    let known = known_float(b).filter(|b| !b.is_nan() && b.to_bits() != 0);
    extreme(
        w,
        scalar,
        FloatPredicate::OLT,
        known.is_some(),
        Words::or,
        a,
        b,
    )
}

/// The larger (A7).
pub(super) fn maximum<'c>(w: Words<'_, 'c>, scalar: Scalar, a: Any<'c>, b: Any<'c>) -> Any<'c> {
    let minus_zero = (-0.0f64).to_bits();
    let known = known_float(b).filter(|b| !b.is_nan() && b.to_bits() != minus_zero);
    extreme(
        w,
        scalar,
        FloatPredicate::OGT,
        known.is_some(),
        Words::and,
        a,
        b,
    )
}

/// The one of two that the comparison chooses: `merge` of the bits of two equal numbers, which are
/// the same except for the signs of zeros; the number of a number and a NaN. If `simple`, equal
/// numbers and NaNs give the second.
fn extreme<'e, 'c>(
    w: Words<'e, 'c>,
    scalar: Scalar,
    predicate: FloatPredicate,
    simple: bool,
    merge: fn(Words<'e, 'c>, Any<'c>, Any<'c>) -> Any<'c>,
    a: Any<'c>,
    b: Any<'c>,
) -> Any<'c> {
    let of = wide(scalar);
    let width = of.bits();
    let [a, b] = [a, b].map(|x| widen(w, scalar, x));
    // One instruction on x86: of equal numbers and NaNs the second operand.
    let first = w.choose(w.compare_floats(predicate, a, b), a, b);
    if simple {
        return narrow_exact(w, scalar, first);
    }
    let second = w.choose(w.compare_floats(predicate, b, a), b, a);
    let [first, second] = [first, second].map(|x| w.bits_as(x, w.int(width)));
    let merged = w.bits_as(merge(w, first, second), w.ty(of));
    // Where one is NaN the comparisons are false: the first choice was `b`, the second `a`.
    let a_is_nan = w.compare_floats(FloatPredicate::UNO, a, a);
    let either_is_nan = w.compare_floats(FloatPredicate::UNO, a, b);
    let number = w.choose(a_is_nan, b, a);
    narrow_exact(w, scalar, w.choose(either_is_nan, number, merged))
}

/// A direction to an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    Up,
    Down,
    TowardZero,
    NearestEven,
}

/// Rounds to the nearest integer, of two to the even one.
pub(super) const NEAREST: &str = "llvm.roundeven";

/// To an integer in that direction, the sign kept.
pub(super) fn round<'c>(
    w: Words<'_, 'c>,
    scalar: Scalar,
    rounding: Rounding,
    x: Any<'c>,
) -> Any<'c> {
    let x = widen(w, scalar, x);
    // On x86 these instructions came with SSE4.1; there is no target between SSE2 and AVX2.
    let rounded = if w.e.target.has_avx2 || !w.e.target.is_x86 {
        let name = match rounding {
            Rounding::Up => "llvm.ceil",
            Rounding::Down => "llvm.floor",
            Rounding::TowardZero => "llvm.trunc",
            Rounding::NearestEven => NEAREST,
        };
        w.call(name, &[x])
    } else {
        round_by_sum(w, wide(scalar), rounding, x)
    };
    narrow_exact(w, scalar, rounded)
}

/// Where no instruction rounds to integers: adding a number whose steps are 1 does, to nearest even,
/// what is below it; where that went too far it goes back by 1.
fn round_by_sum<'c>(w: Words<'_, 'c>, scalar: Scalar, rounding: Rounding, x: Any<'c>) -> Any<'c> {
    let steps_of_one = w.float(
        scalar,
        if scalar == Scalar::F32 {
            2f64.powi(23)
        } else {
            2f64.powi(52)
        },
    );
    let one = w.float(scalar, 1.0);
    let size = w.call("llvm.fabs", &[x]);
    let nearest = w.fsub(w.fadd(size, steps_of_one), steps_of_one);
    let with_sign = |magnitude| w.call("llvm.copysign", &[magnitude, x]);
    let result = match rounding {
        Rounding::NearestEven => nearest,
        Rounding::TowardZero => {
            let beyond = w.compare_floats(FloatPredicate::OGT, nearest, size);
            w.choose(beyond, w.fsub(nearest, one), nearest)
        }
        Rounding::Down => {
            let nearest = with_sign(nearest);
            let beyond = w.compare_floats(FloatPredicate::OGT, nearest, x);
            w.choose(beyond, w.fsub(nearest, one), nearest)
        }
        Rounding::Up => {
            let nearest = with_sign(nearest);
            let beyond = w.compare_floats(FloatPredicate::OLT, nearest, x);
            w.choose(beyond, w.fadd(nearest, one), nearest)
        }
    };
    // Numbers as large are integers; of NaN the comparison is false, and it stays what it is.
    let small = w.compare_floats(FloatPredicate::OLT, size, steps_of_one);
    w.choose(small, with_sign(result), x)
}
