//! The inverse trigonometric functions.

use super::shared::{flip, half_pi_minus, polynomial, sign_bit};
use super::term::{Bool, Float, Term};

/// For a = |x|: whether a > 1/2, and z = s^2 with s = a or, where it is, s = sqrt((1 - a) / 2),
/// of which pi/2 - 2 asin(s) is asin(a).
fn halved<'t>(a: Float<'t>) -> (Bool<'t>, Float<'t>) {
    let large = a.gt(0.5);
    (large, large.pick(a.fma(-0.5, 0.5), a * a))
}

/// asin(s)/s - 1 for z = s^2 <= 1/4.
fn excess(z: Float<'_>) -> Float<'_> {
    polynomial(z, z.terms().k().asin) * z
}

/// The arc sine.
pub(crate) fn asin(x: Float<'_>) -> Float<'_> {
    let terms = x.terms();
    let a = x.abs();
    let (large, z) = halved(a);
    let p = excess(z);
    let root = z.sqrt();
    let twice = root + root;
    // pi/2 - 2 (s + s p), where 3/2 - 2s is exact as long as the result is below one.
    let past = terms.k().half_pi_past_three_halves;
    let r = (terms.float(1.5) - twice) + (-twice).fma(p, past);
    flip(large.pick(r, p.fma(a, a)), sign_bit(x))
}

/// The arc cosine.
pub(crate) fn acos(x: Float<'_>) -> Float<'_> {
    let a = x.abs();
    let (large, z) = halved(a);
    let s = flip(large.pick(z.sqrt(), a), sign_bit(x));
    let p = excess(z).fma(s, s);
    // 2 asin(s), less than zero and counted from pi where x is negative.
    let [b, c] = x.terms().k().half_pi_product;
    let from: Float<'_> = x.lt(0.0).pick(b * 2.0, 0.0);
    large.pick(from.fma(c, p + p), half_pi_minus(p))
}

/// atan(z) for 0 <= z <= 1.
fn atan_to_one(z: Float<'_>) -> Float<'_> {
    let u = z * z;
    (polynomial(u, z.terms().k().atan) * u).fma(z, z)
}

/// The arc tangent.
pub(crate) fn atan(x: Float<'_>) -> Float<'_> {
    let a = x.abs();
    let large = a.gt(1.0);
    let p = atan_to_one(large.pick(x.terms().float(1.0) / a, a));
    flip(large.pick(half_pi_minus(p), p), sign_bit(x))
}

/// The angle of the point (x, y).
pub(crate) fn atan2<'t>(y: Float<'t>, x: Float<'t>) -> Float<'t> {
    let (a, b) = (y.abs(), x.abs());
    let steep = a.gt(b);
    // Of equals, 0/0 counts as 0 and infinity/infinity as 1; NaN equals nothing.
    let of_equals: Float<'_> = a.eq(0.0).pick(0.0, 1.0);
    let quotient = steep.pick(b, a) / steep.pick(a, b);
    let p = atan_to_one(a.eq(b).pick(of_equals, quotient));
    let p = steep.pick(half_pi_minus(p), p);
    let [c, d] = x.terms().k().half_pi_product;
    let from_left = x.terms().float(c * 2.0).fma(d, -p);
    let p = x.as_int().lt(0).pick(from_left, p);
    flip(p, sign_bit(y))
}
