//! The methods that Rust's integers have, by Rust's names, where the table of operations has others for them. Each
//! means what it means in Rust, but that nothing overflows and nothing panics: what would wraps (A1), and where Rust
//! has no answer, such as the logarithm of 0, it is 0.
//!
//! Absent: `checked_*`, since nothing has to be checked, and what is made of bytes.

use invar_ir::Const;

use super::compare::{eq, ge, gt, le, lt, ne};
use super::control::{loop_, while_};
use super::data::{Integer, Integers, Val};
use super::define::with;
use super::numbers::{Exponent, here, number, power_of, scalar_of};
use super::ops;
use super::value::{cast, zero_of};

/// The largest number of a type.
fn most<T: Integer>() -> Val<T> {
    let scalar = scalar_of::<T>();
    let bits = most_bits::<T>();
    Val::of(with(|k| k.builder.constant(Const { scalar, bits })))
}

fn most_bits<T: Integer>() -> u64 {
    u64::MAX >> (64 - scalar_of::<T>().bits() + u32::from(is_signed::<T>()))
}

/// The smallest number of a type.
fn least<T: Integer>() -> Val<T> {
    let scalar = scalar_of::<T>();
    let bits = u64::from(scalar.is_signed_integer()) << (scalar.bits() - 1);
    Val::of(with(|k| k.builder.constant(Const { scalar, bits })))
}

fn is_signed<T: Integer>() -> bool {
    scalar_of::<T>().is_signed_integer()
}

fn bit_count<T: Integer>() -> Val<u32> {
    number(scalar_of::<T>().bits().into())
}

fn zero<T: Integer>() -> Val<T> {
    number(0.0)
}

fn one<T: Integer>() -> Val<T> {
    number(1.0)
}

/// Whether a product does not fit, and what it wraps to.
fn product<T: Integer>(a: Val<T>, b: Val<T>) -> (Val<T>, Val<bool>) {
    let (low, high) = (a * b, ops::mul_hi(a, b));
    let fitting = match is_signed::<T>() {
        true => low >> number::<T>(f64::from(scalar_of::<T>().bits() - 1)),
        false => zero(),
    };
    (low, ne((high, fitting)))
}

impl<T: Integer> Val<T> {
    /// How many bits are 1.
    pub fn count_ones(self) -> Val<u32> {
        cast::<u32>(ops::popcount(self))
    }

    /// How many bits are 0.
    pub fn count_zeros(self) -> Val<u32> {
        (!self).count_ones()
    }

    /// How many bits are 0 before the highest that is 1.
    pub fn leading_zeros(self) -> Val<u32> {
        cast::<u32>(ops::clz(self))
    }

    /// How many bits are 1 before the highest that is 0.
    pub fn leading_ones(self) -> Val<u32> {
        (!self).leading_zeros()
    }

    /// How many bits are 0 behind the lowest that is 1.
    pub fn trailing_zeros(self) -> Val<u32> {
        cast::<u32>(ops::ctz(self))
    }

    /// How many bits are 1 behind the lowest that is 0.
    pub fn trailing_ones(self) -> Val<u32> {
        (!self).trailing_zeros()
    }

    /// Its bits moved up in a circle.
    pub fn rotate_left(self, count: Val<u32>) -> Val<T> {
        ops::rotate(self, cast::<T>(count))
    }

    /// Its bits moved down in a circle.
    pub fn rotate_right(self, count: Val<u32>) -> Val<T> {
        ops::rotate(self, zero::<T>() - cast::<T>(count))
    }

    /// Its bytes in the opposite order.
    pub fn swap_bytes(self) -> Val<T> {
        let bits = scalar_of::<T>().bits();
        if bits == 8 {
            return self;
        }
        let byte = |from: u32| {
            let by = number::<T>(f64::from(bits - 8 - from));
            ((self >> number::<T>(from.into())) & number(255.0)) << by
        };
        let all = (8..bits).step_by(8).map(byte);
        all.fold(byte(0), |all, byte| all | byte)
    }

    /// As bytes from the highest to the lowest, as a number: devices have the lowest first.
    pub fn to_be(self) -> Val<T> {
        self.swap_bytes()
    }

    /// The number of bytes from the highest to the lowest.
    pub fn from_be(x: Val<T>) -> Val<T> {
        x.swap_bytes()
    }

