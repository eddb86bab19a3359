//! Evaluators: the correctly rounded basic operations, for every type (A1 to A9).
//!
//! Each works on columns of scalars held as bits in `u64`, so that one dispatch on the type serves
//! many lanes. A rule is written once, as a function of one lane, and the macros make columns of it.
//! The bits of a NaN that an operation makes are not specified.

use half::{bf16, f16};

use super::scalar::{Float, Lane, by_type};
use crate::types::Scalar;

#[inline(always)]
fn map1<A: Lane, R: Lane>(args: &[&[u64]], out: &mut [u64], f: impl Fn(A) -> R) {
    for (o, a) in out.iter_mut().zip(args[0]) {
        *o = f(A::from_bits(*a)).to_bits();
    }
}

#[inline(always)]
fn map2<A: Lane, B: Lane, R: Lane>(args: &[&[u64]], out: &mut [u64], f: impl Fn(A, B) -> R) {
    for ((o, a), b) in out.iter_mut().zip(args[0]).zip(args[1]) {
        *o = f(A::from_bits(*a), B::from_bits(*b)).to_bits();
    }
}

#[inline(always)]
fn map3<A: Lane, B: Lane, C: Lane, R: Lane>(
    args: &[&[u64]],
    out: &mut [u64],
    f: impl Fn(A, B, C) -> R,
) {
    for (((o, a), b), c) in out.iter_mut().zip(args[0]).zip(args[1]).zip(args[2]) {
        *o = f(A::from_bits(*a), B::from_bits(*b), C::from_bits(*c)).to_bits();
    }
}

/// The bit that is a float's sign.
const fn sign_bit(float: Scalar) -> u64 {
    1 << (float.bits() - 1)
}

// ---- arithmetic ----

/// `a + b`.
pub fn add(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        integer => |T| map2(args, out, T::wrapping_add),
        float => |T| map2(args, out, |a: T, b: T| T::narrow(a.widen() + b.widen())),
    );
}

/// `a - b`.
pub fn sub(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        integer => |T| map2(args, out, T::wrapping_sub),
        float => |T| map2(args, out, |a: T, b: T| T::narrow(a.widen() - b.widen())),
    );
}

/// `a * b`.
pub fn mul(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        integer => |T| map2(args, out, T::wrapping_mul),
        float => |T| map2(args, out, |a: T, b: T| T::narrow(a.widen() * b.widen())),
    );
}

/// `a / b`, with A2's total integer division.
pub fn div(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| if b == 0 { 0 } else { a.wrapping_div(b) }),
        unsigned => |T| map2(args, out, |a: T, b: T| a.checked_div(b).unwrap_or(0)),
        float => |T| map2(args, out, |a: T, b: T| T::narrow(a.widen() / b.widen())),
    );
}

/// `a % b`, with A2's total integer division.
pub fn rem(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        unsigned => |T| map2(args, out, |a: T, b: T| a.checked_rem(b).unwrap_or(0)),
    );
}

/// `-a`; of a float only the sign bit changes.
pub fn neg(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    if from.is_float() {
        return map1(args, out, |a: u64| a ^ sign_bit(from));
    }
    by_type!(from; integer => |T| map1(args, out, T::wrapping_neg));
}

/// `a * b + c`, rounded once.
pub fn fma(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map3(args, out, <T as Float>::fma));
}

/// The square root.
pub fn sqrt(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |a: T| T::narrow(a.widen().sqrt())));
}

/// The magnitude; of a float only the sign bit changes.
pub fn abs(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    if from.is_float() {
        return map1(args, out, |a: u64| a & !sign_bit(from));
    }
    by_type!(from;
        signed => |T| map1(args, out, T::wrapping_abs),
        unsigned => |T| map1(args, out, |a: T| a),
    );
}

/// The smaller, by A7 for floats.
pub fn min(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        integer => |T| map2(args, out, |a: T, b: T| a.min(b)),
        float => |T| map2(args, out, |a: T, b: T| {
            let (x, y) = (a.widen(), b.widen());
            // Of two equal ones the one with a sign bit; a comparison with a NaN is false.
            let first = x < y || y.is_nan() || (x == y && x.is_sign_negative());
            if first { a } else { b }
        }),
    );
}

/// The larger, by A7 for floats.
pub fn max(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        integer => |T| map2(args, out, |a: T, b: T| a.max(b)),
        float => |T| map2(args, out, |a: T, b: T| {
            let (x, y) = (a.widen(), b.widen());
            let first = x > y || y.is_nan() || (x == y && x.is_sign_positive());
            if first { a } else { b }
        }),
    );
}

// ---- rounding to integers ----

/// Rounds up.
pub fn ceil(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |a: T| T::narrow(a.widen().ceil())));
}

/// Rounds down.
pub fn floor(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |a: T| T::narrow(a.widen().floor())));
}

/// Rounds toward zero.
pub fn trunc(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |a: T| T::narrow(a.widen().trunc())));
}

/// Rounds to nearest, ties to even.
pub fn rint(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        float => |T| map1(args, out, |a: T| T::narrow(a.widen().round_ties_even())),
    );
}

// ---- bits ----

/// `a & b`.
pub fn and(_from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    map2(args, out, |a: u64, b: u64| a & b);
}

