//! Exact numbers, and floats as their definition has them: bits to a number, a number to the nearest
//! bits. Nothing here is shared with what it tests.

use invar_ir::Scalar;
use invar_ir::random::split_mix_64;
use num_bigint::BigUint;

/// A number: `mantissa * 2^exponent`, or a little more in magnitude if it is not exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exact {
    /// None.
    Nan,
    /// Of either sign.
    Infinite { negative: bool },
    /// Zeros have a sign.
    Finite {
        negative: bool,
        mantissa: BigUint,
        exponent: i64,
        /// A sticky bit, from divisions and roots, far below any last bit that matters.
        inexact: bool,
    },
}

/// A float format.
#[derive(Clone, Copy)]
pub struct Format {
    bits: u32,
    fraction_bits: u32,
}

impl Format {
    pub fn of(scalar: Scalar) -> Format {
        let fraction_bits = match scalar {
            Scalar::F16 => 10,
            Scalar::BF16 => 7,
            Scalar::F32 => 23,
            Scalar::F64 => 52,
            other => panic!("{other} is not a float"),
        };
        Format {
            bits: scalar.bits(),
            fraction_bits,
        }
    }

    pub fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    pub fn infinity(self) -> u64 {
        (self.sign() - 1) >> self.fraction_bits << self.fraction_bits
    }

    pub fn is_f64(self) -> bool {
        self.bits == 64
    }

    pub fn fraction_bits(self) -> u32 {
        self.fraction_bits
    }

    /// How many digits a number has.
    pub fn digits(self) -> i64 {
        i64::from(self.fraction_bits) + 1
    }

    /// Whether products and quotients of numbers with such exponents neither overflow nor underflow,
    /// nor do what rounding loses of them.
    pub fn holds(self, exponents: &std::ops::Range<i64>) -> bool {
        2 * exponents.end.max(-exponents.start) + 2 * self.digits() < -self.lowest() - self.digits()
    }

    /// The exponent of the smallest subnormal, and the one after that of the largest number.
    pub fn exponents(self) -> (i64, i64) {
        let exponent_bits = self.bits - 1 - self.fraction_bits;
        (self.lowest(), 1 << (exponent_bits - 1))
    }

    /// The number, or the largest one of its sign where it is none.
    pub fn finite(self, bits: u64) -> u64 {
        let magnitude = (bits & !self.sign()).min(self.infinity() - 1);
        bits & self.sign() | magnitude
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// The exponent of the last bit of subnormals.
    fn lowest(self) -> i64 {
        let exponent_bits = self.bits - 1 - self.fraction_bits;
        2 - (1 << (exponent_bits - 1)) - i64::from(self.fraction_bits)
    }

    pub fn decode(self, bits: u64) -> Exact {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & (self.sign() - 1);
        if magnitude > self.infinity() {
            return Exact::Nan;
        }
        if magnitude == self.infinity() {
            return Exact::Infinite { negative };
        }
        let field = magnitude >> self.fraction_bits;
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let implicit = if field > 0 {
            1 << self.fraction_bits
        } else {
            0
        };
        Exact::Finite {
            negative,
            mantissa: BigUint::from(fraction | implicit),
            exponent: self.lowest() + field.max(1) as i64 - 1,
            inexact: false,
        }
    }

    /// The exponent of the last bit that a value of this magnitude has in this format.
    fn last_bit(self, mantissa: &BigUint, exponent: i64) -> i64 {
        if mantissa.bits() == 0 {
            return self.lowest();
        }
        let highest = mantissa.bits() as i64 - 1 + exponent;
        (highest - i64::from(self.fraction_bits)).max(self.lowest())
    }

    /// To the nearest, ties to even. NaN becomes some NaN.
    pub fn encode(self, x: &Exact) -> u64 {
        let sign = |negative: bool| if negative { self.sign() } else { 0 };
        match x {
            Exact::Nan => self.infinity() | 1,
            Exact::Infinite { negative } => sign(*negative) | self.infinity(),
            Exact::Finite {
                negative,
                mantissa,
                exponent,
                inexact,
            } => {
                let last = self.last_bit(mantissa, *exponent);
                let shift = last - exponent;
                let whole = if shift > 0 {
                    let floor = mantissa >> shift;
                    let rest = mantissa - (&floor << shift);
                    let half = BigUint::from(1u32) << (shift - 1);
                    let odd = floor.bit(0);
                    let up = rest > half || (rest == half && (*inexact || odd));
                    floor + u32::from(up)
                } else {
                    assert!(!inexact || mantissa.bits() == 0, "too few bits");
                    mantissa << -shift
                };
                let digits = u64::try_from(&whole).expect("a mantissa of at most 54 bits");
                let field = ((last - self.lowest()) as u128) << self.fraction_bits;
                let magnitude = (field + u128::from(digits)).min(self.infinity().into());
                sign(*negative) | magnitude as u64
            }
        }
    }

    /// How far `bits` are from the exact value, in units of the last place of `scale` (the exact
    /// value itself, or what its terms add up to).
    pub fn error_ulp(self, bits: u64, exact: &Exact, scale: &Exact) -> f64 {
        let unit = match scale {
            Exact::Finite {
                mantissa, exponent, ..
            } => self.last_bit(mantissa, *exponent),
            Exact::Nan | Exact::Infinite { .. } => panic!("no scale"),
        };
        if matches!(exact, Exact::Infinite { .. }) && self.encode(exact) == bits {
            return 0.0;
        }
        let mut found = self.decode(bits);
        if matches!(found, Exact::Infinite { .. }) {
            // It comes after the largest number, and stands for all from there on.
            let power = Exact::integer(1).times_power_of_two(self.exponents().1);
            if !exact.abs().less(&power) && self.encode(exact) == bits {
                return 0.0;
            }
            found = power.with_sign(bits & self.sign() != 0);
        }
        match found.sub(exact) {
            Exact::Finite {
                mantissa, exponent, ..
            } => to_f64(&mantissa, exponent - unit),
            Exact::Nan | Exact::Infinite { .. } => f64::INFINITY,
        }
    }
}

fn to_f64(mantissa: &BigUint, power: i64) -> f64 {
    let extra = mantissa.bits().saturating_sub(64);
    let top = u64::try_from(mantissa >> extra).expect("64 bits");
    top as f64 * 2f64.powi((extra as i64 + power).clamp(-1000, 900) as i32)
}

impl Exact {
    pub fn integer(x: i128) -> Exact {
        Exact::Finite {
            negative: x < 0,
            mantissa: BigUint::from(x.unsigned_abs()),
            exponent: 0,
            inexact: false,
        }
    }

