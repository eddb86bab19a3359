//! The methods that Rust's numbers have, by Rust's names, where the table of operations has others for them: what a
//! person writes first. Each means what it means in Rust, but that nothing overflows and nothing panics.
//!
//! Absent: those whose name the table gives to something else, such as `signum`, and those of integers alone that
//! floats have under the same name, such as `pow`.

use invar_runtime::{bf16, f16};

use super::compare::{eq, lt, ne};
use super::control::{loop_, while_};
use super::data::{Float, Floats, Integer, Integers, Number, Val};
use super::define::with;
use super::ops;
use super::value::{cast, lit};
use super::vector::as_type;

/// Where the words stand that a method is for.
fn here() -> super::Place4 {
    with(|k| {
        let span = k.builder.span();
        let (start, end) = (span.start, span.end);
        [start.line, start.column, end.line, end.column]
    })
}

macro_rules! renamed {
    ($($bound:ident { $($name:ident($($arg:ident),*) = $is:ident -> $result:ty;)* })*) => {$(
        impl<T: $bound> Val<T> {$(
            #[doc = concat!("Rust's name of [`", stringify!($is), "`](ops::", stringify!($is), ").")]
            pub fn $name(self $(, $arg: Val<T>)*) -> Val<$result> {
                ops::$is(self $(, $arg)*)
            }
        )*}
    )*};
}
renamed! {
    Floats {
        mul_add(a, b) = fma -> T;
        powf(y) = pow -> T;
        ln() = log -> T;
        round_ties_even() = rint -> T;
        is_nan() = isnan -> T::Mask;
        is_infinite() = isinf -> T::Mask;
        is_finite() = isfinite -> T::Mask;
        is_normal() = isnormal -> T::Mask;
        is_sign_negative() = signbit -> T::Mask;
    }
    Integers {
        saturating_add(b) = add_sat -> T;
        saturating_sub(b) = sub_sat -> T;
    }
}

impl<T: Floats> Val<T> {
    /// The sine and the cosine.
    pub fn sin_cos(self) -> (Val<T>, Val<T>) {
        (ops::sin(self), ops::cos(self))
    }
}

impl<T: Float> Val<T> {
    /// One divided by it.
    pub fn recip(self) -> Val<T> {
        cast::<T>(lit(1.0f32, here())) / self
    }

    /// Its power by an integer, as products of squares: `x.powi(2)` is `x * x`.
    pub fn powi(self, n: Val<i32>) -> Val<T> {
        let place = here();
        let one = || cast::<T>(lit(1.0f32, place));
        if let Some(known) = with(|k| k.known(n.ssa())) {
            let n = known.bits as u32 as i32;
            let (mut left, mut square, mut product) = (n.unsigned_abs(), self, None);
            while left > 0 {
                if left % 2 == 1 {
                    product = Some(product.map_or(square, |product| product * square));
                }
                left /= 2;
                if left > 0 {
                    square *= square;
                }
            }
            return match product {
                Some(product) if n < 0 => one() / product,
                Some(product) => product,
                None => one(),
            };
        }
        let count = as_type::<u32>(ops::abs(n));
        let start = (count, (self, (one(), ())));
        let (_, (_, (product, ()))) =
            loop_(place, &[], start, |(left, (square, (product, ())))| {
                let goes_on = ne((left, lit(0u32, place)));
                while_(goes_on, place, (left, (square, (product, ()))));
                let is_odd = eq((left % lit(2u32, place), lit(1u32, place)));
                let product = ops::select(product, product * square, is_odd);
                (left / lit(2u32, place), (square * square, (product, ())))
            });
        ops::select(product, one() / product, lt((n, lit(0i32, place))))
    }
}

impl<T: Number> Val<T> {
    /// What a division leaves, from 0 up to the divisor's amount; by 0 it is 0 for integers.
    pub fn rem_euclid(self, by: Val<T>) -> Val<T> {
        let rest = self % by;
        let zero = cast::<T>(lit(0u8, here()));
        ops::select(rest, rest + ops::abs(by), lt((rest, zero)))
    }
}

impl<T: Integer> Val<T> {
    /// How many bits are 1.
    pub fn count_ones(self) -> Val<u32> {
        cast::<u32>(ops::popcount(self))
    }

    /// How many bits are 0 before the highest that is 1.
    pub fn leading_zeros(self) -> Val<u32> {
        cast::<u32>(ops::clz(self))
    }

    /// How many bits are 0 behind the lowest that is 1.
    pub fn trailing_zeros(self) -> Val<u32> {
        cast::<u32>(ops::ctz(self))
    }

    /// Its bits moved up in a circle.
    pub fn rotate_left(self, count: Val<u32>) -> Val<T> {
        ops::rotate(self, cast::<T>(count))
    }

    /// Its bits moved down in a circle.
    pub fn rotate_right(self, count: Val<u32>) -> Val<T> {
        let none = cast::<T>(lit(0u8, here()));
        ops::rotate(self, none - cast::<T>(count))
    }
}

impl<T: Integers> Val<T> {
    /// The sum, as `+` gives it (A1).
    pub fn wrapping_add(self, b: Val<T>) -> Val<T> {
        self + b
    }

    /// The difference, as `-` gives it (A1).
    pub fn wrapping_sub(self, b: Val<T>) -> Val<T> {
        self - b
    }

    /// The product, as `*` gives it (A1).
    pub fn wrapping_mul(self, b: Val<T>) -> Val<T> {
        self * b
    }
}

macro_rules! unsigned {
    ($($ty:ident),*) => {$(
        impl Val<$ty> {
            /// The quotient, upwards to the next integer.
            pub fn div_ceil(self, by: Val<$ty>) -> Val<$ty> {
                let more = ne((self % by, lit(0, here())));
                self / by + cast::<$ty>(more)
            }

            /// Whether it is a power of two.
            pub fn is_power_of_two(self) -> Val<bool> {
                eq((ops::popcount(self), lit(1, here())))
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! bits {
    ($($ty:ident as $bits:ident),*) => {$(
        impl Val<$ty> {
            /// Its bits as an integer.
            pub fn to_bits(self) -> Val<$bits> {
                as_type::<$bits>(self)
            }

            /// The float of these bits.
            pub fn from_bits(bits: Val<$bits>) -> Val<$ty> {
                as_type::<$ty>(bits)
            }
        }
    )*};
}
bits!(f16 as u16, bf16 as u16, f32 as u32, f64 as u64);

macro_rules! from {
    ($($from:ident: $($to:ident)*;)*) => {$($(
        impl From<Val<$from>> for Val<$to> {
            fn from(x: Val<$from>) -> Val<$to> {
                cast::<$to>(x)
            }
        }
    )*)*};
}
// What Rust converts without loss.
from! {
    bool: u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
    u8: u16 u32 u64 i16 i32 i64 f16 bf16 f32 f64;
    i8: i16 i32 i64 f16 bf16 f32 f64;
    u16: u32 u64 i32 i64 f32 f64;
    i16: i32 i64 f32 f64;
    u32: u64 i64 f64;
    i32: i64 f64;
    f16: f32 f64;
    bf16: f32 f64;
    f32: f64;
}
