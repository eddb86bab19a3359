//! Integers, and the bits of floats.

use super::{constant, in_f32, number, scalar_of, splat, unsigned, with_scalar};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::Imm;
use crate::types::{Scalar, Type};

/// The bits of infinity.
const fn infinity(float: Scalar) -> u64 {
    match float {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F64 => 0x7ff0_0000_0000_0000,
        _ => 0x7f80_0000,
    }
}

/// The bits of the smallest normal number: the lowest bit of the exponent.
const fn smallest_normal(float: Scalar) -> u64 {
    match float {
        Scalar::F16 => 0x0400,
        Scalar::BF16 => 0x0080,
        Scalar::F64 => 0x0010_0000_0000_0000,
        _ => 0x0080_0000,
    }
}

/// The highest bit.
const fn sign_bit(scalar: Scalar) -> u64 {
    1 << (scalar.bits() - 1)
}

/// A float's bits without the sign, and a constant of their type.
fn magnitude_and(b: &mut KernelBuilder, x: Value, bits: u64) -> [Value; 2] {
    let ty = unsigned(b.ty(x));
    let all = b.as_type(x, ty);
    let mask = constant(b, ty, sign_bit(scalar_of(ty)) - 1);
    [b.and(all, mask), constant(b, ty, bits)]
}

/// `magnitude > infinity`, of the bits.
pub(crate) fn isnan(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let infinity = infinity(scalar_of(b.ty(args[0])));
    let [magnitude, infinity] = magnitude_and(b, args[0], infinity);
    b.gt(magnitude, infinity)
}

/// `magnitude == infinity`, of the bits.
pub(crate) fn isinf(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let infinity = infinity(scalar_of(b.ty(args[0])));
    let [magnitude, infinity] = magnitude_and(b, args[0], infinity);
    b.eq(magnitude, infinity)
}

/// `magnitude < infinity`, of the bits.
pub(crate) fn isfinite(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let infinity = infinity(scalar_of(b.ty(args[0])));
    let [magnitude, infinity] = magnitude_and(b, args[0], infinity);
    b.lt(magnitude, infinity)
}

/// `magnitude - smallest normal < infinity - smallest normal`, of the bits, unsigned.
pub(crate) fn isnormal(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = unsigned(b.ty(args[0]));
    let float = scalar_of(b.ty(args[0]));
    let smallest = smallest_normal(float);
    let [magnitude, first] = magnitude_and(b, args[0], smallest);
    let above = b.sub(magnitude, first);
    let count = constant(b, ty, infinity(float) - smallest);
    b.lt(above, count)
}

/// Whether the highest bit is set.
pub(crate) fn signbit(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = unsigned(b.ty(args[0]));
    let all = b.as_type(args[0], ty);
    let largest = constant(b, ty, sign_bit(scalar_of(ty)) - 1);
    b.gt(all, largest)
}

/// `(x & ~sign bit) | (sign & sign bit)`.
pub(crate) fn copysign(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let bit = sign_bit(scalar_of(ty));
    let [magnitude, bit] = magnitude_and(b, args[0], bit);
    let other = b.as_type(args[1], unsigned(ty));
    let sign = b.and(other, bit);
    let all = b.or(magnitude, sign);
    b.as_type(all, ty)
}

/// Shorter floats go through f32: where that is inexact, the result is 0 either way.
pub(crate) fn ldexp(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let [x, n] = [args[0], args[1]];
    in_f32(b, &[x], |b, wide| scale_by_power(b, wide[0], n))
}

