//! The range of a float, as far as what computes it says: conversions to integers that it fits need
//! no saturation.
//!
//! Invariant: a range holds for every value but NaN, after all rounding. Deliberately absent: integers,
//! whose ranges over a threadgroup `guards.rs` computes while the kernel runs.

use invar_ir::inst::{Const, InstKind, Value};
use invar_ir::{Op, Scalar};

use crate::plan::Plan;

/// How deep expressions are looked into.
const DEPTH: u32 = 12;
const ANY: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// The least and the greatest that a float may be where it is not NaN.
pub(crate) fn range(plan: &Plan<'_>, value: Value) -> [f64; 2] {
    range_of(plan, value, 0)
}

/// As [`range`], so deep in an expression.
fn range_of(plan: &Plan<'_>, value: Value, depth: u32) -> [f64; 2] {
    let Some(inst) = plan.definitions.get(&value).filter(|_| depth < DEPTH) else {
        return ANY;
    };
    if let InstKind::Const(c) = &inst.kind {
        return match float_value(*c) {
            Some(x) if !x.is_nan() => [x, x],
            _other => ANY,
        };
    }
    let Some((op, _, args)) = inst.kind.as_op() else {
        return ANY;
    };
    let of = |i: usize| range_of(plan, args[i], depth + 1);
    let rounded = |[low, high]: [f64; 2]| [rounded_down(low), -rounded_down(-high)];
    match op {
        Op::Abs => {
            let [low, high] = of(0);
            [0.0, high.max(-low)]
        }
        Op::Neg => {
            let [low, high] = of(0);
            [-high, -low]
        }
        Op::Rint | Op::Floor | Op::Ceil | Op::Trunc => {
            let [low, high] = of(0);
            [low.floor(), high.ceil()]
        }
        Op::Add => {
            let [a, b] = [of(0), of(1)];
            rounded([a[0] + b[0], a[1] + b[1]])
        }
        Op::Sub => {
            let [a, b] = [of(0), of(1)];
            rounded([a[0] - b[1], a[1] - b[0]])
        }
        Op::Mul => {
            let [a, b] = [of(0), of(1)];
            rounded(product(a, b))
        }
        Op::Fma => {
            let [a, b, c] = [of(0), of(1), of(2)];
            let [low, high] = product(a, b);
            rounded([low + c[0], high + c[1]])
        }
        Op::Select => {
            let [no, yes] = [(0, false), (1, true)]
                .map(|(i, holds)| narrowed(plan, args[2], holds, args[i], of(i)));
            [no[0].min(yes[0]), no[1].max(yes[1])]
        }
        _unknown => ANY,
    }
}

/// The range of a product, before rounding.
fn product(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    let ends = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]];
    if ends.iter().any(|x| x.is_nan()) {
        return ANY;
    }
    [
        ends.into_iter().fold(f64::INFINITY, f64::min),
        ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// The least that a number of at least `x` becomes when it is rounded to a format: by less than the slack,
/// in every format, and not across 0. Below where the smallest format overflows it may be anything.
fn rounded_down(x: f64) -> f64 {
    const LARGE: f64 = 60_000.0;
    if x.is_nan() || x <= -LARGE {
        return f64::NEG_INFINITY;
    }
    let low = if x.is_finite() {
        x - (x.abs() / 64.0 + 1.0)
    } else {
        x
    };
    if x >= 0.0 { low.max(0.0) } else { low }
}

/// The range of a value where a condition holds, or does not.
fn narrowed(
    plan: &Plan<'_>,
    condition: Value,
    holds: bool,
    value: Value,
    [low, high]: [f64; 2],
) -> [f64; 2] {
    let compared = plan.definitions.get(&condition);
    let Some((op, _, args)) = compared.and_then(|inst| inst.kind.as_op()) else {
        return [low, high];
    };
    let (is_less, other) = match (op, args) {
        (Op::Lt | Op::Le, [a, b]) if *a == value => (holds, *b),
        (Op::Lt | Op::Le, [b, a]) if *a == value => (!holds, *b),
        (Op::Gt | Op::Ge, [a, b]) if *a == value => (!holds, *b),
        (Op::Gt | Op::Ge, [b, a]) if *a == value => (holds, *b),
        _other => return [low, high],
    };
    // Where the other may be NaN, a comparison that does not hold says nothing.
    let Some(InstKind::Const(c)) = plan.definitions.get(&other).map(|inst| &inst.kind) else {
        return [low, high];
    };
    match float_value(*c) {
        Some(bound) if bound.is_nan() => [low, high],
        Some(bound) if is_less => [low, high.min(bound)],
        Some(bound) => [low.max(bound), high],
        None => [low, high],
    }
}

/// A constant's number.
fn float_value(constant: Const) -> Option<f64> {
    match constant.scalar {
        Scalar::F32 => Some(f32::from_bits(constant.bits as u32).into()),
        Scalar::F64 => Some(f64::from_bits(constant.bits)),
        _short_or_integer => None,
    }
}
