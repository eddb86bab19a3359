//! Numbers of twice the digits: what a plain formula gives, and by how much that is too large.
//!
//! A [`Double`] is `value - excess`. Its `value` is computed from values alone, as the formula reads,
//! so infinities, NaN and the signs of zeros are those of the plain formula, and
//! [`Double::rounded`] falls back to it where the excess is not finite. An excess of nothing is +0,
//! so that taking it away keeps the sign of a zero.
//!
//! With u half a unit in the last place of 1, sums and products of `Double`s are off by a few u^2 of
//! the magnitudes that went into them, short of overflow and underflow. Nothing is normalised in
//! between: terms that cancel leave an excess as large as the value, and the bound holds all the same.

use super::term::{Float, Term};

/// `value - excess`.
#[derive(Clone, Copy)]
pub(super) struct Double<'t> {
    pub(super) value: Float<'t>,
    pub(super) excess: Float<'t>,
}

impl<'t> Double<'t> {
    /// `x` itself.
    pub(super) fn from(x: Float<'t>) -> Double<'t> {
        let excess = x.terms().float(0.0);
        Double { value: x, excess }
    }

    /// `a + b`, exactly short of overflow (Knuth).
    pub(super) fn sum(a: Float<'t>, b: Float<'t>) -> Double<'t> {
        let value = a + b;
        let of_b = value - a;
        let excess = ((value - of_b) - a) + (of_b - b);
        Double { value, excess }
    }

    /// `a * b`, exactly short of overflow and underflow. The product is an fma, since the sums that it
    /// goes into must not become one.
    pub(super) fn product(a: Float<'t>, b: Float<'t>) -> Double<'t> {
        let value = a.fma(b, -0.0);
        let excess = (-a).fma(b, value);
        Double { value, excess }
    }

    /// The sum.
    pub(super) fn plus(self, other: Double<'t>) -> Double<'t> {
        let sum = Double::sum(self.value, other.value);
        let excess = sum.excess + (self.excess + other.excess);
        Double { excess, ..sum }
    }

    /// The difference.
    pub(super) fn minus(self, other: Double<'t>) -> Double<'t> {
        let sum = Double::sum(self.value, -other.value);
        let excess = sum.excess + (self.excess - other.excess);
        Double { excess, ..sum }
    }

    /// The product with a number of the format.
    pub(super) fn times(self, x: Float<'t>) -> Double<'t> {
        let product = Double::product(self.value, x);
        let excess = self.excess.fma(x, product.excess);
        Double { excess, ..product }
    }

    /// The product.
    pub(super) fn times_double(self, other: Double<'t>) -> Double<'t> {
        let product = Double::product(self.value, other.value);
        let excess = self.value.fma(other.excess, product.excess);
        let excess = self.excess.fma(other.value, excess);
        Double { excess, ..product }
    }

    /// The nearest number of the format, or next to it; the value as it is where the excess is not
    /// finite: next to overflow, and of what is not finite itself.
    pub(super) fn rounded(self) -> Float<'t> {
        finite_or(self.value - self.excess, self.value)
    }

    /// The sum of products of components, in index order.
    pub(super) fn dot(a: &[Float<'t>], b: &[Float<'t>]) -> Double<'t> {
        let first = Double::product(a[0], b[0]);
        let rest = a[1..].iter().zip(&b[1..]);
        rest.fold(first, |sum, (a, b)| sum.plus(Double::product(*a, *b)))
    }
}

/// `x` if it is finite, else `plain`.
pub(super) fn finite_or<'t>(x: Float<'t>, plain: Float<'t>) -> Float<'t> {
    x.abs().lt(f64::INFINITY).pick(x, plain)
}
