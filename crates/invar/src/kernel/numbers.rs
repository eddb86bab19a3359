//! The methods that Rust's floats have, and those of all numbers, by Rust's names, where the table of operations has
//! others for them: what a person writes first. Each means what it means in Rust, but that nothing overflows and
//! nothing panics.
//!
//! Absent: methods of Rust whose name the table gives to something else, such as `fract`; those of integers alone,
//! which have a module of their own.

use invar_ir::{Const, KernelBuilder, Scalar, ScalarLiteral, Value};
use invar_runtime::{bf16, f16};

use super::compare::{eq, gt, le, lt, ne};
use super::control::{loop_, while_};
use super::data::{Data, Float, Floats, Integers, Number, Numbers, Signed, Val};
use super::define::with;
use super::ops;
use super::value::{cast, lit};
use super::vector::as_type;

/// The bits of a number in a type, rounded to it.
fn bits_of(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F16 => f16::from_f64(value).to_bits().into(),
        Scalar::BF16 => bf16::from_f64(value).to_bits().into(),
        Scalar::F32 => (value as f32).to_bits().into(),
        Scalar::F64 => value.to_bits(),
        integer => value as i64 as u64 & u64::MAX >> (64 - integer.bits()),
    }
}

/// The type of a scalar.
pub(super) fn scalar_of<T: ScalarLiteral>() -> Scalar {
    T::SCALAR
}

/// A number of the type.
pub(super) fn number<T: Number>(value: f64) -> Val<T> {
    let (scalar, bits) = (scalar_of::<T>(), bits_of(scalar_of::<T>(), value));
    Val::of(with(|k| k.builder.constant(Const { scalar, bits })))
}

/// Where the words stand that a method is for.
pub(super) fn here() -> super::define::Place4 {
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

/// What has to be multiplied how often.
#[derive(Clone, Copy)]
pub(super) enum Exponent {
    /// A number of the author's text.
    Known(u32),
    /// One that the kernel computes.
    Value(Val<u32>),
}

impl Exponent {
    pub(super) fn of(count: Val<u32>) -> Exponent {
        let known = with(|k| k.known(count.ssa()));
        known.map_or(Exponent::Value(count), |known| {
            Exponent::Known(known.bits as u32)
        })
    }
}

/// A power as products of squares.
pub(super) fn power_of<T: Number>(
    base: Val<T>,
    exponent: Exponent,
    times: impl Fn(Val<T>, Val<T>) -> Val<T>,
) -> Val<T> {
    let place = here();
    let count = match exponent {
        Exponent::Known(mut left) => {
            let (mut square, mut product) = (base, None);
            while left > 0 {
                if left % 2 == 1 {
                    product = Some(product.map_or(square, |product| times(product, square)));
                }
                left /= 2;
                if left > 0 {
                    square = times(square, square);
                }
            }
            return product.unwrap_or_else(|| number(1.0));
        }
        Exponent::Value(count) => count,
    };
    let start = (count, (base, (number(1.0), ())));
    let (_, (_, (product, ()))) = loop_(place, &[], start, |(left, (square, (product, ())))| {
        let goes_on = ne((left, lit(0u32, place)));
        while_(goes_on, place, (left, (square, (product, ()))));
        let is_odd = eq((left % lit(2u32, place), lit(1u32, place)));
        let product = ops::select(product, times(product, square), is_odd);
        (
            left / lit(2u32, place),
            (times(square, square), (product, ())),
        )
    });
    product
}

/// What `x.pow(y)` takes: of floats a float of the same type, and of integers a `u32`, as in Rust; a vector of floats
/// takes another one, or a float for all.
#[diagnostic::on_unimplemented(
    message = "`pow` of `{Self}` does not take `{B}`",
    note = "it takes a `u32` for an integer, and for floats one of their own type; `powi` takes an `i32`"
)]
pub trait Power<B: Data>: Numbers {
    /// The power.
    #[doc(hidden)]
    fn power(base: Val<Self>, exponent: Val<B>) -> Val<Self>;
}

impl<T: Floats> Power<T> for T {
    fn power(base: Val<T>, exponent: Val<T>) -> Val<T> {
        ops::pow(base, exponent)
    }
}

macro_rules! powers_of_vectors {
    ($($n:literal)*) => {$(
        impl<T: Float> Power<T> for [T; $n] {
            fn power(base: Val<[T; $n]>, exponent: Val<T>) -> Val<[T; $n]> {
                ops::pow(base, exponent)
            }
        }
    )*};
}
powers_of_vectors!(2 3 4);