/// `a | b`.
pub fn or(_from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    map2(args, out, |a: u64, b: u64| a | b);
}

/// `a ^ b`.
pub fn xor(_from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    map2(args, out, |a: u64, b: u64| a ^ b);
}

/// Every bit the other way.
pub fn not(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    let mask = u64::MAX >> (64 - from.bits());
    map1(args, out, |a: u64| !a & mask);
}

/// `a << b`, the count modulo the width (A3).
pub fn shl(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map2(args, out, |a: T, b: T| a.wrapping_shl(Lane::to_bits(b) as u32)));
}

/// `a >> b`, the count modulo the width, arithmetic if signed (A3).
pub fn shr(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map2(args, out, |a: T, b: T| a.wrapping_shr(Lane::to_bits(b) as u32)));
}

/// How many bits are 1.
pub fn popcount(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map1(args, out, |a: T| a.count_ones() as T));
}

/// How many bits above the highest 1; the width, of 0 (A4).
pub fn clz(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map1(args, out, |a: T| a.leading_zeros() as T));
}

/// How many bits below the lowest 1; the width, of 0 (A4).
pub fn ctz(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map1(args, out, |a: T| a.trailing_zeros() as T));
}

/// The bits in the opposite order.
pub fn reverse_bits(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; integer => |T| map1(args, out, T::reverse_bits));
}

/// The upper half of the product at twice the width.
pub fn mul_hi(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| {
            ((i128::from(a) * i128::from(b)) >> T::BITS) as T
        }),
        unsigned => |T| map2(args, out, |a: T, b: T| {
            ((u128::from(a) * u128::from(b)) >> T::BITS) as T
        }),
    );
}

// ---- comparisons and choice ----

macro_rules! ordered {
    ($($(#[doc = $doc:literal])+ $name:ident $operator:tt;)*) => {$(
        $(#[doc = $doc])+
        pub fn $name(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
            by_type!(from;
                integer => |T| map2(args, out, |a: T, b: T| a $operator b),
                float => |T| map2(args, out, |a: T, b: T| a.widen() $operator b.widen()),
            );
        }
    )*};
}
ordered! {
    /// `a < b`.
    lt <;
    /// `a <= b`.
    le <=;
    /// `a > b`.
    gt >;
    /// `a >= b`.
    ge >=;
}

/// `a == b`.
pub fn eq(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    if !from.is_float() {
        return map2(args, out, |a: u64, b: u64| a == b);
    }
    by_type!(from; float => |T| map2(args, out, |a: T, b: T| a.widen() == b.widen()));
}

/// `a != b`.
pub fn ne(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    if !from.is_float() {
        return map2(args, out, |a: u64, b: u64| a != b);
    }
    by_type!(from; float => |T| map2(args, out, |a: T, b: T| a.widen() != b.widen()));
}

/// `c ? b : a`; the bits pass unchanged.
pub fn select(_from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    map3(args, out, |a: u64, b: u64, c: bool| if c { b } else { a });
}

// ---- conversions ----

/// A5's conversions.
pub fn cast(from: Scalar, to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    if from == to {
        return out.copy_from_slice(args[0]);
    }
    match from {
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
            from_unsigned(to, args, out);
        }
        Scalar::I8 => from_signed(to, args, out, |a: i8| i64::from(a)),
        Scalar::I16 => from_signed(to, args, out, |a: i16| i64::from(a)),
        Scalar::I32 => from_signed(to, args, out, |a: i32| i64::from(a)),
        Scalar::I64 => from_signed(to, args, out, |a: i64| a),
        Scalar::F16 => from_f32(to, args, out, |a: f16| a.widen()),
        Scalar::BF16 => from_f32(to, args, out, |a: bf16| a.widen()),
        Scalar::F32 => from_f32(to, args, out, |a: f32| a),
        Scalar::F64 => from_f64(to, args, out),
    }
}

fn from_unsigned(to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(to;
        bool => |T| map1(args, out, |a: u64| -> T { a != 0 }),
        integer => |T| map1(args, out, |a: u64| a as T),
        float => |T| map1(args, out, |a: u64| T::round_u64(a)),
    );
}

#[inline(always)]
fn from_signed<A: Lane>(to: Scalar, args: &[&[u64]], out: &mut [u64], widen: impl Fn(A) -> i64) {
    by_type!(to;
        bool => |T| map1(args, out, |a: A| -> T { widen(a) != 0 }),
        integer => |T| map1(args, out, |a: A| widen(a) as T),
        float => |T| map1(args, out, |a: A| T::round_i64(widen(a))),
    );
}

#[inline(always)]
fn from_f32<A: Lane>(to: Scalar, args: &[&[u64]], out: &mut [u64], widen: impl Fn(A) -> f32) {
    by_type!(to;
        bool => |T| map1(args, out, |a: A| -> T { widen(a) != 0.0 }),
        integer => |T| map1(args, out, |a: A| widen(a) as T),
        float => |T| map1(args, out, |a: A| T::round_f32(widen(a))),
    );
}

fn from_f64(to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(to;
        bool => |T| map1(args, out, |a: f64| -> T { a != 0.0 }),
        integer => |T| map1(args, out, |a: f64| a as T),
        float => |T| map1(args, out, |a: f64| T::round_f64(a)),
    );
}
