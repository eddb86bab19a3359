//! Ranges of floats: an interval in which each certainly lies unless it is NaN, as far as what computes it
//! says. Conversions to integers that it fits need no saturation (A5).
//!
//! Invariants: an interval holds after all rounding, fused or not, also where subnormal numbers become zero; that
//! of a vector holds for each of its components. It is of floats that are computed as they are written, to within
//! the op table's bounds.
//!
//! Deliberately absent: integers, whose ranges are [`super::ranges`]'s; loops, and what conditions of an `if` say.

use invar_ir::{Const, Inst, InstKind, Kernel, Op, Scalar, Value};

use crate::passes::common::definitions;

/// The least and the greatest that a float may be.
pub type Interval = [f64; 2];

/// Anything.
pub const ANY: Interval = [f64::NEG_INFINITY, f64::INFINITY];

/// The intervals of a kernel's floats.
#[derive(Clone, Debug)]
pub struct Floats {
    values: Vec<Interval>,
    numbers: Vec<bool>,
}

impl Floats {
    /// The least and the greatest that a float may be where it is not NaN.
    pub fn of(&self, value: Value) -> Interval {
        self.values[value.0 as usize]
    }

    /// Whether a float is certainly not NaN.
    pub fn is_number(&self, value: Value) -> bool {
        self.numbers[value.0 as usize]
    }

    /// Whether a float is NaN or in the range of `i32`.
    pub fn is_within_i32(&self, value: Value) -> bool {
        let [low, high] = self.of(value);
        low > -2_147_483_649.0 && high < 2_147_483_648.0
    }
}

/// Finds the intervals of a kernel's floats.
///
/// ```
/// use invar_codegen::analysis::floats::analyse;
/// use invar_ir::Value;
///
/// let text = "kernel @k(%x: device read_write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     %least = const f32 -100.0
///     %below = lt %v, %least
///     %low = select %v, %least, %below
///     %size = abs %low
///     store %x[%i], %size
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let floats = analyse(&module.kernels[0]);
/// assert_eq!(floats.of(Value(4)), [-100.0, f64::INFINITY]);
/// assert_eq!(floats.of(Value(5)), [0.0, f64::INFINITY]);
/// assert!(floats.is_number(Value(2)) && !floats.is_number(Value(5)));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(kernel: &Kernel) -> Floats {
    let mut walk = Walk {
        kernel,
        definitions: definitions(kernel),
        values: vec![ANY; kernel.values.len()],
        numbers: vec![false; kernel.values.len()],
    };
    kernel.for_each_inst(&mut |inst| {
        if let Some(result) = inst.results.first() {
            walk.values[result.0 as usize] = walk.interval(inst, *result);
            walk.numbers[result.0 as usize] = walk.is_number(inst, *result);
        }
    });
    Floats {
        values: walk.values,
        numbers: walk.numbers,
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    /// What computes each value.
    definitions: Vec<Option<&'k Inst>>,
    values: Vec<Interval>,
    /// Which of them are certainly not NaN.
    numbers: Vec<bool>,
}