macro_rules! integer_powers {
    ($($ty:ty),*) => {$(
        impl Power<u32> for $ty {
            fn power(base: Val<$ty>, exponent: Val<u32>) -> Val<$ty> {
                power_of(base, Exponent::of(exponent), |a, b| a * b)
            }
        }
    )*};
}
integer_powers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl<T: Numbers> Val<T> {
    /// Its power: of a float by a float, [`pow`](ops::pow); of an integer by a `u32`, which wraps (A1).
    pub fn pow<B: Data>(self, exponent: Val<B>) -> Val<T>
    where
        T: Power<B>,
    {
        T::power(self, exponent)
    }
}

/// What a formula gives for a float that is computed in `f32` if it has fewer bits.
fn at_least_f32<T: Float, const N: usize>(
    args: [Val<T>; N],
    in_f32: impl FnOnce([Val<f32>; N]) -> Val<f32>,
    in_itself: impl FnOnce([Val<T>; N]) -> Val<T>,
) -> Val<T> {
    if scalar_of::<T>().bits() < 32 {
        return cast::<T>(in_f32(args.map(cast::<f32>)));
    }
    in_itself(args)
}

impl<T: Float> Val<T> {
    /// One divided by it.
    pub fn recip(self) -> Val<T> {
        number::<T>(1.0) / self
    }

    /// Its power by an integer, as products of squares: `x.powi(2)` is `x * x`.
    pub fn powi(self, n: Val<i32>) -> Val<T> {
        if let Some(known) = with(|k| k.known(n.ssa())) {
            let n = known.bits as u32 as i32;
            let product = power_of(self, Exponent::Known(n.unsigned_abs()), |a, b| a * b);
            return if n < 0 { product.recip() } else { product };
        }
        let count = Exponent::Value(as_type::<u32>(ops::abs(n)));
        let product = power_of(self, count, |a, b| a * b);
        ops::select(product, product.recip(), lt((n, number(0.0))))
    }

    /// Its logarithm to a base: what `x.log(base)` becomes.
    #[doc(hidden)]
    pub fn log_of_base(self, base: Val<T>) -> Val<T> {
        ops::log(self) / ops::log(base)
    }

    /// The square root of `x * x + y * y`, where that would overflow too; within 2 ulp.
    pub fn hypot(self, y: Val<T>) -> Val<T> {
        fn of<T: Float>([x, y]: [Val<T>; 2]) -> Val<T> {
            let (x, y) = (ops::abs(x), ops::abs(y));
            let (long, short) = (ops::fmax(x, y), ops::fmin(x, y));
            let ratio = short / long;
            let root = ops::sqrt(ops::fma(ratio, ratio, number(1.0)));
            // Of 0 and 0 there is no ratio.
            let length = ops::select(long * root, long, eq((short, number(0.0))));
            let sum = x + y;
            let length = ops::select(length, sum, ops::isnan(sum));
            ops::select(length, long, ops::isinf(long))
        }
        at_least_f32([self, y], of, of)
    }

    /// The cube root; within 2 ulp.
    pub fn cbrt(self) -> Val<T> {
        fn of<T: Float>([x]: [Val<T>; 1]) -> Val<T> {
            let size = ops::abs(x);
            let near = ops::pow(size, number(1.0 / 3.0));
            // Newton's method: its step is a third of what is left.
            let root = near - (near - size / (near * near)) / number::<T>(3.0);
            let has_root = ops::isfinite(x) & ne((x, number(0.0)));
            ops::select(x, ops::copysign(root, x), has_root)
        }
        at_least_f32([self], of, of)
    }

    /// `exp(x) - 1`, exact near 0 too; within 4 ulp.
    pub fn exp_m1(self) -> Val<T> {
        fn of<T: Float>([x]: [Val<T>; 1]) -> Val<T> {
            let one = || number::<T>(1.0);
            // exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2)
            let t = ops::tanh(x / number::<T>(2.0));
            let near = (t + t) / (one() - t);
            let far = ops::exp(x) - one();
            ops::select(far, near, lt((ops::abs(x), one())))
        }
        at_least_f32([self], of, of)
    }

    /// `log(1 + x)`, exact near 0 too; within 4 ulp.
    pub fn ln_1p(self) -> Val<T> {
        fn of<T: Float>([x]: [Val<T>; 1]) -> Val<T> {
            // log(1 + x) = 2 atanh(x / (2 + x))
            let t = ops::atanh(x / (number::<T>(2.0) + x));
            let far = ops::log(number::<T>(1.0) + x);
            ops::select(far, t + t, lt((ops::abs(x), number(0.5))))
        }
        at_least_f32([self], of, of)
    }

    /// An angle in degrees, of one in radians.
    pub fn to_degrees(self) -> Val<T> {
        let by = 180.0 / std::f64::consts::PI;
        at_least_f32(
            [self],
            |[x]| x * number::<f32>(by),
            |[x]| x * number::<T>(by),
        )
    }

