//! Pieces that several expansions are made of.

use super::term::{Float, Int, Term};

/// `c[0] + c[1] x + c[2] x^2 + ...` by Horner's rule, one fma a step.
pub(super) fn polynomial<'t>(x: Float<'t>, coefficients: &[f64]) -> Float<'t> {
    let (last, rest) = coefficients.split_last().unwrap_or((&0.0, &[]));
    rest.iter()
        .rev()
        .fold(x.terms().float(*last), |sum, &c| sum.fma(x, c))
}

/// `x` limited to [low, high]. NaN stays NaN, which it would not with `fmin` and `fmax` (A7).
pub(super) fn clamp<'t>(x: Float<'t>, low: f64, high: f64) -> Float<'t> {
    at_most(x.lt(low).pick(low, x), high)
}

/// `x`, or `high` where it is greater. NaN stays NaN.
pub(super) fn at_most<'t>(x: Float<'t>, high: f64) -> Float<'t> {
    x.gt(high).pick(high, x)
}

/// The sign bit of `x`, the others zero.
pub(super) fn sign_bit<'t>(x: Float<'t>) -> Int<'t> {
    x.as_int() & x.terms().sign_mask()
}

/// `x` with its sign flipped where `sign`, a sign bit or zero, says so.
pub(super) fn flip<'t>(x: Float<'t>, sign: Int<'t>) -> Float<'t> {
    (x.as_int() ^ sign).as_float()
}

/// 2^n for the exponents of normal numbers; for the one below them, zero.
pub(super) fn power_of_two<'t>(n: Int<'t>) -> Float<'t> {
    let t = n.terms();
    ((n + t.bias()) << t.fraction_bits()).as_float()
}

/// `p` 2^n, rounded once, for `p` in [1/2, 2] and `n` up to twice as far from zero as the exponents
/// of normal numbers. A NaN `p` needs an `n` of 0, which the cast of a NaN is (A5).
pub(super) fn scale<'t>(p: Float<'t>, n: Int<'t>) -> Float<'t> {
    let (normal, factor) = scale_factors(p, n, 0);
    normal * factor
}

/// Two normal numbers whose product is `p` 2^(n + shift), under the conditions of `scale`.
pub(super) fn scale_factors<'t>(p: Float<'t>, n: Int<'t>, shift: i64) -> (Float<'t>, Float<'t>) {
    let t = p.terms();
    let half = n >> 1;
    let normal = (p.as_int() + (half << t.fraction_bits())).as_float();
    let factor = ((n - half + (t.bias() + shift)) << t.fraction_bits()).as_float();
    (normal, factor)
}

/// pi/2 - x, rounded once, since pi/2 is all but exactly a product of two numbers of the format.
pub(super) fn half_pi_minus<'t>(x: Float<'t>) -> Float<'t> {
    let [a, b] = x.terms().k().half_pi_product;
    x.terms().float(a).fma(b, -x)
}

/// `a` with what of `b` rounding lost: `sum + error` is `a + b` exactly, if `a` is zero or its
/// exponent is not less than that of `b` (Dekker 1971).
pub(super) fn fast_two_sum<'t>(a: Float<'t>, b: Float<'t>) -> (Float<'t>, Float<'t>) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// `product + error` is `a * b` exactly, short of underflow.
pub(super) fn two_product<'t>(a: Float<'t>, b: Float<'t>) -> (Float<'t>, Float<'t>) {
    let product = a * b;
    (product, a.fma(b, -product))
}

/// `sum + error` is `a + b` exactly, short of overflow (Knuth).
pub(super) fn two_sum<'t>(a: Float<'t>, b: Float<'t>) -> (Float<'t>, Float<'t>) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}
