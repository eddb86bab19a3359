//! Vectors. Sums of products accumulate in index order, those that A11 names by fma; all functions but
//! `dot` keep what rounding loses.

use super::double::{Double, finite_or};
use super::shared::{fast_two_sum, two_sum};
use super::term::{Float, Term, Terms};
use super::{components, in_f32, number, splat};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::{Imm, Swizzle};

/// `x0 and x1 and ...`.
pub(crate) fn all(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let parts = components(b, args[0]);
    parts[1..].iter().fold(parts[0], |a, c| b.and(a, *c))
}

/// `x0 or x1 or ...`.
pub(crate) fn any(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let parts = components(b, args[0]);
    parts[1..].iter().fold(parts[0], |a, c| b.or(a, *c))
}

/// `fma(x2, y2, fma(x1, y1, x0 * y0))`.
pub(super) fn dot_product(b: &mut KernelBuilder, x: Value, y: Value) -> Value {
    let (x, y) = (components(b, x), components(b, y));
    let first = b.mul(x[0], y[0]);
    let rest = x[1..].iter().zip(&y[1..]);
    rest.fold(first, |sum, (x, y)| b.fma(*x, *y, sum))
}

/// `a * b - c * d` without the error of products that cancel: with `w = c * d` rounded,
/// `fma(a, b, -w) + fma(-c, d, w)`, at most 1.5 ulp off (Jeannerod, Louvet and Muller, "Further
/// analysis of Kahan's algorithm for the accurate computation of 2x2 determinants", 2013).
///
/// Products that overflow leave no finite result. Then it is computed of factors so much smaller that no
/// product does, by a power of two that costs no digit which counts beside such a product.
pub(super) fn difference_of_products<'t>(factors: [Float<'t>; 4]) -> Float<'t> {
    let kahan = |[a, b, c, d]: [Float<'t>; 4]| {
        let second = c * d;
        let lost = (-c).fma(d, second);
        a.fma(b, -second) + lost
    };
    let usual = kahan(factors);
    let terms = usual.terms();
    let [result] = terms.rarely(!usual.abs().lt(f64::INFINITY), [usual.value()], || {
        let down = 2f64.powi(terms.by_format(-65, -520));
        let small = kahan(factors.map(|x| x * down));
        [((small * (1.0 / down)) * (1.0 / down)).value()]
    });
    terms.float_of(result)
}

/// `x.yzx * y.zxy - x.zxy * y.yzx`.
fn cross_product(b: &mut KernelBuilder, x: Value, y: Value) -> Value {
    let turned = |b: &mut KernelBuilder, v: Value, order: [u8; 3]| match Swizzle::new(&order) {
        Some(swizzle) => b.swizzle(v, swizzle),
        None => v,
    };
    let [up, down] = [[1, 2, 0], [2, 0, 1]];
    let parts = [(x, up), (y, down), (x, down), (y, up)].map(|(v, order)| turned(b, v, order));
    let ty = b.ty(x);
    let terms = Terms::new(b, ty);
    difference_of_products(parts.map(|x| terms.float_of(x))).value()
}

/// The sum of products.
pub(crate) fn dot(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| dot_product(b, args[0], args[1]))
}

/// A power of two by which squares of a vector's components can be summed up, short of overflow, and of an
/// underflow that would count.
///
/// With `e` the exponent of the largest component that is `2^(K - e)`, or the largest power that has an
/// inverse, where the inverse brings back what is a unit in the last place of 1 to be the smallest subnormal.
#[derive(Clone, Copy)]
struct Scale<'t> {
    factor: Float<'t>,
    inverse: Float<'t>,
}

