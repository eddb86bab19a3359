//! Evaluators: the correctly rounded basic operations, for every type (A1 to A9).
//!
//! Each works on columns of scalars held as bits in `u64`, so that one dispatch on the type serves
//! many lanes. A rule is written once, as a function of one lane, and the macros make columns of it.

use half::{bf16, f16};

use crate::types::Scalar;

/// A Rust type that stands for a scalar type.
pub trait Lane: Copy {
    /// From bits in the low end of a `u64`.
    fn from_bits(bits: u64) -> Self;
    /// To bits in the low end of a `u64`, the rest 0.
    fn to_bits(self) -> u64;
}

macro_rules! integer_lane {
    ($($signed:ty, $unsigned:ty;)*) => {$(
        impl Lane for $signed {
            fn from_bits(bits: u64) -> Self { bits as $signed }
            fn to_bits(self) -> u64 { u64::from(self as $unsigned) }
        }
        impl Lane for $unsigned {
            fn from_bits(bits: u64) -> Self { bits as $unsigned }
            fn to_bits(self) -> u64 { u64::from(self) }
        }
    )*};
}
integer_lane! { i8, u8; i16, u16; i32, u32; i64, u64; }

macro_rules! float_lane {
    ($($float:ty, $bits:ty;)*) => {$(
        impl Lane for $float {
            fn from_bits(bits: u64) -> Self { <$float>::from_bits(bits as $bits) }
            fn to_bits(self) -> u64 { u64::from(<$float>::to_bits(self)) }
        }
    )*};
}
float_lane! { f16, u16; bf16, u16; f32, u32; f64, u64; }

impl Lane for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

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

/// Runs the body of the class that a scalar type belongs to, with the Rust type under a name. A
/// type of no class given cannot occur: the operation's signature keeps it out.
macro_rules! by_type {
    ($scalar:expr; $($class:ident => |$t:ident| $body:expr),* $(,)?) => {
        'done: {
            let scalar = $scalar;
            $(by_type!(@$class 'done scalar $t $body);)*
            unreachable!("the signature keeps {scalar} out")
        }
    };
    (@bool $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@arms $done $scalar $t $body; Bool bool)
    };
    (@signed $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@arms $done $scalar $t $body; I8 i8, I16 i16, I32 i32, I64 i64)
    };
    (@unsigned $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@arms $done $scalar $t $body; U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (@float $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@arms $done $scalar $t $body; F16 f16, BF16 bf16, F32 f32, F64 f64)
    };
    (@arms $done:lifetime $scalar:ident $t:ident $body:expr; $($variant:ident $rust:ty),*) => {
        $(if $scalar == Scalar::$variant {
            type $t = $rust;
            break $done $body;
        })*
    };
}

/// `a + b`.
pub fn add(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, T::wrapping_add),
        unsigned => |T| map2(args, out, T::wrapping_add),
        float => |T| map2(args, out, |a: T, b: T| a + b),
    );
}

/// `a - b`.
pub fn sub(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, T::wrapping_sub),
        unsigned => |T| map2(args, out, T::wrapping_sub),
        float => |T| map2(args, out, |a: T, b: T| a - b),
    );
}

/// `a * b`.
pub fn mul(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, T::wrapping_mul),
        unsigned => |T| map2(args, out, T::wrapping_mul),
        float => |T| map2(args, out, |a: T, b: T| a * b),
    );
}

/// `a / b`, with A2's total integer division.
pub fn div(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| if b == 0 { 0 } else { a.wrapping_div(b) }),
        unsigned => |T| map2(args, out, |a: T, b: T| a.checked_div(b).unwrap_or(0)),
        float => |T| map2(args, out, |a: T, b: T| a / b),
    );
}

/// `a % b`, with A2's total integer division.
pub fn rem(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        unsigned => |T| map2(args, out, |a: T, b: T| a.checked_rem(b).unwrap_or(0)),
    );
}

/// `a * b + c`, rounded once.
pub fn fma(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    match from {
        Scalar::F16 => map3(args, out, |a: f16, b: f16, c: f16| {
            f16::from_f64(fma_to_odd(a.to_f64(), b.to_f64(), c.to_f64()))
        }),
        Scalar::BF16 => map3(args, out, |a: bf16, b: bf16, c: bf16| {
            bf16::from_f64(fma_to_odd(a.to_f64(), b.to_f64(), c.to_f64()))
        }),
        Scalar::F32 => map3(args, out, f32::mul_add),
        Scalar::F64 => map3(args, out, f64::mul_add),
        other => unreachable!("the signature keeps {other} out"),
    }
}