    /// As bytes from the lowest to the highest, as a number: itself.
    pub fn to_le(self) -> Val<T> {
        self
    }

    /// The number of bytes from the lowest to the highest: itself.
    pub fn from_le(x: Val<T>) -> Val<T> {
        x
    }

    /// The product, or the largest or smallest number where it does not fit.
    pub fn saturating_mul(self, b: Val<T>) -> Val<T> {
        let (low, is_over) = product(self, b);
        let end = match is_signed::<T>() {
            true => ops::select(most::<T>(), least(), lt((self ^ b, zero()))),
            false => most(),
        };
        ops::select(low, end, is_over)
    }

    /// The quotient, but the largest number where it does not fit.
    pub fn saturating_div(self, by: Val<T>) -> Val<T> {
        if !is_signed::<T>() {
            return self / by;
        }
        let is_over = eq((self, least())) & eq((by, zero::<T>() - one::<T>()));
        ops::select(self / by, most(), is_over)
    }

    /// The power, or the largest or smallest number where it does not fit.
    pub fn saturating_pow(self, exponent: Val<u32>) -> Val<T> {
        power_of(self, Exponent::of(exponent), Val::saturating_mul)
    }

    /// The power, which wraps (A1).
    pub fn wrapping_pow(self, exponent: Val<u32>) -> Val<T> {
        power_of(self, Exponent::of(exponent), |a, b| a * b)
    }

    /// Its bits moved up; the count is taken modulo the width (A3).
    pub fn wrapping_shl(self, count: Val<u32>) -> Val<T> {
        self << cast::<T>(count)
    }

    /// Its bits moved down; the count is taken modulo the width (A3).
    pub fn wrapping_shr(self, count: Val<u32>) -> Val<T> {
        self >> cast::<T>(count)
    }

    /// Its bits moved up, all of them out where the count is the width or more.
    pub fn unbounded_shl(self, count: Val<u32>) -> Val<T> {
        ops::select(
            zero(),
            self.wrapping_shl(count),
            lt((count, bit_count::<T>())),
        )
    }

    /// Its bits moved down, all of them out where the count is the width or more.
    pub fn unbounded_shr(self, count: Val<u32>) -> Val<T> {
        let last = bit_count::<T>() - one::<u32>();
        let out = match is_signed::<T>() {
            true => self.wrapping_shr(last),
            false => zero(),
        };
        ops::select(out, self.wrapping_shr(count), lt((count, bit_count::<T>())))
    }

    /// The quotient as `div_euclid` gives it, which wraps (A1).
    pub fn wrapping_div_euclid(self, by: Val<T>) -> Val<T> {
        self.div_euclid(by)
    }

    /// The rest as `rem_euclid` gives it.
    pub fn wrapping_rem_euclid(self, by: Val<T>) -> Val<T> {
        self.rem_euclid(by)
    }

    /// The sum, which wraps (A1), and whether it did.
    pub fn overflowing_add(self, b: Val<T>) -> (Val<T>, Val<bool>) {
        let sum = self + b;
        let is_over = match is_signed::<T>() {
            true => lt(((self ^ sum) & (b ^ sum), zero())),
            false => lt((sum, self)),
        };
        (sum, is_over)
    }

    /// The difference, which wraps (A1), and whether it did.
    pub fn overflowing_sub(self, b: Val<T>) -> (Val<T>, Val<bool>) {
        let difference = self - b;
        let is_over = match is_signed::<T>() {
            true => lt(((self ^ b) & (self ^ difference), zero())),
            false => lt((self, b)),
        };
        (difference, is_over)
    }

    /// The product, which wraps (A1), and whether it did.
    pub fn overflowing_mul(self, b: Val<T>) -> (Val<T>, Val<bool>) {
        product(self, b)
    }

    /// The whole part of the square root; 0 of a negative number.
    pub fn isqrt(self) -> Val<T> {
        let place = here();
        let first = f64::exp2((scalar_of::<T>().bits() - 2).into());
        let start = (
            ops::max(self, zero()),
            (zero::<T>(), (number::<T>(first), ())),
        );
        let (_, (root, _)) = loop_(place, &[], start, |(rest, (root, (bit, ())))| {
            while_(ne((bit, zero())), place, (rest, (root, (bit, ()))));
            let next = root + bit;
            let fits = ge((rest, next));
            let rest = ops::select(rest, rest - next, fits);
            let half = root >> one::<T>();
            let root = ops::select(half, half + bit, fits);
            (rest, (root, (bit >> number::<T>(2.0), ())))
        });
        root
    }

