//! Sine, cosine and tangent, of radians and of half turns.
//!
//! Radians are first reduced to within a half or quarter turn. Up to a limit, subtracting a
//! multiple of pi in three parts (Cody and Waite) leaves the remainder exact to its last place;
//! beyond, in a branch that is rarely taken, the argument is multiplied with just those digits of
//! 1/pi that count (Payne and Hanek 1983), in integers, which is right for every finite argument.

use super::coefficients::INV_PI_DIGITS;
use super::shared::{at_most, fast_two_sum, flip, polynomial, sign_bit, two_product};
use super::term::{Bool, Float, Int, Term, Terms, Uint};

/// A reduced angle: what is left, what its rounding lost, and in the sign bit whether the number of
/// turns taken off is odd.
struct Reduced<'t> {
    rest: Float<'t>,
    rest_low: Float<'t>,
    odd: Int<'t>,
}

/// `value` in two words, `high` of the greater weight.
#[derive(Clone, Copy)]
struct Double<'t> {
    high: Uint<'t>,
    low: Uint<'t>,
}

/// Whether Cody and Waite's reduction does not serve; for infinity none does.
fn is_far(a: Float<'_>) -> Bool<'_> {
    a.gt(a.terms().by_format(16384.0, 67108864.0))
}

/// The four words of 1/pi from word number `first` on, of which the first is zero: a barrel
/// shifter, which takes a `select` for each word left and bit of the distance.
fn digits_from<'t>(terms: &'t Terms<'t>, first: Uint<'t>) -> Vec<Uint<'t>> {
    let digits: Vec<u64> = if terms.bits() == 32 {
        let halves = INV_PI_DIGITS[..4]
            .iter()
            .flat_map(|d| [d >> 32, d & 0xffff_ffff]);
        halves.skip(1).collect()
    } else {
        INV_PI_DIGITS.to_vec()
    };
    let mut words: Vec<Uint<'t>> = digits.into_iter().map(|d| terms.uint(d)).collect();
    for bit in (0..terms.by_format(2, 4)).rev() {
        let distance = 1 << bit;
        let moved = (first & (1 << bit)).ne(0);
        words = (0..words.len().min(3 + distance))
            .map(|k| match words.get(k + distance) {
                Some(&far) => moved.pick(far, words[k]),
                None => words[k],
            })
            .collect();
    }
    words
}

/// a/pi modulo 2 for a finite a >= 1, the high word in units of 2^(1 - width).
fn half_turns(a: Float<'_>) -> Double<'_> {
    let terms = a.terms();
    let width = u64::from(terms.bits());
    let fraction = terms.fraction_bits() as u64;
    // a = mantissa * 2^(exponent + 1 - width), the mantissa's top bit set; then the product with
    // the digits of 1/pi from number exponent - width on has the weight that is wanted.
    let bits = a.as_uint();
    let exponent = (bits >> fraction) - terms.bias() as u64;
    let mantissa = (bits << (width - 1 - fraction)) | (1 << (width - 1));
    let words = digits_from(terms, exponent >> u64::from(width.trailing_zeros()));
    let shift = exponent & (width - 1);
    let back = shift ^ (width - 1);
    let digits = |k: usize| (words[k] << shift) | ((words[k + 1] >> 1) >> back);
    let (first, second, third) = (digits(0), digits(1), digits(2));
    let middle = mantissa * second;
    let low = middle + mantissa.mul_hi(third);
    let carry: Uint<'_> = low.lt(middle).pick(1, 0);
    let high = mantissa * first + mantissa.mul_hi(second) + carry;
    Double { high, low }
}

/// The nearest integer to a number that is given as `half_turns` gives it, and pi times the rest.
fn nearest<'t>(turns: Double<'t>) -> Reduced<'t> {
    let terms = turns.high.terms();
    let width = u64::from(terms.bits());
    let pi = terms.k().pi;
    // Without the integer's bit, the rest in units of 2^-width, rounded to nearest by its sign.
    let high = (turns.high << 1 | turns.low >> (width - 1)).as_int();
    let low = turns.low << 1;
    // The parity of the floor, plus one where the rest is a half or more.
    let odd = (turns.high.as_int() ^ high) & terms.sign_mask();
    // As many leading bits as a float holds, rounded, and a signed number that follows them: a rest
    // next to zero cannot cancel.
    let dropped = width as i64 - 1 - terms.fraction_bits();
    let leading = ((high >> (dropped - 1)) + 1) >> 1;
    let following = (high - (leading << dropped)) << (width as i64 - dropped)
        | (low >> dropped as u64).as_int();
    let unit = ((dropped - width as i64) as f64).exp2();
    let (leading, following) = (leading.to_float(), following.to_float());
    let tail = leading.fma(
        pi[1] * unit,
        following * (pi[0] * unit * (-(width as f64)).exp2()),
    );
    let rest = leading.fma(pi[0] * unit, tail);
    Reduced {
        rest,
        rest_low: leading.fma(pi[0] * unit, -rest) + tail,
        odd,
    }
}

