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

/// Whether a float that is not NaN is inside of the range of an integer type, when truncated.
pub(crate) fn fits(plan: &Plan<'_>, value: Value, to: Scalar) -> bool {
    if !to.is_integer() {
        return false;
    }
    let bits = to.bits() as i32;
    let [least, most] = if to.is_signed_integer() {
        let half = 2f64.powi(bits - 1);
        [-half, half]
    } else {
        [0.0, 2f64.powi(bits)]
    };
    let [low, high] = range(plan, value, 0);
    least <= low && high < most
}

/// The least and the greatest that a float may be where it is not NaN.
fn range(plan: &Plan<'_>, value: Value, depth: u32) -> [f64; 2] {
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
    let of = |i: usize| range(plan, args[i], depth + 1);
    // Rounding moves a number by less than this, in every format, below where the smallest overflows.
    let rounded = |[low, high]: [f64; 2]| {
        const LARGE: f64 = 60_000.0;
        let slack = |x: f64| x.abs() / 64.0 + 1.0;
        if low > -LARGE && high < LARGE {
            [low - slack(low), high + slack(high)]
        } else {
            ANY
        }
    };
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
            [low - 1.0, high + 1.0]
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
            let ends = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]];
            if ends.iter().any(|x| x.is_nan()) {
                return ANY;
            }
            rounded([
                ends.into_iter().fold(f64::INFINITY, f64::min),
                ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
            ])
        }
        Op::Select => {
            let [no, yes] = [(0, false), (1, true)]
                .map(|(i, holds)| narrowed(plan, args[2], holds, args[i], of(i)));
            [no[0].min(yes[0]), no[1].max(yes[1])]
        }
        _unknown => ANY,
    }
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