    /// The whole part of the logarithm to base 2; 0 of what has none.
    pub fn ilog2(self) -> Val<u32> {
        let log = bit_count::<T>() - one::<u32>() - self.leading_zeros();
        ops::select(zero(), log, gt((self, zero())))
    }

    /// The whole part of the logarithm to base 10; 0 of what has none.
    pub fn ilog10(self) -> Val<u32> {
        let powers = (1..).map_while(|n| 10u64.checked_pow(n));
        let powers = powers.take_while(|power| *power <= most_bits::<T>());
        powers.fold(zero(), |count, bits| {
            let scalar = scalar_of::<T>();
            let power = Val::of(with(|k| k.builder.constant(Const { scalar, bits })));
            count + cast::<u32>(ge((self, power)))
        })
    }

    /// The whole part of the logarithm to a base; 0 of what has none.
    pub fn ilog(self, base: Val<T>) -> Val<u32> {
        let place = here();
        let is_base = gt((base, one()));
        let start = (self, (zero::<u32>(), ()));
        let (_, (count, ())) = loop_(place, &[], start, |(rest, (count, ()))| {
            while_(is_base & ge((rest, base)), place, (rest, (count, ())));
            (rest / base, (count + one::<u32>(), ()))
        });
        count
    }
}

macro_rules! as_operators {
    ($($(#[$doc:meta])* $name:ident($($b:ident)?) = |$x:ident| $value:expr;)*) => {
        impl<T: Integers> Val<T> {$(
            $(#[$doc])*
            pub fn $name(self $(, $b: Val<T>)?) -> Val<T> {
                let $x = self;
                $value
            }
        )*}
    };
}
as_operators! {
    /// The sum, as `+` gives it (A1).
    wrapping_add(b) = |x| x + b;
    /// The difference, as `-` gives it (A1).
    wrapping_sub(b) = |x| x - b;
    /// The product, as `*` gives it (A1).
    wrapping_mul(b) = |x| x * b;
    /// The quotient, as `/` gives it (A2).
    wrapping_div(b) = |x| x / b;
    /// The rest, as `%` gives it (A2).
    wrapping_rem(b) = |x| x % b;
    /// Its negative (A1).
    wrapping_neg() = |x| Val::of(with(|k| {
        let zero = zero_of(k, T::ty());
        k.builder.sub(zero, x.ssa())
    }));
}

macro_rules! unsigned {
    ($($ty:ident and $signed:ident),*) => {$(
        impl Val<$ty> {
            /// The quotient, upwards to the next integer.
            pub fn div_ceil(self, by: Val<$ty>) -> Val<$ty> {
                let more = ne((self % by, zero()));
                self / by + cast::<$ty>(more)
            }

            /// Whether it is a power of two.
            pub fn is_power_of_two(self) -> Val<bool> {
                eq((ops::popcount(self), one()))
            }

            /// The smallest power of two that is not less; 0 where it does not fit.
            pub fn next_power_of_two(self) -> Val<$ty> {
                let all = most::<$ty>().wrapping_shr((self - one::<$ty>()).leading_zeros());
                let below = ops::select(all, zero(), le((self, one())));
                below + one::<$ty>()
            }

            /// The smallest multiple of a number that is not less; of 0 it is 0.
            pub fn next_multiple_of(self, of: Val<$ty>) -> Val<$ty> {
                let rest = self % of;
                let next = ops::select(self + (of - rest), self, eq((rest, zero())));
                ops::select(next, zero(), eq((of, zero())))
            }

            /// Whether it is a multiple of a number; of 0 only 0 is.
            pub fn is_multiple_of(self, of: Val<$ty>) -> Val<bool> {
                let rest = ops::select(self % of, self, eq((of, zero())));
                eq((rest, zero()))
            }

            /// Its bits as a signed integer.
            pub fn cast_signed(self) -> Val<$signed> {
                cast::<$signed>(self)
            }

            /// The sum with a signed number, which wraps (A1).
            pub fn wrapping_add_signed(self, b: Val<$signed>) -> Val<$ty> {
                self + cast::<$ty>(b)
            }

            /// The difference to a signed number, which wraps (A1).
            pub fn wrapping_sub_signed(self, b: Val<$signed>) -> Val<$ty> {
                self - cast::<$ty>(b)
            }

            /// The sum with a signed number, or 0 or the largest number where it does not fit.
            pub fn saturating_add_signed(self, b: Val<$signed>) -> Val<$ty> {
                let size = cast::<$ty>(ops::abs(b));
                let (sum, difference) = (ops::add_sat(self, size), ops::sub_sat(self, size));
                ops::select(sum, difference, lt((b, zero())))
            }

            /// The difference to a signed number, or 0 or the largest number where it does not fit.
            pub fn saturating_sub_signed(self, b: Val<$signed>) -> Val<$ty> {
                let size = cast::<$ty>(ops::abs(b));
                let (sum, difference) = (ops::add_sat(self, size), ops::sub_sat(self, size));
                ops::select(difference, sum, lt((b, zero())))
            }

            /// The sum with one more where something was carried, and whether something is carried on.
            pub fn carrying_add(self, b: Val<$ty>, carry: Val<bool>) -> (Val<$ty>, Val<bool>) {
                let (sum, first) = self.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(cast::<$ty>(carry));
                (sum, first | second)
            }

            /// The difference with one less where something was borrowed, and whether something is borrowed on.
            pub fn borrowing_sub(self, b: Val<$ty>, borrow: Val<bool>) -> (Val<$ty>, Val<bool>) {
                let (difference, first) = self.overflowing_sub(b);
                let (difference, second) = difference.overflowing_sub(cast::<$ty>(borrow));
                (difference, first | second)
            }

            /// The product with what was carried, and what is carried on.
            pub fn carrying_mul(self, b: Val<$ty>, carry: Val<$ty>) -> (Val<$ty>, Val<$ty>) {
                let (low, is_over) = (self * b).overflowing_add(carry);
                (low, ops::mul_hi(self, b) + cast::<$ty>(is_over))
            }
        }

        impl Val<$signed> {
            /// Its distance from 0.
            pub fn unsigned_abs(self) -> Val<$ty> {
                cast::<$ty>(ops::abs(self))
            }

            /// Its bits as an unsigned integer.
            pub fn cast_unsigned(self) -> Val<$ty> {
                cast::<$ty>(self)
            }

            /// Whether it is more than 0.
            pub fn is_positive(self) -> Val<bool> {
                gt((self, zero()))
            }

            /// Whether it is less than 0.
            pub fn is_negative(self) -> Val<bool> {
                lt((self, zero()))
            }

            /// Its distance from 0, which wraps (A1).
            pub fn wrapping_abs(self) -> Val<$signed> {
                ops::abs(self)
            }

            /// Its distance from 0, or the largest number where that does not fit.
            pub fn saturating_abs(self) -> Val<$signed> {
                ops::max(self, self.saturating_neg())
            }

            /// Its negative, or the largest number where that does not fit.
            pub fn saturating_neg(self) -> Val<$signed> {
                ops::sub_sat(zero(), self)
            }

            /// The sum with an unsigned number, which wraps (A1).
            pub fn wrapping_add_unsigned(self, b: Val<$ty>) -> Val<$signed> {
                self + cast::<$signed>(b)
            }

            /// The difference to an unsigned number, which wraps (A1).
            pub fn wrapping_sub_unsigned(self, b: Val<$ty>) -> Val<$signed> {
                self - cast::<$signed>(b)
            }

            /// The sum with an unsigned number, or the largest number where it does not fit.
            pub fn saturating_add_unsigned(self, b: Val<$ty>) -> Val<$signed> {
                let sum = self.wrapping_add_unsigned(b);
                ops::select(sum, most(), lt((sum, self)))
            }

            /// The difference to an unsigned number, or the smallest number where it does not fit.
            pub fn saturating_sub_unsigned(self, b: Val<$ty>) -> Val<$signed> {
                let difference = self.wrapping_sub_unsigned(b);
                ops::select(difference, least(), gt((difference, self)))
            }
        }
    )*};
}
unsigned!(u8 and i8, u16 and i16, u32 and i32, u64 and i64);