impl Walk<'_> {
    /// Whether a scalar is certainly not NaN.
    fn is_number(&self, inst: &Inst, result: Value) -> bool {
        let Some((op, _, args)) = inst.kind.as_op() else {
            return self.constant(result).is_some_and(|x| !x.is_nan());
        };
        let is_number = |value: &Value| self.numbers[value.0 as usize];
        let is_finite = |value: &Value| {
            let [low, high] = self.values[value.0 as usize];
            is_number(value) && low.is_finite() && high.is_finite()
        };
        match op {
            Op::Cast => self.kernel.ty(args[0]).is_integer_scalar(),
            // Of a NaN and a number they give the number.
            Op::Fmin | Op::Fmax => args.iter().any(is_number),
            Op::Rint | Op::Floor | Op::Ceil | Op::Trunc | Op::Abs | Op::Neg => {
                args.iter().all(is_number)
            }
            Op::Add | Op::Sub | Op::Mul => args.iter().all(is_finite),
            _unknown => false,
        }
    }

    fn interval(&self, inst: &Inst, result: Value) -> Interval {
        let Some((op, _, args)) = inst.kind.as_op() else {
            return match self.constant(result) {
                Some(x) if !x.is_nan() => [x, x],
                _nan_or_unknown => ANY,
            };
        };
        let of = |i: usize| self.values[args[i].0 as usize];
        let Some(format) = self.kernel.ty(result).scalar() else {
            return ANY;
        };
        let rounded =
            |[low, high]: Interval| [rounded_down(low, format), -rounded_down(-high, format)];
        match op {
            Op::Construct => (0..args.len()).map(of).reduce(hull).unwrap_or(ANY),
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
            Op::Mul => rounded(product(of(0), of(1))),
            Op::Fma => {
                let c = of(2);
                // Where it is not fused, the product is rounded too.
                let [low, high] = rounded(product(of(0), of(1)));
                rounded([low + c[0], high + c[1]])
            }
            Op::Min | Op::Fmin | Op::Max | Op::Fmax => {
                // Of a NaN and a number they give the number.
                let limit = |i: usize| self.constant(args[i]).filter(|x| !x.is_nan());
                let all = hull(of(0), of(1));
                match (limit(0).or(limit(1)), op) {
                    (Some(limit), Op::Min | Op::Fmin) => [all[0], limit],
                    (Some(limit), _max) => [limit, all[1]],
                    (None, _any) => all,
                }
            }
            Op::Select => {
                let [no, yes] = [(0, false), (1, true)]
                    .map(|(i, holds)| self.narrowed(args[2], holds, args[i], of(i)));
                hull(no, yes)
            }
            _unknown => ANY,
        }
    }

    /// The interval of a value where a condition holds, or does not.
    fn narrowed(
        &self,
        condition: Value,
        holds: bool,
        value: Value,
        [low, high]: Interval,
    ) -> Interval {
        let compared = self.definitions[condition.0 as usize].and_then(|inst| inst.kind.as_op());
        let Some((op, _, args)) = compared else {
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
        match self.constant(other) {
            Some(bound) if bound.is_nan() => [low, high],
            Some(bound) if is_less => [low, high.min(bound)],
            Some(bound) => [low.max(bound), high],
            None => [low, high],
        }
    }

    /// A constant's number, or that of all components.
    fn constant(&self, value: Value) -> Option<f64> {
        let inst = self.definitions[value.0 as usize]?;
        if let InstKind::Const(constant) = &inst.kind {
            return float_value(*constant);
        }
        match inst.kind.as_op() {
            Some((Op::Construct, _, [only])) => self.constant(*only),
            _other => None,
        }
    }
}

fn hull(a: Interval, b: Interval) -> Interval {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// The interval of a product, before rounding.
fn product(a: Interval, b: Interval) -> Interval {
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
/// in every format, and not across 0. Below where the format overflows it may be anything.
fn rounded_down(x: f64, format: Scalar) -> f64 {
    let large = match format {
        Scalar::F64 => 1e308,
        Scalar::F32 | Scalar::BF16 => 3e38,
        _shorter => 60_000.0,
    };
    if x.is_nan() || x <= -large {
        return f64::NEG_INFINITY;
    }
    let low = if x.is_finite() {
        x - (x.abs() / 64.0 + 1.0)
    } else {
        x
    };
    if x >= 0.0 { low.max(0.0) } else { low }
}

/// A constant's number.
fn float_value(constant: Const) -> Option<f64> {
    match constant.scalar {
        Scalar::F32 => Some(f32::from_bits(constant.bits as u32).into()),
        Scalar::F64 => Some(f64::from_bits(constant.bits)),
        _short_or_integer => None,
    }
}
