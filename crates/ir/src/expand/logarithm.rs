//! Logarithms and the inverse hyperbolic functions.
//!
//! Each splits its argument into 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), takes a polynomial of
//! f, and adds e. Next to 1, e is zero, so that nothing cancels.

use super::shared::{fast_two_sum, flip, polynomial, power_of_two, sign_bit};
use super::term::{Float, Int, Term};

/// e and f of a positive normal x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
fn normal_parts<'t>(x: Float<'t>) -> (Int<'t>, Float<'t>) {
    let t = x.terms();
    let root_half = t.by_format(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
    let bits = x.as_int();
    let e = (bits - root_half) >> t.fraction_bits();
    let m = (bits - (e << t.fraction_bits())).as_float();
    (e, m - 1.0)
}

/// `normal_parts` of any positive finite x.
pub(super) fn parts<'t>(x: Float<'t>) -> (Float<'t>, Float<'t>) {
    let t = x.terms();
    let smallest = t.by_format(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE);
    let shift = t.fraction_bits() as f64;
    let subnormal = x.lt(smallest);
    let (e, f) = normal_parts(subnormal.pick(x * shift.exp2(), x));
    (e.to_float() - subnormal.pick::<Float<'_>>(shift, 0.0), f)
}

/// `log` where x is positive and finite; elsewhere the limit, or NaN.
fn with_limits<'t>(x: Float<'t>, log: Float<'t>) -> Float<'t> {
    let log = x.ge(0.0).pick(log, f64::NAN);
    let log = x.eq(0.0).pick(f64::NEG_INFINITY, log);
    x.eq(f64::INFINITY).pick(x, log)
}

/// e ln(2) + p.
fn add_exponent<'t>(e: Float<'t>, p: Float<'t>) -> Float<'t> {
    let ln_2 = p.terms().k().ln_2;
    // Of ln(2) one f32 is enough: it happens to be exact to four bits more than it has.
    let p = if p.terms().bits() == 32 {
        p
    } else {
        e.fma(ln_2[1], p)
    };
    e.fma(ln_2[0], p)
}

/// The natural logarithm.
pub(crate) fn log(x: Float<'_>) -> Float<'_> {
    let (e, f) = parts(x);
    let p = (polynomial(f, x.terms().k().log) * f).fma(f, f);
    with_limits(x, add_exponent(e, p))
}

/// The logarithm to the base 2.
pub(crate) fn log2(x: Float<'_>) -> Float<'_> {
    let k = x.terms().k();
    let (e, f) = parts(x);
    let low = polynomial(f, k.log2).fma(f, k.log2_e[1]) * f;
    with_limits(x, e + f.fma(k.log2_e[0], low))
}

/// The logarithm to the base 10.
pub(crate) fn log10(x: Float<'_>) -> Float<'_> {
    let k = x.terms().k();
    let (e, f) = parts(x);
    let low = polynomial(f, k.log10).fma(f, k.log10_e[1]) * f;
    let low = e.fma(k.log10_2[1], low);
    with_limits(x, e.fma(k.log10_2[0], f.fma(k.log10_e[0], low)))
}

/// log(1 + t + t_low) + shift ln(2) for t >= 0; `add_low` adds t_low to what it gets.
fn log_one_plus<'t>(
    t: Float<'t>,
    add_low: impl FnOnce(Float<'t>) -> Float<'t>,
    shift: Float<'t>,
) -> Float<'t> {
    let terms = t.terms();
    let one = terms.float(1.0);
    let above = t.gt(1.0);
    let (sum, lost) = fast_two_sum(above.pick(t, one), above.pick(one, t));
    let (e, f) = normal_parts(sum);
    let (low, unit) = (add_low(lost), power_of_two(terms.int(0) - e));
    let whole = low.fma(unit, f);
    // f itself is exact, and is added last.
    let p = f + (polynomial(whole, terms.k().log) * whole).fma(whole, low * unit);
    add_exponent(e.to_float() + shift, p)
}

/// log(1 + t + t_low); where x is so large that its square may overflow, log(2x).
fn log_one_plus_or_twice<'t>(x: Float<'t>, t: Float<'t>, t_low: Float<'t>) -> Float<'t> {
    let large = x.gt(x.terms().by_format(1073741824.0, 1152921504606846976.0));
    // 2x may overflow too; log(1 + x/2) + 2 ln(2) is the same here.
    let shift = large.pick(2.0, 0.0);
    let t_low = large.pick(0.0, t_low);
    log_one_plus(large.pick(x * 0.5, t), |low| low + t_low, shift)
}

/// log(1 + a + a^2 / (1 + sqrt(1 + a^2))), a = |x|.
pub(crate) fn asinh(x: Float<'_>) -> Float<'_> {
    let a = x.abs();
    let (t, t_low) = fast_two_sum(a, a * a / (a.fma(a, 1.0).sqrt() + 1.0));
    let r = log_one_plus_or_twice(a, t, t_low);
    flip(a.eq(f64::INFINITY).pick(a, r), sign_bit(x))
}

/// log(1 + u + sqrt(u^2 + 2u)), u = x - 1.
pub(crate) fn acosh(x: Float<'_>) -> Float<'_> {
    let u = x - 1.0;
    let (t, t_low) = fast_two_sum(u.fma(u, u + u).sqrt(), u);
    let r = log_one_plus_or_twice(x, t, t_low);
    let r = x.ge(1.0).pick(r, f64::NAN);
    x.eq(f64::INFINITY).pick(x, r)
}

/// log(1 + 2a / (1 - a)) / 2, a = |x|.
pub(crate) fn atanh(x: Float<'_>) -> Float<'_> {
    let terms = x.terms();
    let a = x.abs();
    let one = terms.float(1.0);
    let d = one - a;
    let d_low = (one - d) - a;
    let inverse = one / d;
    let t = (a + a) * inverse;
    // The quotient lacks its remainder over the divisor.
    let remainder = (-t).fma(d_low, (-t).fma(d, a + a));
    let r = log_one_plus(t, |low| remainder.fma(inverse, low), terms.float(0.0)) * 0.5;
    let beyond: Float<'_> = a.eq(1.0).pick(f64::INFINITY, f64::NAN);
    flip(a.lt(1.0).pick(r, beyond), sign_bit(x))
}