/// `a * b + c` rounded to odd, for factors so short that their product is exact: rounding the
/// result once more to a much shorter type then equals rounding the exact value once (Boldo and
/// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
fn fma_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's TwoSum: `sum + error` is `product + c` exactly.
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let toward_zero = (error > 0.0) != (sum > 0.0);
    f64::from_bits(if toward_zero {
        sum.to_bits() - 1
    } else {
        sum.to_bits() + 1
    })
}

/// `-x`.
pub fn neg(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map1(args, out, T::wrapping_neg),
        unsigned => |T| map1(args, out, T::wrapping_neg),
        float => |T| map1(args, out, |x: T| -x),
    );
}

/// `|x|`.
pub fn abs(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map1(args, out, T::wrapping_abs),
        unsigned => |T| map1(args, out, |x: T| x),
        float => |T| map1(args, out, T::magnitude),
    );
}

/// The square root.
pub fn sqrt(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |x: T| T::from_float(x.to_float().sqrt())));
}

/// The next integer below.
pub fn floor(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |x: T| T::from_float(x.to_float().floor())));
}

/// The next integer above.
pub fn ceil(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |x: T| T::from_float(x.to_float().ceil())));
}

/// The next integer toward zero.
pub fn trunc(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from; float => |T| map1(args, out, |x: T| T::from_float(x.to_float().trunc())));
}

/// The nearest integer, ties to even.
pub fn rint(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        float => |T| map1(args, out, |x: T| T::from_float(x.to_float().round_ties_even())),
    );
}

/// The high half of `a * b`.
pub fn mul_hi(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| ((a as i128 * b as i128) >> T::BITS) as T),
        unsigned => |T| map2(args, out, |a: T, b: T| ((a as u128 * b as u128) >> T::BITS) as T),
    );
}

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

/// `!x`.
pub fn not(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        bool => |T| map1(args, out, |x: T| !x),
        signed => |T| map1(args, out, |x: T| !x),
        unsigned => |T| map1(args, out, |x: T| !x),
    );
}

/// `a << count`.
pub fn shl(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, count: T| a << (count & (T::BITS as T - 1))),
        unsigned => |T| map2(args, out, |a: T, count: T| a << (count & (T::BITS as T - 1))),
    );
}

/// `a >> count`.
pub fn shr(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, count: T| a >> (count & (T::BITS as T - 1))),
        unsigned => |T| map2(args, out, |a: T, count: T| a >> (count & (T::BITS as T - 1))),
    );
}

/// `a != b`.
pub fn ne(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        bool => |T| map2(args, out, |a: T, b: T| a != b),
        signed => |T| map2(args, out, |a: T, b: T| a != b),
        unsigned => |T| map2(args, out, |a: T, b: T| a != b),
        float => |T| map2(args, out, |a: T, b: T| a != b),
    );
}

/// `a <= b`.
pub fn le(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| a <= b),
        unsigned => |T| map2(args, out, |a: T, b: T| a <= b),
        float => |T| map2(args, out, |a: T, b: T| a <= b),
    );
}

/// `a > b`.
pub fn gt(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| a > b),
        unsigned => |T| map2(args, out, |a: T, b: T| a > b),
        float => |T| map2(args, out, |a: T, b: T| a > b),
    );
}

/// `a >= b`.
pub fn ge(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| a >= b),
        unsigned => |T| map2(args, out, |a: T, b: T| a >= b),
        float => |T| map2(args, out, |a: T, b: T| a >= b),
    );
}

/// `a == b`.
pub fn eq(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        bool => |T| map2(args, out, |a: T, b: T| a == b),
        signed => |T| map2(args, out, |a: T, b: T| a == b),
        unsigned => |T| map2(args, out, |a: T, b: T| a == b),
        float => |T| map2(args, out, |a: T, b: T| a == b),
    );
}

/// `a < b`.
pub fn lt(from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        signed => |T| map2(args, out, |a: T, b: T| a < b),
        unsigned => |T| map2(args, out, |a: T, b: T| a < b),
        float => |T| map2(args, out, |a: T, b: T| a < b),
    );
}

