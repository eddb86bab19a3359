//! Powers and the inverse square root.

use super::logarithm;
use super::shared::{clamp, flip, polynomial, scale, sign_bit};
use super::term::{Float, Term};

/// 1 / sqrt(x).
pub(crate) fn rsqrt(x: Float<'_>) -> Float<'_> {
    x.terms().float(1.0) / x.sqrt()
}

/// log2(a) as a sum, to about half as many digits again as the format has, for a finite a > 0.
///
/// With s = f / (2 + f) and t = s^2, log2(1 + f) = s (c0 + t (c1 + t P(t))): the polynomial
/// contributes so little that only the operations outside it need a second part.
fn log2_sum<'t>(a: Float<'t>) -> (Float<'t>, Float<'t>) {
    let terms = a.terms();
    let k = terms.k();
    let (e, f) = logarithm::parts(a);
    let d = f + 2.0;
    let d_low = f - (d - 2.0);
    let inverse = terms.float(1.0) / d;
    let s = f * inverse;
    let s_low = (-s).fma(d_low, (-s).fma(d, f)) * inverse;
    let t = s * s;
    let t_low = (s + s).fma(s_low, s.fma(s, -t));
    // u = c1 + t P(t); the difference is exact, so that the second fma finds what the first lost.
    let c1 = terms.float(k.pow_c1[0]);
    let p = polynomial(t, k.pow_log2);
    let u = p.fma(t, c1);
    let u_low = p.fma(t, c1 - u) + k.pow_c1[1];
    // z = c0 + t u
    let c0 = terms.float(k.pow_c0[0]);
    let z = t.fma(u, c0);
    let z_low = t.fma(u, c0 - z) + (t.fma(u_low, t_low * u) + k.pow_c0[1]);
    // e + s z
    let sum = s.fma(z, e);
    (sum, s.fma(z, e - sum) + s.fma(z_low, s_low * z))
}

/// 2^(y log2|x|). Where log2|x| is 0, y counts as 0 if `one_to_any` says so.
fn magnitude<'t>(x: Float<'t>, y: Float<'t>, one_to_any: bool) -> Float<'t> {
    let terms = x.terms();
    let a = x.abs();
    let (l, l_low) = log2_sum(a);
    let l = a.eq(0.0).pick(f64::NEG_INFINITY, l);
    let l = a.lt(f64::INFINITY).pick(l, a);
    let y = if one_to_any {
        l.eq(0.0).pick(0.0, y)
    } else {
        y
    };
    let p = y * l;
    let p_low = y.fma(l_low, y.fma(l, -p));
    // From here on the result is zero or infinite. There p may be infinite and p_low NaN.
    let limit = terms.by_format(200.0, 1200.0);
    let p_low = p.abs().lt(limit).pick(p_low, 0.0);
    let p = clamp(p, -limit, limit);
    let n = p.rint();
    let r = (p - n) + p_low;
    scale(polynomial(r, terms.k().exp2).fma(r, 1.0), n.to_int())
}

/// x^y with the special cases of C99, F.9.4.4.
pub(crate) fn pow<'t>(x: Float<'t>, y: Float<'t>) -> Float<'t> {
    let r = magnitude(x, y, true);
    let half = y * 0.5;
    let integer = y.eq(y.rint());
    let odd = integer & half.ne(half.rint());
    let r = odd.pick(flip(r, sign_bit(x)), r);
    let undefined = x.lt(0.0) & x.gt(f64::NEG_INFINITY) & !integer;
    let r = undefined.pick(f64::NAN, r);
    y.eq(0.0).pick(1.0, r)
}

/// e^(y log(x)): x^y of x >= 0 with the special cases of IEEE 754-2019, 9.2.1.
pub(crate) fn powr<'t>(x: Float<'t>, y: Float<'t>) -> Float<'t> {
    x.lt(0.0).pick(f64::NAN, magnitude(x, y, false))
}