/// The sign bit set where `n` is odd, up to a number far beyond those that count.
fn parity(n: Float<'_>) -> Int<'_> {
    let bits = n.terms().bits();
    // What cannot be too large for an integer becomes one in an instruction.
    at_most(n, f64::from(bits - 2).exp2()).to_int() << i64::from(bits - 1)
}

/// sin(r) for |r| <= pi/2.
fn half_wave(r: Float<'_>) -> Float<'_> {
    let c = r.terms().k().sin;
    let u = r * r;
    // r + r (c0 u + (c1 u^2 + ...)): a rounding less than by Horner's rule, where the sum is
    // largest; with it no result exceeds 1.
    u.fma(c[0], polynomial(u, &c[1..]) * u * u).fma(r, r)
}

/// (-1)^n sin(rest) for a = |x|; `near` gives the rest and n up to the limit, and `turned` adds to
/// the number of half turns beyond it.
fn wave<'t>(
    a: Float<'t>,
    near: (Float<'t>, Float<'t>),
    turned: impl FnOnce(Double<'t>) -> Double<'t>,
) -> (Float<'t>, Int<'t>) {
    let terms = a.terms();
    let usual = [near.0.value(), parity(near.1).value()];
    let [rest, odd] = terms.rarely(is_far(a), usual, || {
        let far = nearest(turned(half_turns(a)));
        // Of infinity the near rest is NaN.
        let rest = a.lt(f64::INFINITY).pick(far.rest, near.0);
        [rest.value(), far.odd.value()]
    });
    (half_wave(terms.float_of(rest)), terms.int_of(odd))
}

/// a - n (parts[0] + parts[1] + parts[2]).
fn subtract<'t>(a: Float<'t>, n: Float<'t>, parts: &[f64; 3]) -> Float<'t> {
    n.fma(-parts[2], n.fma(-parts[1], n.fma(-parts[0], a)))
}

/// sin(a) = (-1)^n sin(a - n pi).
pub(crate) fn sin(x: Float<'_>) -> Float<'_> {
    let k = x.terms().k();
    let a = x.abs();
    let n = (a * k.inv_pi).rint();
    let (s, odd) = wave(a, (subtract(a, n, &k.pi), n), |turns| turns);
    flip(s, odd ^ sign_bit(x))
}

/// cos(a) = (-1)^n sin(a - (n - 1/2) pi).
pub(crate) fn cos(x: Float<'_>) -> Float<'_> {
    let k = x.terms().k();
    let a = x.abs();
    let n = a.fma(k.inv_pi, 0.5).rint();
    let near = (subtract(a, n - 0.5, &k.pi), n);
    let half = 1 << (x.terms().bits() - 2);
    let (s, odd) = wave(a, near, |turns| Double {
        high: turns.high + half,
        ..turns
    });
    flip(s, odd)
}

/// tan(a) = tan(r) or -1/tan(r), r = a - n pi/2.
pub(crate) fn tan(x: Float<'_>) -> Float<'_> {
    let terms = x.terms();
    let k = terms.k();
    let a = x.abs();
    let n = (a * k.two_over_pi).rint();
    // Next to the poles an error of r counts twice: what rounding lost is kept.
    let (product, product_low) = two_product(n, terms.float(k.half_pi[1]));
    let (rest, lost) = fast_two_sum(n.fma(-k.half_pi[0], a), -product);
    let rest_low = n.fma(-k.half_pi[2], lost - product_low);
    let usual = [rest.value(), rest_low.value(), parity(n).value()];
    let [r, r_low, odd] = terms.rarely(is_far(a), usual, || {
        let turns = half_turns(a);
        let top = u64::from(terms.bits() - 1);
        let far = nearest(Double {
            high: turns.high << 1 | turns.low >> top,
            low: turns.low << 1,
        });
        // Of infinity the near rest is NaN.
        let r = a.lt(f64::INFINITY).pick(far.rest * 0.5, rest);
        [r.value(), (far.rest_low * 0.5).value(), far.odd.value()]
    });
    let (r, r_low) = (terms.float_of(r), terms.float_of(r_low));
    let u = r * r;
    let p = polynomial(u, k.tan) * u;
    let t = p.fma(r, r);
    // tan(r + r_low) - t, to first order in r_low.
    let t_low = t.fma(t, 1.0).fma(r_low, p.fma(r, r - t));
    // -1 / (t + t_low), to first order in t_low.
    let q = terms.float(-1.0) / t;
    let pole = (q * q).fma(t_low, q);
    flip(terms.int_of(odd).ne(0).pick(pole, t + t_low), sign_bit(x))
}

/// n and r of a = n/2 + r, |r| <= 1/4, both exact, for half turns a >= 0; of n the low bits count.
fn quarter_turns(a: Float<'_>) -> (Int<'_>, Float<'_>) {
    // Beyond this every number is an even integer; infinity becomes NaN.
    let limit = (a.terms().fraction_bits() as f64 + 1.0).exp2();
    let a = a.gt(limit).pick(a * 0.0, a);
    let n = (a + a).rint();
    (n.to_int(), n.fma(-0.5, a))
}

/// The bit of n that counts half turns, as a sign bit.
fn half_turn_sign(n: Int<'_>) -> Int<'_> {
    let terms = n.terms();
    (n << i64::from(terms.bits() - 2)) & terms.sign_mask()
}

/// sin(pi (n/2 + r)), less the sign that `half_turn_sign` gives.
fn quarter_wave<'t>(n: Int<'t>, r: Float<'t>) -> Float<'t> {
    let k = r.terms().k();
    let u = r * r;
    let sine = r.fma(k.pi[0], r * polynomial(u, k.sinpi).fma(u, k.pi[1]));
    let cosine = polynomial(u, k.cospi).fma(u, 1.0);
    (n & 1).ne(0).pick(cosine, sine)
}

/// sin(pi x).
pub(crate) fn sinpi(x: Float<'_>) -> Float<'_> {
    let (n, r) = quarter_turns(x.abs());
    let s = quarter_wave(n, r);
    // At integers the zero has the sign of x (IEEE 754-2019, 9.2.1).
    let sign: Int<'_> = s.eq(0.0).pick(0, half_turn_sign(n));
    flip(s, sign ^ sign_bit(x))
}

/// cos(pi x).
pub(crate) fn cospi(x: Float<'_>) -> Float<'_> {
    let (n, r) = quarter_turns(x.abs());
    let n = n + 1;
    // Adding zero makes +0 of -0.
    flip(quarter_wave(n, r), half_turn_sign(n)) + 0.0
}

/// tan(pi x).
pub(crate) fn tanpi(x: Float<'_>) -> Float<'_> {
    let terms = x.terms();
    let k = terms.k();
    let (n, r) = quarter_turns(x.abs());
    let u = r * r;
    let t = r.fma(k.pi[0], r * polynomial(u, k.tanpi).fma(u, k.pi[1]));
    // At integers and halves, zero and infinity have the sign of (-1)^floor(|x|) (IEEE 754-2019).
    let zero = half_turn_sign(n + 1).as_float();
    let t = r.eq(0.0).pick(zero, t);
    let odd = (n & 1).ne(0);
    let quotient = odd.pick(-1.0, t) / odd.pick(t, 1.0);
    flip(quotient, sign_bit(x))
}