impl<'t> Scale<'t> {
    fn of(parts: &[Float<'t>]) -> Scale<'t> {
        let terms = parts[0].terms();
        let (fraction, bias) = (terms.fraction_bits(), terms.bias());
        let k = terms.by_format(60, 500);
        // Exponents as they stand in the bits, of which the least is that of the largest factor.
        let all = (2 * bias + 1) << fraction;
        let largest = parts
            .iter()
            .fold(terms.int((k + 1) << fraction), |largest, x| {
                (x.as_int() & all).max(largest)
            });
        Scale {
            factor: (terms.int((k + 2 * bias) << fraction) - largest).as_float(),
            inverse: (largest - (k << fraction)).as_float(),
        }
    }

    /// `root + lacks`, scaled back and rounded once, or `root` alone where the sum is not finite.
    ///
    /// What is below 1 becomes subnormal: there the sum is rounded to the units in the last place of 1.
    fn back(self, root: Float<'t>, lacks: Float<'t>) -> Float<'t> {
        let one = root.lt(1.0).pick(1.0, root.terms().float(0.0));
        let (sum, rest) = fast_two_sum(one, root);
        finite_or((sum + (rest + lacks)) - one, root) * self.inverse
    }
}

/// `sqrt(dot(x, x))`, of a sum of squares whose rounding errors are kept.
pub(crate) fn length(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let parts = components(b, args[0]);
        let ty = b.ty(parts[0]);
        let terms = Terms::new(b, ty);
        let parts = floats(&terms, &parts);
        let scale = Scale::of(&parts);
        let scaled: Vec<_> = parts.iter().map(|x| (*x * scale.factor, None)).collect();
        let (root, lacks) = exact_length(&scaled);
        scale.back(root, lacks).value()
    })
}

/// The length of a vector and what it lacks of the exact one, to about twice as many digits as the
/// format has, short of overflow and underflow. Each component is a sum of two.
///
/// The sum of squares accumulates in index order by fma (A11). What a step lacks is recovered as of a
/// sum of two (Knuth), the square standing for the second: of positive terms to a few u^2 of the sum.
/// With `s + e` the sum and `r = sqrt(s)`, the length is `r + (s - r * r + e) / 2r`.
fn exact_length<'t>(parts: &[(Float<'t>, Option<Float<'t>>)]) -> (Float<'t>, Float<'t>) {
    let x = parts[0].0;
    let mut sum = x.fma(x, -0.0);
    let mut rest = x.fma(x, -sum);
    for &(x, _) in &parts[1..] {
        let next = x.fma(x, sum);
        let of_square = next - sum;
        let lost = (sum - (next - of_square)) + x.fma(x, -of_square);
        rest = rest + lost;
        sum = next;
    }
    for &(x, low) in parts {
        if let Some(low) = low {
            rest = (x + x).fma(low, rest);
        }
    }
    let root = sum.sqrt();
    (root, ((-root).fma(root, sum) + rest) / (root + root))
}

/// `length(x - y)`, of differences and squares whose rounding errors are kept.
pub(crate) fn distance(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (x, y) = (components(b, args[0]), components(b, args[1]));
        let ty = b.ty(x[0]);
        let terms = Terms::new(b, ty);
        let (ways, lows): (Vec<_>, Vec<_>) = x
            .iter()
            .zip(&y)
            .map(|(x, y)| two_sum(terms.float_of(*x), -terms.float_of(*y)))
            .unzip();
        let scale = Scale::of(&ways);
        let parts: Vec<_> = ways
            .into_iter()
            .zip(lows)
            .map(|(way, low)| (way * scale.factor, Some(low * scale.factor)))
            .collect();
        let (root, lacks) = exact_length(&parts);
        scale.back(root, lacks).value()
    })
}

/// `x / length(x)`, of a length whose rounding errors are kept: with `q = x / r` for the length
/// `r + c`, the quotient is `q + (x - q * r - q * c) / r`; all of it of the scaled vector.
pub(crate) fn normalize(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let vector = b.ty(args[0]);
        let x = components(b, args[0]);
        let ty = b.ty(x[0]);
        let terms = Terms::new(b, ty);
        let x = floats(&terms, &x);
        let scale = Scale::of(&x);
        let parts: Vec<_> = x.iter().map(|x| (*x * scale.factor, None)).collect();
        let (root, lacks) = exact_length(&parts);
        let inverse = terms.float(1.0) / root;
        let results: Vec<Value> = parts
            .iter()
            .map(|(x, _)| {
                let quotient = *x / root;
                let rest = (-quotient).fma(lacks, (-quotient).fma(root, *x));
                // The quotient of the rest may be subnormal where the result is not: it is never rounded.
                let result = finite_or(rest.fma(inverse, quotient), quotient);
                // A quotient of -0 keeps its sign.
                rest.eq(0.0).pick(quotient, result).value()
            })
            .collect();
        b.construct(vector, &results)
    })
}

