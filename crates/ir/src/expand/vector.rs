//! Vectors. Sums of products accumulate in index order by fma (A11); `distance` and `normalize`,
//! which A11 does not name, keep what rounding loses.

use super::shared::{corrected, two_sum};
use super::term::{Float, Term, Terms};
use super::{components, in_f32, number, scalar_of, splat};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::{Imm, Swizzle};
use crate::types::Type;

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
pub(super) fn difference_of_products(b: &mut KernelBuilder, [x, y, z, t]: [Value; 4]) -> Value {
    let second = b.mul(z, t);
    let minus_z = b.neg(z);
    let lost = b.fma(minus_z, t, second);
    let minus_second = b.neg(second);
    let rest = b.fma(x, y, minus_second);
    b.add(rest, lost)
}

/// `x.yzx * y.zxy - x.zxy * y.yzx`.
pub(super) fn cross_product(b: &mut KernelBuilder, x: Value, y: Value) -> Value {
    let turned = |b: &mut KernelBuilder, v: Value, order: [u8; 3]| match Swizzle::new(&order) {
        Some(swizzle) => b.swizzle(v, swizzle),
        None => v,
    };
    let [up, down] = [[1, 2, 0], [2, 0, 1]];
    let parts = [(x, up), (y, down), (x, down), (y, up)].map(|(v, order)| turned(b, v, order));
    difference_of_products(b, parts)
}

fn length_of(b: &mut KernelBuilder, x: Value) -> Value {
    let square = dot_product(b, x, x);
    b.sqrt(square)
}

/// The sum of products.
pub(crate) fn dot(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| dot_product(b, args[0], args[1]))
}

/// `sqrt(dot(x, x))`.
pub(crate) fn length(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| length_of(b, args[0]))
}

/// The length of a vector and what it lacks of the exact one, to about twice as many digits as the
/// format has, short of overflow and underflow. Each component is a sum of two.
///
/// With `s + e` the sum of squares and `r = sqrt(s)`, the length is `r + (s - r * r + e) / 2r`.
fn exact_length<'t>(parts: &[(Float<'t>, Option<Float<'t>>)]) -> (Float<'t>, Float<'t>) {
    let terms = parts[0].0.terms();
    let mut sum = terms.float(0.0);
    let mut rest = terms.float(0.0);
    for &(x, low) in parts {
        // The product as an fma, since its sum must not become one.
        let square = x.fma(x, -0.0);
        let lost = x.fma(x, -square);
        let (next, error) = two_sum(sum, square);
        rest = rest + (error + lost);
        if let Some(low) = low {
            rest = (x + x).fma(low, rest);
        }
        sum = next;
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
        let parts: Vec<_> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| {
                let (way, low) = two_sum(terms.float_of(*x), -terms.float_of(*y));
                (way, Some(low))
            })
            .collect();
        let (root, lacks) = exact_length(&parts);
        corrected(root, lacks).value()
    })
}

/// `x / length(x)`, of a length whose rounding errors are kept: with `q = x / r` for the length
/// `r + c`, the quotient is `q + (x - q * r - q * c) / r`.
pub(crate) fn normalize(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let vector = b.ty(args[0]);
        let x = components(b, args[0]);
        let ty = b.ty(x[0]);
        let terms = Terms::new(b, ty);
        let x: Vec<Float> = x.iter().map(|x| terms.float_of(*x)).collect();
        let parts: Vec<_> = x.iter().map(|x| (*x, None)).collect();
        let (root, lacks) = exact_length(&parts);
        let results: Vec<Value> = x
            .iter()
            .map(|x| {
                let quotient = *x / root;
                let rest = (-quotient).fma(lacks, (-quotient).fma(root, *x)) / root;
                // A quotient of -0 keeps its sign.
                let result = corrected(quotient, rest);
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

/// `fma(-2 * dot(normal, incident), normal, incident)`.
pub(crate) fn reflect(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (incident, normal) = (args[0], args[1]);
        let ty = b.ty(incident);
        let d = dot_product(b, normal, incident);
        let minus_two = number(b, Type::Scalar(scalar_of(ty)), -2.0);
        let factor = b.mul(minus_two, d);
        let factor = splat(b, ty, factor);
        b.fma(factor, normal, incident)
    })
}

/// With `d = dot(normal, incident)` and `k = fma(-eta * eta, fma(-d, d, 1), 1)`: 0 if `k < 0`, else
/// `fma(-fma(eta, d, sqrt(k)), normal, eta * incident)`.
pub(crate) fn refract(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (incident, normal, eta) = (args[0], args[1], args[2]);
        let ty = b.ty(incident);
        let one_ty = b.ty(eta);
        let one = number(b, one_ty, 1.0);
        let d = dot_product(b, normal, incident);
        let minus_d = b.neg(d);
        let sine = b.fma(minus_d, d, one);
        let square = b.mul(eta, eta);
        let minus_square = b.neg(square);
        let k = b.fma(minus_square, sine, one);
        let root = b.sqrt(k);
        let along = b.fma(eta, d, root);
        let along = b.neg(along);
        let along = splat(b, ty, along);
        let eta = splat(b, ty, eta);
        let bent = b.mul(eta, incident);
        let through = b.fma(along, normal, bent);
        let zero = number(b, one_ty, 0.0);
        let none = b.lt(k, zero);
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