/// `c ? b : a`; the bits pass unchanged.
pub fn select(_from: Scalar, _to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    for (((o, a), b), c) in out.iter_mut().zip(args[0]).zip(args[1]).zip(args[2]) {
        *o = if *c != 0 { *b } else { *a };
    }
}

/// A5's conversions.
pub fn cast(from: Scalar, to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    by_type!(from;
        bool => |T| cast_to(to, args, out, |x: T| Wide::Integer(i128::from(x))),
        signed => |T| cast_to(to, args, out, |x: T| Wide::Integer(i128::from(x))),
        unsigned => |T| cast_to(to, args, out, |x: T| Wide::Integer(i128::from(x))),
        float => |T| cast_to(to, args, out, |x: T| Wide::Float(x.to_float())),
    );
}

/// Any scalar's value, exactly.
#[derive(Clone, Copy)]
enum Wide {
    Integer(i128),
    Float(f64),
}

#[inline(always)]
fn cast_to<A: Lane>(to: Scalar, args: &[&[u64]], out: &mut [u64], widen: impl Fn(A) -> Wide) {
    by_type!(to;
        bool => |T| map1(args, out, |x| -> T {
            match widen(x) {
                Wide::Integer(i) => i != 0,
                Wide::Float(f) => f != 0.0,
            }
        }),
        signed => |T| map1(args, out, |x| match widen(x) {
            Wide::Integer(i) => i as T,
            Wide::Float(f) => f as T,
        }),
        unsigned => |T| map1(args, out, |x| match widen(x) {
            Wide::Integer(i) => i as T,
            Wide::Float(f) => f as T,
        }),
        float => |T| map1(args, out, |x| -> T {
            match widen(x) {
                Wide::Integer(i) => <T as FromWide>::from_integer(i),
                Wide::Float(f) => <T as FromWide>::from_float(f),
            }
        }),
    );
}

/// Rounding to nearest even from exact values.
trait FromWide {
    fn from_integer(i: i128) -> Self;
    fn from_float(f: f64) -> Self;
    fn to_float(self) -> f64;
    /// Without the sign bit.
    fn magnitude(self) -> Self;
}

impl FromWide for f64 {
    fn from_integer(i: i128) -> f64 {
        i as f64
    }
    fn from_float(f: f64) -> f64 {
        f
    }
    fn to_float(self) -> f64 {
        self
    }
    fn magnitude(self) -> f64 {
        f64::from_bits(f64::to_bits(self) & 0x7fff_ffff_ffff_ffff)
    }
}

impl FromWide for f32 {
    fn from_integer(i: i128) -> f32 {
        i as f32
    }
    fn from_float(f: f64) -> f32 {
        f as f32
    }
    fn to_float(self) -> f64 {
        self.into()
    }
    fn magnitude(self) -> f32 {
        f32::from_bits(f32::to_bits(self) & 0x7fff_ffff)
    }
}

/// An integer of up to 64 bits as the `f64` that rounds as it does to any type of at most 51 bits:
/// rounded to odd.
fn integer_to_odd(i: i128) -> f64 {
    let f = i as f64;
    let back = f as i128;
    if back == i || f.to_bits() & 1 == 1 {
        return f;
    }
    let toward_zero = back.unsigned_abs() > i.unsigned_abs();
    f64::from_bits(if toward_zero {
        f.to_bits() - 1
    } else {
        f.to_bits() + 1
    })
}

impl FromWide for f16 {
    fn from_integer(i: i128) -> f16 {
        f16::from_f64(integer_to_odd(i))
    }
    fn from_float(f: f64) -> f16 {
        f16::from_f64(f)
    }
    fn to_float(self) -> f64 {
        self.into()
    }
    fn magnitude(self) -> f16 {
        f16::from_bits(f16::to_bits(self) & 0x7fff)
    }
}

impl FromWide for bf16 {
    fn from_integer(i: i128) -> bf16 {
        bf16::from_f64(integer_to_odd(i))
    }
    fn from_float(f: f64) -> bf16 {
        bf16::from_f64(f)
    }
    fn to_float(self) -> f64 {
        self.into()
    }
    fn magnitude(self) -> bf16 {
        bf16::from_bits(bf16::to_bits(self) & 0x7fff)
    }
}