/// The cross product.
pub(crate) fn cross(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| cross_product(b, args[0], args[1]))
}

/// The vector's components as terms.
pub(super) fn floats<'t>(terms: &'t Terms<'t>, parts: &[Value]) -> Vec<Float<'t>> {
    parts.iter().map(|x| terms.float_of(*x)).collect()
}

/// `incident - 2 * dot(normal, incident) * normal`, of sums and products whose rounding errors are kept.
pub(crate) fn reflect(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (incident, normal) = (args[0], args[1]);
        let ty = b.ty(incident);
        let parts = [normal, incident].map(|x| components(b, x));
        let twice = {
            let scalar = b.ty(parts[0][0]);
            let terms = Terms::new(b, scalar);
            let [normal, incident] = [0, 1].map(|k| floats(&terms, &parts[k]));
            let d = Double::dot(&normal, &incident);
            [d.value, d.excess].map(|x| (x + x).value())
        };
        let twice = twice.map(|x| splat(b, ty, x));
        let terms = Terms::new(b, ty);
        let [value, excess] = twice.map(|x| terms.float_of(x));
        let along = Double { value, excess }.times(terms.float_of(normal));
        let incident = Double::from(terms.float_of(incident));
        incident.minus(along).rounded().value()
    })
}

/// With `d = dot(normal, incident)` and `k = 1 - eta * eta * (1 - d * d)`: 0 if `k < 0`, else
/// `eta * incident - (eta * d + sqrt(k)) * normal`; of steps whose rounding errors are kept.
pub(crate) fn refract(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (incident, normal, eta) = (args[0], args[1], args[2]);
        let ty = b.ty(incident);
        let parts = [normal, incident].map(|x| components(b, x));
        let ([value, excess], none) = {
            let scalar = b.ty(eta);
            let terms = Terms::new(b, scalar);
            let [normal, incident] = [0, 1].map(|k| floats(&terms, &parts[k]));
            let eta = terms.float_of(eta);
            let d = Double::dot(&normal, &incident);
            let one = Double::from(terms.float(1.0));
            let square = Double::product(eta, eta);
            let k = one.minus(square.times_double(one.minus(d.times_double(d))));
            // As a sum of two of which the second is small, `high - low`.
            let high = k.rounded();
            let low = (high - k.value) + k.excess;
            let root = high.sqrt();
            let excess = (root.fma(root, -high) + low) / (root + root);
            let excess = root.eq(0.0).pick(0.0, excess);
            let root = Double {
                value: root,
                excess,
            };
            let along = d.times(eta).plus(root);
            let parts = [along.value, along.excess].map(|x| x.value());
            (parts, high.lt(0.0).value())
        };
        let [value, excess, eta] = [value, excess, eta].map(|x| splat(b, ty, x));
        let through = {
            let terms = Terms::new(b, ty);
            let [value, excess, eta] = [value, excess, eta].map(|x| terms.float_of(x));
            let along = Double { value, excess }.times(terms.float_of(normal));
            let bent = Double::product(eta, terms.float_of(incident));
            bent.minus(along).rounded().value()
        };
        let zero = number(b, ty, 0.0);
        b.select(through, zero, none)
    })
}

/// `dot(reference, incident) < 0 ? normal : -normal`.
pub(crate) fn faceforward(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let d = dot_product(b, args[2], args[1]);
        let ty = b.ty(d);
        let zero = number(b, ty, 0.0);
        let against = b.lt(d, zero);
        let turned = b.neg(args[0]);
        b.select(turned, args[0], against)
    })
}