/// `x * 2^n` by three factors that floats have. Above, none but the last product overflows unless
/// the result does. Below, a factor leaves a format's precision of room over the smallest normal
/// number, so that a product before the last is inexact only where the result is 0.
fn scale_by_power(b: &mut KernelBuilder, x: Value, n: Value) -> Value {
    let ty = b.ty(x);
    let scalar = scalar_of(ty);
    let (largest, precision, integer) = if scalar == Scalar::F64 {
        (1023, 53, Scalar::I64)
    } else {
        (127, 24, Scalar::I32)
    };
    let smallest = 1 - largest;
    let down = -(smallest + precision);
    let integers = with_scalar(ty, integer);
    let power = |b: &mut KernelBuilder, exponent: i32| {
        constant(b, ty, ((largest + exponent) as u64) << (precision - 1))
    };
    let [mut x, mut n] = [x, b.cast(n, integers)];
    let one = power(b, 0);
    let [high, low] = [largest, -down].map(|e| power(b, e));
    let [zero, most, least, high_step, low_step] =
        [0, largest, smallest, largest, -down].map(|k| number(b, integers, k.into()));
    for _ in 0..2 {
        let above = b.gt(n, most);
        let below = b.lt(n, least);
        let factor = b.select(one, high, above);
        let factor = b.select(factor, low, below);
        let taken = b.select(zero, high_step, above);
        let taken = b.select(taken, low_step, below);
        x = b.mul(x, factor);
        n = b.sub(n, taken);
    }
    let n = b.clamp(n, least, most);
    let biased = b.add(n, most);
    let place = number(b, integers, f64::from(precision - 1));
    let bits = b.shl(biased, place);
    let factor = b.as_type(bits, ty);
    b.mul(x, factor)
}

/// `max(a, b) - min(a, b)`.
pub(crate) fn abs_diff(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let larger = b.max(args[0], args[1]);
    let smaller = b.min(args[0], args[1]);
    b.sub(larger, smaller)
}

/// The smallest and the largest number of an integer type.
fn limits(b: &mut KernelBuilder, ty: Type) -> [Value; 2] {
    let scalar = scalar_of(ty);
    let [smallest, largest] = if scalar.is_signed_integer() {
        [sign_bit(scalar), sign_bit(scalar) - 1]
    } else {
        [0, u64::MAX]
    };
    [constant(b, ty, smallest), constant(b, ty, largest)]
}

/// The smallest number where `negative` is, else the largest.
fn limit_toward(b: &mut KernelBuilder, negative: Value) -> Value {
    let ty = b.ty(negative);
    let zero = constant(b, ty, 0);
    let [smallest, largest] = limits(b, ty);
    let below = b.lt(negative, zero);
    b.select(largest, smallest, below)
}

/// Unsigned, `s = a + b` overflowed if `s < a`; signed, if `a` and `b` both differ from `s` in sign.
pub(crate) fn add_sat(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let (x, y) = (args[0], args[1]);
    let ty = b.ty(x);
    let sum = b.add(x, y);
    let [overflow, limit] = if scalar_of(ty).is_signed_integer() {
        let x_differs = b.xor(x, sum);
        let y_differs = b.xor(y, sum);
        let both = b.and(x_differs, y_differs);
        let zero = constant(b, ty, 0);
        [b.lt(both, zero), limit_toward(b, x)]
    } else {
        let [_, largest] = limits(b, ty);
        [b.lt(sum, x), largest]
    };
    b.select(sum, limit, overflow)
}

/// Unsigned, `a - b` overflows if `a < b`; signed, if `b` and the difference both differ from `a` in
/// sign.
pub(crate) fn sub_sat(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let (x, y) = (args[0], args[1]);
    let ty = b.ty(x);
    let difference = b.sub(x, y);
    let zero = constant(b, ty, 0);
    let [overflow, limit] = if scalar_of(ty).is_signed_integer() {
        let y_differs = b.xor(x, y);
        let differs = b.xor(x, difference);
        let both = b.and(y_differs, differs);
        [b.lt(both, zero), limit_toward(b, x)]
    } else {
        [b.lt(x, y), zero]
    };
    b.select(difference, limit, overflow)
}

/// `mul_hi(a, b) + c`.
pub(crate) fn mad_hi(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let high = b.mul_hi(args[0], args[1]);
    b.add(high, args[2])
}

