//! Floats of which it is known that they are NaN or lie in the range of `i32`, as what expansions of
//! exponentials and trigonometric functions convert: their conversion needs no saturation (A5).
//!
//! An interval of a value holds for all its components. What is not followed here may be anything.

use std::collections::{HashMap, HashSet};

use invar_ir::{InstKind, Kernel, Op, Scalar, Value};

/// The least and the greatest that a value can be unless it is NaN.
type Interval = (f64, f64);

const ANY: Interval = (f64::NEG_INFINITY, f64::INFINITY);

/// Values of `f32` that are NaN or can be converted to `i32` without saturating.
pub(super) fn within_i32(kernel: &Kernel) -> HashSet<Value> {
    let mut intervals: HashMap<Value, Interval> = HashMap::new();
    let mut comparisons: HashMap<Value, (Op, Value, Value)> = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        let Some(result) = inst.results.first() else {
            return;
        };
        let of = |v: &Value| intervals.get(v).copied().unwrap_or(ANY);
        let interval = match &inst.kind {
            InstKind::Const(c) if c.scalar == Scalar::F32 => {
                let x = f64::from(f32::from_bits(c.bits as u32));
                (!x.is_nan()).then_some((x, x))
            }
            InstKind::Op { op, args, .. } => match (op, &args[..]) {
                (Op::Lt | Op::Gt, [a, b]) => {
                    comparisons.insert(*result, (*op, *a, *b));
                    None
                }
                (Op::Construct, [only]) => intervals.get(only).copied(),
                (Op::Rint, [x]) => Some((of(x).0.floor(), of(x).1.ceil())),
                (Op::Mul, [a, b]) => {
                    let ((a, b), (c, d)) = (of(a), of(b));
                    let all = [a * c, a * d, b * c, b * d];
                    // A step of rounding is far less than what is left to the range's ends.
                    all.iter().all(|x| x.is_finite()).then(|| {
                        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                        (least, most)
                    })
                }
                // select(x, c, x < c) is at least c, select(x, c, x > c) at most c.
                (Op::Select, [x, c, condition]) => match comparisons.get(condition) {
                    Some((op, left, right)) if left == x && right == c => {
                        let ((a, b), (low, high)) = (of(x), of(c));
                        Some(match op {
                            Op::Lt => (a.max(low), b.max(high)),
                            _greater => (a.min(low), b.min(high)),
                        })
                    }
                    _other => None,
                },
                _other => None,
            },
            _other => None,
        };
        if let Some(interval) = interval {
            intervals.insert(*result, interval);
        }
    });
    let limit = 2_147_483_000.0;
    intervals
        .into_iter()
        .filter(|(_, (least, most))| *least >= -limit && *most <= limit)
        .map(|(value, _)| value)
        .collect()
}