    pub fn zero(negative: bool) -> Exact {
        Exact::Finite {
            negative,
            mantissa: BigUint::from(0u32),
            exponent: 0,
            inexact: false,
        }
    }

    /// The product with 2^power.
    pub fn times_power_of_two(&self, power: i64) -> Exact {
        let mut x = self.clone();
        if let Exact::Finite { exponent, .. } = &mut x {
            *exponent += power;
        }
        x
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Exact::Finite { mantissa, .. } if mantissa.bits() == 0)
    }

    pub fn is_negative(&self) -> bool {
        match self {
            Exact::Nan => false,
            Exact::Infinite { negative } | Exact::Finite { negative, .. } => *negative,
        }
    }

    pub fn with_sign(&self, sign: bool) -> Exact {
        let mut x = self.clone();
        match &mut x {
            Exact::Nan => {}
            Exact::Infinite { negative } | Exact::Finite { negative, .. } => *negative = sign,
        }
        x
    }

    pub fn neg(&self) -> Exact {
        self.with_sign(!self.is_negative())
    }

    pub fn abs(&self) -> Exact {
        self.with_sign(false)
    }

    pub fn add(&self, other: &Exact) -> Exact {
        match (self, other) {
            (Exact::Nan, _) | (_, Exact::Nan) => Exact::Nan,
            (Exact::Infinite { negative: a }, Exact::Infinite { negative: b }) if a != b => {
                Exact::Nan
            }
            (Exact::Infinite { .. }, _) => self.clone(),
            (_, Exact::Infinite { .. }) => other.clone(),
            (
                Exact::Finite {
                    negative: a,
                    mantissa: m,
                    exponent: e,
                    inexact: i,
                },
                Exact::Finite {
                    negative: b,
                    mantissa: n,
                    exponent: f,
                    inexact: j,
                },
            ) => {
                let exponent = *e.min(f);
                let (m, n) = (m << (e - exponent), n << (f - exponent));
                let (negative, mantissa) = if a == b {
                    (*a, m + n)
                } else if m == n {
                    // A sum that cancels is +0 when rounding to nearest.
                    (false, BigUint::from(0u32))
                } else if m > n {
                    (*a, m - n)
                } else {
                    (*b, n - m)
                };
                Exact::Finite {
                    negative,
                    mantissa,
                    exponent,
                    inexact: *i || *j,
                }
            }
        }
    }

    pub fn sub(&self, other: &Exact) -> Exact {
        self.add(&other.neg())
    }

