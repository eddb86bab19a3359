//! Functions of a few operations each, in the float's own type.

use super::shared::at_most;
use super::term::{Float, Term};

/// x - floor(x), or the largest number below one where that rounds to one.
pub(crate) fn fract(x: Float<'_>) -> Float<'_> {
    let t = x.terms();
    let bits = t.precision();
    at_most(x - x.floor(), 1.0 - (-f64::from(bits)).exp2())
}

/// x limited to [0, 1]; of NaN, 0.
pub(crate) fn saturate(x: Float<'_>) -> Float<'_> {
    let x = x.gt(0.0).pick(x, 0.0);
    at_most(x, 1.0)
}

/// 1 of a positive x, -1 of a negative one, a zero itself; of NaN, 0.
pub(crate) fn sign(x: Float<'_>) -> Float<'_> {
    let of_zero = x.eq(0.0).pick(x, 0.0);
    let r = x.lt(0.0).pick(-1.0, of_zero);
    x.gt(0.0).pick(1.0, r)
}

/// 0 where x < edge, else 1.
pub(crate) fn step<'t>(edge: Float<'t>, x: Float<'t>) -> Float<'t> {
    x.lt(edge).pick(0.0, 1.0)
}

/// x + (y - x) a, the sum by fma.
pub(crate) fn mix<'t>(x: Float<'t>, y: Float<'t>, a: Float<'t>) -> Float<'t> {
    (y - x).fma(a, x)
}

/// t^2 (3 - 2t) with t = saturate((x - low) / (high - low)).
pub(crate) fn smoothstep<'t>(low: Float<'t>, high: Float<'t>, x: Float<'t>) -> Float<'t> {
    let t = saturate((x - low) / (high - low));
    t * t * t.fma(-2.0, 3.0)
}
