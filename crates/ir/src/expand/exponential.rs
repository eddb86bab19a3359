//! Powers of e, 2 and 10, the hyperbolic functions and the error function.
//!
//! Each writes its argument as n log(2) + r to the base at hand, takes a polynomial of r, and puts
//! n into the exponent.

use super::shared::{
    at_most, clamp, flip, polynomial, power_of_two, scale, scale_factors, sign_bit,
};
use super::term::{Float, Int, Term};

/// n and e^r of x = n ln(2) + r, |r| <= ln(2)/2, by Cody and Waite's reduction in two steps.
fn reduced_exp<'t>(x: Float<'t>) -> (Int<'t>, Float<'t>) {
    let k = x.terms().k();
    let n = (x * k.log2_e[0]).rint();
    let r = n.fma(-k.ln_2[1], n.fma(-k.ln_2[0], x));
    let p = polynomial(r, k.exp).fma(r, 1.0).fma(r, 1.0);
    (n.to_int(), p)
}

/// e^x.
pub(crate) fn exp(x: Float<'_>) -> Float<'_> {
    // Beyond these the result is zero, or infinite, whatever x is.
    let (low, high) = x.terms().by_format((-104.0, 89.0), (-746.0, 710.0));
    let (n, p) = reduced_exp(clamp(x, low, high));
    scale(p, n)
}

/// 2^x.
pub(crate) fn exp2(x: Float<'_>) -> Float<'_> {
    let (low, high) = x.terms().by_format((-151.0, 129.0), (-1076.0, 1025.0));
    let x = clamp(x, low, high);
    let n = x.rint();
    let r = x - n;
    scale(polynomial(r, x.terms().k().exp2).fma(r, 1.0), n.to_int())
}

/// 10^x, with x = n log10(2) + r.
pub(crate) fn exp10(x: Float<'_>) -> Float<'_> {
    let k = x.terms().k();
    let (low, high) = x.terms().by_format((-46.0, 39.0), (-324.0, 309.0));
    let x = clamp(x, low, high);
    let n = (x * k.log2_10).rint();
    let r = n.fma(-k.log10_2[1], n.fma(-k.log10_2[0], x));
    scale(polynomial(r, k.exp10).fma(r, 1.0), n.to_int())
}

/// e^a / 2 for a >= 0, as a product, since it overflows later than e^a does.
fn half_exp(a: Float<'_>) -> (Float<'_>, Float<'_>) {
    let high = a.terms().by_format(90.0, 711.0);
    let (n, p) = reduced_exp(at_most(a, high));
    scale_factors(p, n, -1)
}

/// With h = e^|x| / 2: h - 1 / (4h), and a polynomial where these two nearly cancel.
pub(crate) fn sinh(x: Float<'_>) -> Float<'_> {
    let a = x.abs();
    let (h, factor) = half_exp(a);
    let large = h.fma(factor, x.terms().float(-0.25) / (h * factor));
    let u = a * a;
    let small = (polynomial(u, x.terms().k().sinh) * u).fma(a, a);
    flip(a.lt(1.0).pick(small, large), sign_bit(x))
}

/// With h = e^|x| / 2: h + 1 / (4h).
pub(crate) fn cosh(x: Float<'_>) -> Float<'_> {
    let (h, factor) = half_exp(x.abs());
    h.fma(factor, x.terms().float(0.25) / (h * factor))
}

/// 1 - 2 / (e^(2|x|) + 1), and a polynomial where this nearly cancels.
pub(crate) fn tanh(x: Float<'_>) -> Float<'_> {
    let t = x.terms();
    let a = x.abs();
    // From here on the result rounds to 1.
    let (n, p) = reduced_exp(at_most(a + a, t.by_format(19.0, 40.0)));
    let large = t.float(1.0) - t.float(2.0) / p.fma(power_of_two(n), 1.0);
    let u = a * a;
    let small = (polynomial(u, t.k().tanh) * u).fma(a, a);
    flip(a.lt(0.59375).pick(small, large), sign_bit(x))
}

/// 1 - e^P(|x|), and a polynomial for |x| < 1.
pub(crate) fn erf(x: Float<'_>) -> Float<'_> {
    let t = x.terms();
    let a = x.abs();
    // From here on the result rounds to 1.
    let limited = at_most(a, t.by_format(4.0, 6.0));
    let (n, p) = reduced_exp(polynomial(limited, t.k().erfc_log));
    let large = (-p).fma(power_of_two(n), 1.0);
    let small = polynomial(a * a, t.k().erf).fma(a, a);
    flip(a.lt(1.0).pick(small, large), sign_bit(x))
}