    pub fn mul(&self, other: &Exact) -> Exact {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Exact::Nan, _) | (_, Exact::Nan) => Exact::Nan,
            (Exact::Infinite { .. }, x) | (x, Exact::Infinite { .. }) => {
                if x.is_zero() {
                    Exact::Nan
                } else {
                    Exact::Infinite { negative }
                }
            }
            (
                Exact::Finite {
                    mantissa: m,
                    exponent: e,
                    inexact: i,
                    ..
                },
                Exact::Finite {
                    mantissa: n,
                    exponent: f,
                    inexact: j,
                    ..
                },
            ) => Exact::Finite {
                negative,
                mantissa: m * n,
                exponent: e + f,
                inexact: *i || *j,
            },
        }
    }

    /// To at least 150 bits, and a sticky bit.
    pub fn div(&self, other: &Exact) -> Exact {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Exact::Nan, _) | (_, Exact::Nan) => Exact::Nan,
            (Exact::Infinite { .. }, Exact::Infinite { .. }) => Exact::Nan,
            (x, y) if x.is_zero() && y.is_zero() => Exact::Nan,
            (Exact::Infinite { .. }, _) => Exact::Infinite { negative },
            (_, y) if y.is_zero() => Exact::Infinite { negative },
            (_, Exact::Infinite { .. }) => Exact::zero(negative),
            (
                Exact::Finite {
                    mantissa: m,
                    exponent: e,
                    inexact: i,
                    ..
                },
                Exact::Finite {
                    mantissa: n,
                    exponent: f,
                    inexact: j,
                    ..
                },
            ) => {
                let shift = n.bits() + 150;
                let m = m << shift;
                let quotient = &m / n;
                Exact::Finite {
                    negative,
                    inexact: *i || *j || &quotient * n != m,
                    mantissa: quotient,
                    exponent: e - f - shift as i64,
                }
            }
        }
    }

    /// To at least 150 bits, and a sticky bit.
    pub fn sqrt(&self) -> Exact {
        match self {
            Exact::Nan => Exact::Nan,
            x if x.is_zero() => x.clone(),
            x if x.is_negative() => Exact::Nan,
            Exact::Infinite { .. } => self.clone(),
            Exact::Finite {
                mantissa,
                exponent,
                inexact,
                ..
            } => {
                let shift = 300 + (exponent & 1);
                let m = mantissa << shift;
                let root = m.sqrt();
                Exact::Finite {
                    negative: false,
                    inexact: *inexact || &root * &root != m,
                    mantissa: root,
                    exponent: (exponent - shift) / 2,
                }
            }
        }
    }

    /// The integer toward zero, and how much of the magnitude is left: nothing, less than a half, a
    /// half, or more.
    pub fn split(&self) -> Option<(bool, BigUint, std::cmp::Ordering, bool)> {
        let Exact::Finite {
            negative,
            mantissa,
            exponent,
            ..
        } = self
        else {
            return None;
        };
        if *exponent >= 0 {
            let whole = mantissa << *exponent;
            return Some((*negative, whole, std::cmp::Ordering::Less, true));
        }
        let whole = mantissa >> -exponent;
        let rest = mantissa - (&whole << -exponent);
        let half = BigUint::from(1u32) << (-exponent - 1);
        let nothing = rest.bits() == 0;
        Some((*negative, whole, rest.cmp(&half), nothing))
    }

    /// `whole` with the sign.
    pub fn whole(negative: bool, whole: BigUint) -> Exact {
        Exact::Finite {
            negative,
            mantissa: whole,
            exponent: 0,
            inexact: false,
        }
    }

    /// Less, as numbers; false if one is none.
    pub fn less(&self, other: &Exact) -> bool {
        match (self, other) {
            (Exact::Nan, _) | (_, Exact::Nan) => false,
            (Exact::Infinite { negative }, Exact::Infinite { negative: other }) => {
                *negative && !other
            }
            (Exact::Infinite { negative }, _) => *negative,
            (_, Exact::Infinite { negative }) => !negative,
            _ => {
                let difference = self.sub(other);
                difference.is_negative() && !difference.is_zero()
            }
        }
    }
}

/// Random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Patterns of a scalar type where things happen, and random ones.
pub fn points(scalar: Scalar, random: &mut Random, count: usize) -> Vec<u64> {
    if scalar == Scalar::Bool {
        return vec![0, 1];
    }
    let mask = u64::MAX >> (64 - scalar.bits());
    let mut points = Vec::new();
    if scalar.is_float() {
        let format = Format::of(scalar);
        let normal = 1 << format.fraction_bits;
        let one = format.encode(&Exact::integer(1));
        for k in [
            0,
            1,
            2,
            normal - 1,
            normal,
            normal + 1,
            one - 1,
            one,
            one + 1,
        ] {
            points.push(k);
        }
        for k in [2, 3, 5, 7, 100] {
            points.push(format.encode(&Exact::integer(k)));
        }
        points.extend([
            format.infinity() - 1,
            format.infinity(),
            format.infinity() + 1,
        ]);
        points.extend(points.clone().iter().map(|p| p | format.sign()));
    } else {
        let high = 1 << (scalar.bits() - 1);
        for k in [0_u64, 1, 2, 3, 5, 7, 8, 9] {
            points.extend([k, k.wrapping_neg() & mask, high + k, (high - k) & mask]);
        }
    }
    while points.len() < count {
        // Short numbers as often as long ones.
        let shift = random.below(scalar.bits().into());
        let bits = random.next() & mask;
        let short = if scalar.is_float() {
            bits
        } else {
            bits >> shift
        };
        points.push(short & mask);
    }
    points
}
