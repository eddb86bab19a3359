//! Rounding, limits and interpolation.

use super::double::{Double, finite_or};
use super::shared::{fast_two_sum, two_product, two_sum};
use super::term::{Bool, Float, Term, Terms};
use super::{constant, in_f32, number, scalar_of};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::{Imm, Op};
use crate::types::Scalar;

/// `t = trunc(x)`, away from zero by 1 if `|x - t|`, which is exact, is at least a half.
pub(crate) fn round(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let x = args[0];
    let ty = b.ty(x);
    let whole = b.trunc(x);
    let rest = b.sub(x, whole);
    let rest = b.abs(rest);
    let one = number(b, ty, 1.0);
    let one = b.copysign(one, x);
    let next = b.add(whole, one);
    let half = number(b, ty, 0.5);
    let up = b.ge(rest, half);
    b.select(whole, next, up)
}

/// 1, -1, `x` itself if it is a zero, 0 if it is NaN.
pub(crate) fn sign(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let x = args[0];
    let ty = b.ty(x);
    let [zero, one, minus] = [0.0, 1.0, -1.0].map(|k| number(b, ty, k));
    let is_zero = b.eq(x, zero);
    let rest = b.select(zero, x, is_zero);
    let above = b.gt(x, zero);
    let rest = b.select(rest, one, above);
    let below = b.lt(x, zero);
    b.select(rest, minus, below)
}

/// `fmin(fmax(x, 0), 1)`.
pub(crate) fn saturate(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let zero = number(b, ty, 0.0);
    let one = number(b, ty, 1.0);
    let x = b.fmax(args[0], zero);
    b.fmin(x, one)
}

/// `x - floor(x)`, the largest value below 1 where that rounds to 1.
pub(crate) fn fract(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let floor = b.floor(args[0]);
    let rest = b.sub(args[0], floor);
    let below_one = match scalar_of(ty) {
        Scalar::F16 => 0x3bff,
        Scalar::BF16 => 0x3f7f,
        Scalar::F32 => 0x3f7f_ffff,
        _ => 0x3fef_ffff_ffff_ffff,
    };
    let below_one = constant(b, ty, below_one);
    let one = number(b, ty, 1.0);
    let too_large = b.ge(rest, one);
    b.select(rest, below_one, too_large)
}

/// `x < edge ? 0 : 1`.
pub(crate) fn step(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let ty = b.ty(args[0]);
    let zero = number(b, ty, 0.0);
    let one = number(b, ty, 1.0);
    let before = b.lt(args[1], args[0]);
    b.select(one, zero, before)
}

/// `min(max(x, low), high)`.
pub(crate) fn clamp(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let x = b.max(args[0], args[1]);
    b.min(x, args[2])
}

/// `x + (y - x) * a`, of a difference, products and sums whose rounding errors are kept.
///
/// With `d - e` the difference exactly, `p` and `q` the products `d * -a` and `e * a` rounded, and
/// `p_low` and `q_low` what those lack, the result is `x - p - p_low - q - q_low`. Only what cannot count
/// is left out: where `x - p` cancels it is exact, and so is its sum with what comes next where that
/// cancels in turn. `p_low` is a multiple of the last place of `q`, so the short sum of the two is
/// exact. A model of this with 4 to 6 digits, run over all mantissas, is at most 1 ulp off.
pub(crate) fn mix(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let ty = b.ty(args[0]);
        let terms = Terms::new(b, ty);
        let [x, y, a] = [0, 1, 2].map(|k| terms.float_of(args[k]));
        let way = Double::sum(y, -x);
        let minus_a = -a;
        let p = way.value.fma(minus_a, -0.0);
        let p_low = way.value.fma(minus_a, -p);
        let q = way.excess.fma(a, -0.0);
        let q_low = way.excess.fma(a, -q);
        let sum = Double::sum(x, -p);
        let (rest, lost) = fast_two_sum(p_low, q);
        let result = (sum.value - (sum.excess + rest)) - (lost + q_low);
        finite_or(result, way.value.fma(a, x)).value()
    })
}

