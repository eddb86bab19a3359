//! Scalars as Rust types: how a column of bits becomes numbers and numbers become bits again.
//!
//! Every conversion to a narrower float is here and rounds once, to nearest even, subnormals
//! included. (The `half` crate only names the types: its conversion from `f64` drops half of the
//! mantissa, or goes through `f32` and rounds twice.)

use half::{bf16, f16};

use crate::types::Scalar;

impl Scalar {
    /// The number that the bits of an integer of this type stand for, those above its width ignored;
    /// the bits of any other type are taken as an unsigned integer.
    pub fn integer(self, bits: u64) -> i128 {
        let unused = 64 - self.bits();
        if self.is_signed_integer() {
            i128::from(((bits << unused) as i64) >> unused)
        } else {
            i128::from(bits << unused >> unused)
        }
    }
}

/// A Rust type that stands for a scalar type.
pub(crate) trait Lane: Copy {
    /// From bits in the low end of a `u64`.
    fn from_bits(bits: u64) -> Self;
    /// To bits in the low end of a `u64`, the rest 0.
    fn to_bits(self) -> u64;
}

macro_rules! integer_lane {
    ($($signed:ty, $unsigned:ty;)*) => {$(
        impl Lane for $signed {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $signed }
            #[inline(always)]
            fn to_bits(self) -> u64 { u64::from(self as $unsigned) }
        }
        impl Lane for $unsigned {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $unsigned }
            #[inline(always)]
            fn to_bits(self) -> u64 { u64::from(self) }
        }
    )*};
}
integer_lane! { i8, u8; i16, u16; i32, u32; i64, u64; }

macro_rules! float_lane {
    ($($float:ty, $bits:ty;)*) => {$(
        impl Lane for $float {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { <$float>::from_bits(bits as $bits) }
            #[inline(always)]
            fn to_bits(self) -> u64 { u64::from(<$float>::to_bits(self)) }
        }
    )*};
}
float_lane! { f16, u16; bf16, u16; f32, u32; f64, u64; }