/// `a * b + c` at twice the width, in two halves; it fits if the upper half is nothing but the sign
/// of the lower one (0, if unsigned).
pub(crate) fn mad_sat(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let (x, y, z) = (args[0], args[1], args[2]);
    let ty = b.ty(x);
    let bits = unsigned(ty);
    let product = b.mul(x, y);
    let low = b.add(product, z);
    let high = b.mul_hi(x, y);
    let [low_bits, z_bits] = [low, z].map(|v| b.as_type(v, bits));
    let carried = b.lt(low_bits, z_bits);
    let [zero, one] = [0, 1].map(|k| constant(b, ty, k));
    let carry = b.select(zero, one, carried);
    let high = b.add(high, carry);
    if scalar_of(ty).is_signed_integer() {
        let last = number(b, ty, f64::from(scalar_of(ty).bits() - 1));
        let z_sign = b.shr(z, last);
        let high = b.add(high, z_sign);
        let sign = b.shr(low, last);
        let overflow = b.ne(high, sign);
        let limit = limit_toward(b, high);
        b.select(low, limit, overflow)
    } else {
        let overflow = b.ne(high, zero);
        let [_, largest] = limits(b, ty);
        b.select(low, largest, overflow)
    }
}

/// `(x << count) | (x >> -count)`, unsigned; counts are taken modulo the width (A3).
pub(crate) fn rotate(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let [x, count] = [args[0], args[1]].map(|v| b.as_type(v, unsigned(ty)));
    let up = b.shl(x, count);
    let rest = b.neg(count);
    let down = b.shr(x, rest);
    let all = b.or(up, down);
    b.as_type(all, ty)
}

/// `x >> count`.
pub(crate) fn shr_exact(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    b.shr(args[0], args[1])
}

/// A6: the offset, at most the width, and the count, at most what is left, as u32; and a function
/// that makes shift counts of a type of them.
fn bit_range(b: &mut KernelBuilder, width: u32, offset: Value, count: Value) -> [Value; 3] {
    let width = b.const_u32(width);
    let offset = b.min(offset, width);
    let left = b.sub(width, offset);
    let count = b.min(count, left);
    [offset, count, b.sub(width, count)]
}

/// A `u32` as a shift count for a type.
fn shift_count(b: &mut KernelBuilder, ty: Type, count: Value) -> Value {
    let count = b.cast(count, Type::Scalar(scalar_of(ty)));
    splat(b, ty, count)
}

/// `(x << (width - offset - count)) >> (width - count)`, 0 for a count of 0.
pub(crate) fn extract_bits(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let width = scalar_of(ty).bits();
    let [offset, count, unused] = bit_range(b, width, args[1], args[2]);
    let above = b.sub(unused, offset);
    let [above, unused] = [above, unused].map(|n| shift_count(b, ty, n));
    let bits = b.shl(args[0], above);
    let bits = b.shr(bits, unused);
    let zero = b.const_u32(0);
    let none = b.eq(count, zero);
    let zero = constant(b, ty, 0);
    b.select(bits, zero, none)
}

/// `(x & ~mask) | ((part << offset) & mask)` with `mask = (ones >> (width - count)) << offset`, `x`
/// for a count of 0.
pub(crate) fn insert_bits(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let bits = unsigned(ty);
    let width = scalar_of(ty).bits();
    let [offset, count, unused] = bit_range(b, width, args[2], args[3]);
    let [offset, unused] = [offset, unused].map(|n| shift_count(b, bits, n));
    let [x, part] = [args[0], args[1]].map(|v| b.as_type(v, bits));
    let ones = constant(b, bits, u64::MAX);
    let mask = b.shr(ones, unused);
    let mask = b.shl(mask, offset);
    let part = b.shl(part, offset);
    let part = b.and(part, mask);
    let others = b.not(mask);
    let rest = b.and(x, others);
    let result = b.or(rest, part);
    let zero = b.const_u32(0);
    let none = b.eq(count, zero);
    let result = b.select(result, x, none);
    b.as_type(result, ty)
}