    /// An angle in radians, of one in degrees.
    pub fn to_radians(self) -> Val<T> {
        let by = match scalar_of::<T>() {
            Scalar::F64 => std::f64::consts::PI / 180.0,
            _ => (std::f32::consts::PI / 180.0).into(),
        };
        at_least_f32(
            [self],
            |[x]| x * number::<f32>(by),
            |[x]| x * number::<T>(by),
        )
    }

    /// Whether its sign bit is not set: also of 0 and NaN.
    pub fn is_sign_positive(self) -> Val<bool> {
        !ops::signbit(self)
    }

    /// Whether it is nearer to 0 than the smallest normal number, and not 0.
    pub fn is_subnormal(self) -> Val<bool> {
        let is_normal = ops::isnormal(self);
        ops::isfinite(self) & !is_normal & ne((self, number(0.0)))
    }
}

impl<T: Signed> Val<T> {
    /// 1 or -1 with its sign; of an integer 0 for 0, of a float 1 for 0, -1 for -0, and NaN for NaN.
    pub fn signum(self) -> Val<T> {
        if scalar_of::<T>().is_integer() {
            return ops::sign(self);
        }
        let one = number::<T>(1.0);
        let sign = with(|k| k.builder.copysign(one.ssa(), self.ssa()));
        ops::select(Val::of(sign), self, ne((self, self)))
    }
}

impl<T: Number> Val<T> {
    /// What a division leaves, from 0 up to the divisor's amount; by 0 it is 0 for integers.
    pub fn rem_euclid(self, by: Val<T>) -> Val<T> {
        let rest = self % by;
        ops::select(rest, rest + ops::abs(by), lt((rest, number(0.0))))
    }

    /// How often a number goes into it, so that `rem_euclid` is what is left; by 0 it is 0 for integers.
    pub fn div_euclid(self, by: Val<T>) -> Val<T> {
        let (whole, rest) = (self / by, self % by);
        if scalar_of::<T>().is_unsigned_integer() {
            return whole;
        }
        let whole = match scalar_of::<T>().is_float() {
            true => Val::of(with(|k| k.builder.trunc(whole.ssa()))),
            false => whole,
        };
        let (zero, one) = (number::<T>(0.0), number::<T>(1.0));
        let next = ops::select(whole + one, whole - one, gt((by, zero)));
        ops::select(whole, next, lt((rest, zero)))
    }

    /// What is midway to another number; of integers it is rounded toward 0.
    pub fn midpoint(self, other: Val<T>) -> Val<T> {
        let (zero, one) = (number::<T>(0.0), number::<T>(1.0));
        if scalar_of::<T>().is_float() {
            let two = number::<T>(2.0);
            let (near, far) = ((self + other) / two, self / two + other / two);
            let half = match scalar_of::<T>() {
                Scalar::F16 => f16::MAX.to_f64(),
                Scalar::BF16 => bf16::MAX.to_f64(),
                Scalar::F32 => f32::MAX.into(),
                _ => f64::MAX,
            } / 2.0;
            let fits = |x| le((ops::abs(x), number::<T>(half)));
            return ops::select(far, near, fits(self) & fits(other));
        }
        // What both have, and half of what one of them has: rounded down.
        let bits = |op: fn(&mut KernelBuilder, Value, Value) -> Value, a: Val<T>, b: Val<T>| {
            Val::<T>::of(with(|k| op(&mut k.builder, a.ssa(), b.ssa())))
        };
        let (both, differ) = (
            bits(KernelBuilder::and, self, other),
            bits(KernelBuilder::xor, self, other),
        );
        let down = both + bits(KernelBuilder::shr, differ, one);
        let is_half = ne((bits(KernelBuilder::and, differ, one), zero));
        ops::select(down, down + one, lt((down, zero)) & is_half)
    }
}

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

            /// The next larger float; of infinity and NaN itself.
            pub fn next_up(self) -> Val<$ty> {
                self.neighbour(false)
            }

            /// The next smaller float; of negative infinity and NaN itself.
            pub fn next_down(self) -> Val<$ty> {
                self.neighbour(true)
            }

            fn neighbour(self, below: bool) -> Val<$ty> {
                let place = here();
                let sign = <$ty>::to_bits(-<$ty>::default());
                let end = if below { <$ty>::NEG_INFINITY } else { <$ty>::INFINITY };
                let (bits, one) = (self.to_bits(), lit(1 as $bits, place));
                let is_negative = ne((bits & lit(sign, place), lit(0, place)));
                // Away from 0 bits count up, and toward it down.
                let (up, down) = (bits + one, bits - one);
                let next = match below {
                    false => ops::select(up, down, is_negative),
                    true => ops::select(down, up, is_negative),
                };
                let first = lit(if below { sign + 1 } else { 1 }, place);
                let next = ops::select(next, first, eq((self, number(0.0))));
                let stays = ops::isnan(self) | eq((bits, lit(<$ty>::to_bits(end), place)));
                as_type::<$ty>(ops::select(next, bits, stays))
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
