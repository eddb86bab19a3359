//! Numbers with an exponent of their own, which neither overflow nor underflow: for formulas whose
//! intermediate results do where the final one does not.
//!
//! A [`Wide`] is a [`Double`] times a power of two, an integer beside it, for sums and products of a few
//! entries. Of what a sum adds, a part smaller than the other by more than [`span`] binades counts as
//! smaller by so many: that is still less than what the digits of a `Double` are good for.
//!
//! Invariant: an exponent is at least, but for a few binades, that of every product of entries that went
//! into the number. A sum that cancels keeps it, so that what is lost beside it is little of those.

use super::double::Double;
use super::shared::power_of_two;
use super::term::{Bool, Float, Int, Term, Terms};

/// Formulas over sums and products of entries, for [`Double`] and [`Wide`] alike.
pub(super) trait Sums: Copy {
    /// What it is made of.
    type Entry: Copy;

    /// `a * b`.
    fn product(a: Self::Entry, b: Self::Entry) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self * x`.
    fn times(self, x: Self::Entry) -> Self;
    /// `self * other`.
    fn times_double(self, other: Self) -> Self;
}

impl<'t> Sums for Double<'t> {
    type Entry = Float<'t>;

    fn product(a: Float<'t>, b: Float<'t>) -> Self {
        Double::product(a, b)
    }

    fn plus(self, other: Self) -> Self {
        Double::plus(self, other)
    }

    fn minus(self, other: Self) -> Self {
        Double::minus(self, other)
    }

    fn times(self, x: Float<'t>) -> Self {
        Double::times(self, x)
    }

    fn times_double(self, other: Self) -> Self {
        Double::times_double(self, other)
    }
}

/// An entry: `mantissa * 2^exponent`, the mantissa's magnitude at least 1 and less than 2, or 0 with an
/// exponent below that of any product.
#[derive(Clone, Copy)]
pub(super) struct Split<'t> {
    mantissa: Float<'t>,
    exponent: Int<'t>,
}

impl<'t> Split<'t> {
    /// A finite number.
    pub(super) fn of(x: Float<'t>) -> Split<'t> {
        let terms = x.terms();
        let (fraction, bias) = (terms.fraction_bits(), terms.bias());
        // Subnormal numbers have a full mantissa elsewhere.
        let up = terms.by_format(64, 128);
        let is_small = x.abs().lt(1.0);
        let bits = (x * is_small.pick(2f64.powi(up), terms.float(1.0))).as_int();
        let offset: Int = is_small.pick(bias + i64::from(up), terms.int(bias));
        let field = 2 * bias + 1;
        let mantissa = ((bits & !(field << fraction)) | (bias << fraction)).as_float();
        let is_zero = x.eq(0.0);
        Split {
            mantissa: is_zero.pick(x, mantissa),
            exponent: is_zero.pick(-8 * field, ((bits >> fraction) & field) - offset),
        }
    }
}

/// `double * 2^exponent`.
#[derive(Clone, Copy)]
pub(super) struct Wide<'t> {
    double: Double<'t>,
    exponent: Int<'t>,
}

/// How many binades two parts of a sum are kept apart.
fn span(terms: &Terms<'_>) -> i64 {
    terms.by_format(100, 900)
}

impl<'t> Wide<'t> {
    /// The double by which it is a multiple of a power of two that is not less than its own.
    fn at(self, exponent: Int<'t>) -> Double<'t> {
        let terms = exponent.terms();
        let factor = power_of_two((self.exponent - exponent).max(-span(terms)));
        // Products that sums are made of: they must not become one.
        let scaled = |x: Float<'t>| x.fma(factor, -0.0);
        Double {
            value: scaled(self.double.value),
            excess: scaled(self.double.excess),
        }
    }

    /// The nearest number of the format, or next to it.
    pub(super) fn rounded(self) -> Float<'t> {
        let terms = self.exponent.terms();
        // Beyond the limit it is 0 or infinite. The halves of the exponent are those of normal numbers.
        let limit = terms.by_format(240, 2040);
        let exponent = self.exponent.max(-limit);
        let exponent: Int = exponent.lt(limit).pick(exponent, terms.int(limit));
        let half = exponent >> 1;
        (self.double.rounded() * power_of_two(half)) * power_of_two(exponent - half)
    }
}

impl<'t> Sums for Wide<'t> {
    type Entry = Split<'t>;

    fn product(a: Split<'t>, b: Split<'t>) -> Self {
        Wide {
            double: Double::product(a.mantissa, b.mantissa),
            exponent: a.exponent + b.exponent,
        }
    }

    fn plus(self, other: Self) -> Self {
        let exponent = self.exponent.max(other.exponent);
        Wide {
            double: self.at(exponent).plus(other.at(exponent)),
            exponent,
        }
    }

    fn minus(self, other: Self) -> Self {
        let exponent = self.exponent.max(other.exponent);
        Wide {
            double: self.at(exponent).minus(other.at(exponent)),
            exponent,
        }
    }

    fn times(self, x: Split<'t>) -> Self {
        Wide {
            double: self.double.times(x.mantissa),
            exponent: self.exponent + x.exponent,
        }
    }

    fn times_double(self, other: Self) -> Self {
        Wide {
            double: self.double.times_double(other.double),
            exponent: self.exponent + other.exponent,
        }
    }
}

/// Whether every one of some numbers is finite.
pub(super) fn all_finite<'t>(numbers: &[Float<'t>]) -> Bool<'t> {
    let terms = numbers[0].terms();
    let all = (2 * terms.bias() + 1) << terms.fraction_bits();
    let none = terms.int(0);
    let largest = numbers
        .iter()
        .fold(none, |largest, x| (x.as_int() & all).max(largest));
    largest.lt(all)
}