impl Lane for bool {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

/// A float type, computed in a type that is wide enough for one rounding after a basic operation to
/// equal no rounding before it: `f32` has 24 bits, at least twice the 11 of `f16` and 2 more, which
/// makes the second rounding of a sum, product, quotient or square root harmless (Figueroa, "When is
/// double rounding innocuous?", 1995); results below the normal range are exact in `f32`, or far
/// enough from a tie.
///
/// No method here is called as one of the `half` crate's types is: theirs would come first.
pub(crate) trait Float: Lane {
    /// The type that computes.
    type Wide;
    /// Exactly.
    fn widen(self) -> Self::Wide;
    /// Rounded.
    fn narrow(wide: Self::Wide) -> Self;
    /// Rounded.
    fn round_f32(x: f32) -> Self;
    /// Rounded.
    fn round_f64(x: f64) -> Self;
    /// Rounded.
    fn round_i64(x: i64) -> Self;
    /// Rounded.
    fn round_u64(x: u64) -> Self;
    /// `a * b + c` rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

impl Float for f64 {
    type Wide = f64;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f64 {
        wide
    }
    #[inline(always)]
    fn round_f32(x: f32) -> f64 {
        x.into()
    }
    #[inline(always)]
    fn round_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn round_i64(x: i64) -> f64 {
        x as f64
    }
    #[inline(always)]
    fn round_u64(x: u64) -> f64 {
        x as f64
    }
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

impl Float for f32 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f32 {
        wide
    }
    #[inline(always)]
    fn round_f32(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn round_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn round_i64(x: i64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn round_u64(x: u64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        // As the library's function gives, and many times faster where that is a call.
        fma_to_odd(a.into(), b.into(), c.into()) as f32
    }
}

macro_rules! short_float {
    ($($float:ident, $to_f32:ident, $from_f32:ident;)*) => {$(
        impl Float for $float {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $to_f32($float::to_bits(self))
            }
            #[inline(always)]
            fn narrow(wide: f32) -> $float {
                $float::from_bits($from_f32(wide))
            }
            #[inline(always)]
            fn round_f32(x: f32) -> $float {
                Self::narrow(x)
            }
            #[inline(always)]
            fn round_f64(x: f64) -> $float {
                Self::narrow(f64_to_odd_f32(x))
            }
            #[inline(always)]
            fn round_i64(x: i64) -> $float {
                let magnitude = u64_to_odd_f64(x.unsigned_abs());
                Self::round_f64(if x < 0 { -magnitude } else { magnitude })
            }
            #[inline(always)]
            fn round_u64(x: u64) -> $float {
                Self::round_f64(u64_to_odd_f64(x))
            }
            #[inline(always)]
            fn fma(a: $float, b: $float, c: $float) -> $float {
                let wide = |x: $float| f64::from(x.widen());
                Self::round_f64(fma_to_odd(wide(a), wide(b), wide(c)))
            }
        }
    )*};
}
short_float! { f16, f16_to_f32, f32_to_f16; bf16, bf16_to_f32, f32_to_bf16; }

#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let moved = magnitude << 13;
    let finite = if magnitude < 0x0400 {
        (magnitude as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits() // times 2^-24
    } else if magnitude < 0x7c00 {
        moved + (112 << 23)
    } else {
        moved | 0x7f80_0000
    };
    f32::from_bits(finite | sign)
}

#[inline(always)]
fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let rebased = magnitude.wrapping_sub(112 << 23);
    let normal = rebased.wrapping_add(0x0fff + ((magnitude >> 13) & 1)) >> 13;
    // One half has steps of 2^-24, those of subnormals: the addition rounds to them.
    let half = 0x3f00_0000;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(half)).to_bits();
    let result = if magnitude > 0x7f80_0000 {
        0x7e00
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        subnormal.wrapping_sub(half)
    } else {
        normal
    };
    (result | sign) as u16
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x7fc0;
    (if x.is_nan() { nan } else { rounded }) as u16
}

/// Rounded to odd: away from an even last bit, where the result is not exact. Rounding that once
/// more to a type of at most 22 bits equals rounding the exact value once (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums", 2008). It never gives an infinity or 0 for a
/// finite number other than 0.
#[inline(always)]
fn f64_to_odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    // One step toward `x` if it is not `x` and not odd already.
    let inexact = u32::from((back - x).abs() > 0.0) & !bits & 1;
    let toward_zero = u32::from(back.abs() > x.abs());
    f32::from_bits(
        bits.wrapping_add(inexact)
            .wrapping_sub((inexact & toward_zero) << 1),
    )
}

/// Rounded to odd.
#[inline(always)]
fn u64_to_odd_f64(x: u64) -> f64 {
    if x < 1 << 53 {
        x as f64
    } else {
        ((x >> 11) | u64::from(x & 0x7ff != 0)) as f64 * 2048.0
    }
}

/// `a * b + c` rounded to odd, for factors so short that their product is exact.
#[inline(always)]
fn fma_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    // Knuth's TwoSum: `sum + error` is `product + c` exactly. It is NaN where `sum` is not finite.
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    // One step toward 0 if the error has the other sign, else one away from it; none if there is no
    // error, or if the last bit is odd already.
    let bits = sum.to_bits();
    let toward_zero = (error.to_bits() ^ bits) >> 63;
    let inexact = u64::from(error.abs() > 0.0) & !bits & 1;
    f64::from_bits(
        bits.wrapping_add(inexact)
            .wrapping_sub((inexact & toward_zero) << 1),
    )
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
    (@integer $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@signed $done $scalar $t $body);
        by_type!(@unsigned $done $scalar $t $body)
    };
    (@float $done:lifetime $scalar:ident $t:ident $body:expr) => {
        by_type!(@arms $done $scalar $t $body;
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@arms $done:lifetime $scalar:ident $t:ident $body:expr; $($variant:ident $rust:ty),*) => {
        $(if $scalar == Scalar::$variant {
            type $t = $rust;
            break $done $body;
        })*
    };
}
pub(crate) use by_type;
