//! Quotients of small integers by constants, as two products that are as exact: for codes that stand for fractions,
//! such as those of pictures.
//!
//! ```text
//! f32(c) / d   =   fma(f32(c), high, f32(c) * low)
//! ```
//!
//! `high` is the `f32` nearest to `1 / d`, and `low` the one nearest to what it lacks. The two sides are bit for bit
//! the same for nearly all `d`; here they are for every `c` there is: each is tried.
//!
//! Deliberately absent: divisors that are not constants, or so large or small that a product is subnormal; powers of
//! two, whose quotients are products already; other floats.

use std::collections::HashMap;

use invar_ir::{InstKind, Kernel, Op, Scalar, Type, Value};

use super::ranges::{self, Range, Ranges};
use crate::passes::common::definitions;

/// So many numbers are tried: those of 16 bits.
const MOST_NUMBERS: i128 = 1 << 16;

/// What divides by a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reciprocal {
    /// The nearest to `1 / d`.
    pub high: f32,
    /// The nearest to what that lacks.
    pub low: f32,
    /// It divides bytes by 255: what comes of it is the byte again and again behind the point.
    pub of_bytes: bool,
}

impl Reciprocal {
    /// That of a divisor, if it divides each of these numbers exactly as division does.
    ///
    /// ```
    /// use invar_codegen::analysis::quotients::Reciprocal;
    ///
    /// let of_bytes = Reciprocal::of((0, 255), 255.0).expect("as exact");
    /// assert_eq!(77f32.mul_add(of_bytes.high, 77.0 * of_bytes.low), 77.0 / 255.0);
    /// assert_eq!(Reciprocal::of((0, 255), 256.0), None);
    /// ```
    pub fn of((least, most): Range, divisor: f32) -> Option<Reciprocal> {
        let usual = 2f32.powi(-60)..2f32.powi(60);
        if !usual.contains(&divisor.abs()) || most - least >= MOST_NUMBERS {
            return None;
        }
        let exact = f64::from(divisor);
        let high = (1.0 / exact) as f32;
        // The product has at most 48 bits, so this is rounded once.
        let low = ((1.0 - f64::from(high) * exact) / exact) as f32;
        let is_exact = |number: i128| {
            let number = number as f32;
            let product = number.mul_add(high, number * low);
            product.to_bits() == (number / divisor).to_bits()
        };
        let all = low != 0.0 && (least..=most).all(is_exact);
        let of_bytes = least >= 0 && most <= 255 && divisor == 255.0;
        all.then_some(Reciprocal {
            high,
            low,
            of_bytes,
        })
    }
}

/// Finds the quotients of a kernel that products are, by their results.
///
/// ```
/// use invar_codegen::analysis::{quotients, ranges};
/// use invar_ir::Value;
///
/// let text = "kernel @k(%x: device read u8, %y: device write f32) {
///     %i = thread_position_in_grid x
///     %c = load %x[%i]
///     %number = cast f32 %c
///     %most = const f32 255
///     %fraction = div %number, %most
///     store %y[%i], %fraction
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let ranges = ranges::analyse(kernel, &ranges::Known::default());
/// let found = quotients::analyse(kernel, &ranges);
/// assert_eq!(found.keys().collect::<Vec<_>>(), [&Value(4)]);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(kernel: &Kernel, ranges: &Ranges) -> HashMap<Value, Reciprocal> {
    let definitions = definitions(kernel);
    let op = |value: Value| definitions[value.0 as usize].and_then(|inst| inst.kind.as_op());
    let constant = |value: Value| {
        // That of all components.
        let value = match op(value) {
            Some((Op::Construct, _, [only])) => *only,
            _a_scalar => value,
        };
        match &definitions[value.0 as usize]?.kind {
            InstKind::Const(c) if c.scalar == Scalar::F32 => Some(f32::from_bits(c.bits as u32)),
            _no_constant => None,
        }
    };
    let mut tried = HashMap::new();
    let mut found = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        let Some((Op::Div, _, [number, divisor])) = inst.kind.as_op() else {
            return;
        };
        let (Some(divisor), Some((Op::Cast, _, [integer]))) = (constant(*divisor), op(*number))
        else {
            return;
        };
        let of_type = || ranges::of_type(Type::Scalar(kernel.ty(*integer).scalar()?));
        let Some(range) = ranges.of(*integer).or_else(of_type) else {
            return;
        };
        let reciprocal = tried
            .entry((range, divisor.to_bits()))
            .or_insert_with(|| Reciprocal::of(range, divisor));
        if let Some(reciprocal) = reciprocal {
            found.insert(inst.results[0], *reciprocal);
        }
    });
    found
}