/// `t * t * (3 - 2 * t)` with `t = (x - low) / (high - low)`, where `t` is between 0 and 1; all
/// steps but the last keep what rounding loses.
///
/// Where those losses would underflow, which they do of a small `t` and of a small `high - low`, it is
/// computed of both times powers of two; where a step of the differences would overflow, of a quarter of
/// the operands.
pub(crate) fn smoothstep(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let ty = b.ty(args[0]);
        let terms = Terms::new(b, ty);
        let operands = [0, 1, 2].map(|k| terms.float_of(args[k]));
        let (way, distance) = differences(operands);
        let part = part_of(way, distance);
        let t = part.0;
        let two_to = |f32, f64| 2f64.powi(terms.by_format(f32, f64));
        let size = distance.0.abs();
        let underflows = t.lt(two_to(-50, -480)) | size.lt(two_to(-60, -480));
        // Then the losses are infinite or NaN, and `t` may be.
        let overflows = !part.1.abs().lt(f64::INFINITY);
        let [p, f, rest] = ease(part, part);
        let usual = [p.fma(f, rest).value(), t.value()];
        let exceptional = (is_inside(t) & underflows) | overflows;
        let [result, t] = terms.rarely(exceptional, usual, || {
            let [one, quarter] = [1.0, 0.25].map(|k| terms.float(k));
            let large = two_to(126, 1022);
            let is_large = operands[0].abs().ge(large) | operands[1].abs().ge(large);
            let down = is_large.pick(quarter, one);
            let (way, distance) = differences(operands.map(|x| x.fma(down, -0.0)));
            let up = distance.0.abs().lt(two_to(-20, -200));
            let up = up.pick(two_to(100, 900), one);
            let part = part_of(times(way, up), times(distance, up));
            let is_near = part.0.lt(two_to(-50, -480));
            let up = is_near.pick(two_to(45, 450), one);
            let down = is_near.pick(two_to(-45, -450), one);
            let [p, f, rest] = ease(part, times(part, up));
            let result = p.fma(f, -0.0);
            let low = p.fma(f, -result);
            // What becomes subnormal is rounded once, to the units in the last place of this.
            let grid = two_to(-36, -122);
            let grid = (is_near & result.lt(grid)).pick(grid, terms.float(0.0));
            let (sum, lost) = fast_two_sum(grid, result);
            let result = (sum + (lost + (low + rest))) - grid;
            [((result * down) * down).value(), part.0.value()]
        });
        let t = terms.float_of(t);
        let outside = t.ge(1.0).pick(1.0, terms.float(0.0));
        is_inside(t).pick(terms.float_of(result), outside).value()
    })
}

/// A number and what it lacks.
type Exact<'t> = (Float<'t>, Float<'t>);

/// `x - low` and `high - low`.
fn differences<'t>([low, high, x]: [Float<'t>; 3]) -> (Exact<'t>, Exact<'t>) {
    (two_sum(x, -low), two_sum(high, -low))
}

fn is_inside<'t>(t: Float<'t>) -> Bool<'t> {
    t.gt(0.0) & t.lt(1.0)
}

fn times<'t>((x, low): Exact<'t>, factor: Float<'t>) -> Exact<'t> {
    (x.fma(factor, -0.0), low.fma(factor, -0.0))
}

/// `way / distance`.
fn part_of<'t>(way: Exact<'t>, distance: Exact<'t>) -> Exact<'t> {
    let t = way.0 / distance.0;
    let rest = (-t).fma(distance.0, way.0) + way.1;
    (t, (-t).fma(distance.1, rest) / distance.0)
}

/// `s * s * (3 - 2 * t)` as `a * b + c`, where `s` is `t` times a power of two.
///
/// With `t + e` and `s + g` exactly, `p + p_low` the square of `s` and `f + f_low` the factor, the result
/// is `p * f + (p * f_low + p_low * f + 6 * s * (1 - t) * g)`.
fn ease<'t>((t, _): Exact<'t>, (s, s_low): Exact<'t>) -> [Float<'t>; 3] {
    let terms = t.terms();
    let (p, p_low) = two_product(s, s);
    let f = t.fma(-2.0, 3.0);
    let f_low = t.fma(-2.0, terms.float(3.0) - f);
    let slope = (s * 6.0) * (terms.float(1.0) - t);
    let rest = slope.fma(s_low, p.fma(f_low, p_low * f));
    let rest = rest.abs().lt(f64::INFINITY).pick(rest, 0.0);
    [p, f, rest]
}

/// 0.
pub(crate) fn grid_origin(b: &mut KernelBuilder, _: Imm, _: &[Value]) -> Value {
    b.const_u32(0)
}

/// `threads_per_grid`.
pub(crate) fn grid_size(b: &mut KernelBuilder, imm: Imm, _: &[Value]) -> Value {
    b.op(Op::ThreadsPerGrid, imm, &[])
}

/// `threads_per_simdgroup`.
pub(crate) fn thread_execution_width(b: &mut KernelBuilder, _: Imm, _: &[Value]) -> Value {
    b.threads_per_simdgroup()
}
