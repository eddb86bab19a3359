//! `fmod`: exact work on mantissas and exponents.

use super::shared::{flip, power_of_two, sign_bit};
use super::term::{Float, Int, Term};

/// m and n of |x| = m 2^n, 1 <= m < 2, for a nonzero finite x.
fn mantissa_and_exponent<'t>(x: Float<'t>) -> (Float<'t>, Int<'t>) {
    let t = x.terms();
    let (fraction, bias) = (t.fraction_bits(), t.bias());
    let a = x.abs();
    let smallest = t.by_format(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE);
    let subnormal = a.lt(smallest);
    let bits = subnormal.pick(a * (fraction as f64).exp2(), a).as_int();
    let n = (bits >> fraction) - subnormal.pick::<Int<'_>>(bias + fraction, bias);
    let m = (bits & ((1 << fraction) - 1)) | (bias << fraction);
    (m.as_float(), n)
}

/// x - y trunc(x / y), exactly.
///
/// With mantissas r and m and d the difference of the exponents, it is r 2^d mod m, worked off a
/// few bits of d at a time: r 2^k - q m is exact by one fma where q, the truncated quotient, has no
/// more bits than a float holds, and q is off by one at most.
pub(crate) fn fmod<'t>(x: Float<'t>, y: Float<'t>) -> Float<'t> {
    let t = x.terms();
    let (r, n) = mantissa_and_exponent(x);
    let (m, y_exponent) = mantissa_and_exponent(y);
    let r = r.lt(m).pick(r, r - m);
    let r = t.work_off(n - y_exponent, t.fraction_bits() - 1, r, |r, k| {
        let r = r * power_of_two(k);
        let q = (r / m).trunc();
        let r = (-q).fma(m, r);
        let r = r.lt(0.0).pick(r + m, r);
        r.lt(m).pick(r, r - m)
    });
    // r is a multiple of y's last place, so that neither product rounds.
    let half = y_exponent >> 1;
    let r = r * power_of_two(half) * power_of_two(y_exponent - half);
    let r = x.abs().lt(y.abs()).pick(x, flip(r, sign_bit(x)));
    let defined = x.abs().lt(f64::INFINITY) & y.abs().gt(0.0);
    defined.pick(r, f64::NAN)
}
