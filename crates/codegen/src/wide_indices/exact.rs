//! Numbers of more than 64 bits in code: enough for sums of indices and rows.

use invar_ir::inst::Value;
use invar_ir::{Const, KernelBuilder, Scalar, Type};

/// No memory has as many elements; a few such numbers can be added in 64 bits.
pub(super) const NARROW_LIMIT: i64 = 1 << 52;
pub(super) const I64: Type = Type::Scalar(Scalar::I64);

/// `high * 2^32 + low`, both `i64`, and `low` in `0..2^32`.
#[derive(Clone, Copy)]
pub(super) struct Exact {
    pub(super) high: Value,
    pub(super) low: Value,
}

/// Bits of `low`.
const BITS: i64 = 32;
const LOW: i64 = (1 << BITS) - 1;

impl Exact {
    /// An index or count of any integer type.
    pub(super) fn of(b: &mut KernelBuilder, value: Value) -> Exact {
        let ty = Type::Scalar(Scalar::U64);
        if b.ty(value) == ty {
            let [bits, mask] = [BITS, LOW].map(|n| {
                b.constant(Const {
                    scalar: Scalar::U64,
                    bits: n as u64,
                })
            });
            let high = b.shr(value, bits);
            let low = b.and(value, mask);
            let [high, low] = [high, low].map(|v| b.cast(v, I64));
            return Exact { high, low };
        }
        let zero = constant(b, 0);
        let value = if b.ty(value) == I64 {
            value
        } else {
            b.cast(value, I64)
        };
        Exact::carried(b, zero, value)
    }

    /// `high * 2^32 + low` for any `low`: what it has beyond its bits goes up. An arithmetic shift iterations
    /// down, so that what stays is not negative.
    fn carried(b: &mut KernelBuilder, high: Value, low: Value) -> Exact {
        let (bits, mask) = (constant(b, BITS), constant(b, LOW));
        let carry = b.shr(low, bits);
        Exact {
            high: b.add(high, carry),
            low: b.and(low, mask),
        }
    }

    pub(super) fn plus(self, b: &mut KernelBuilder, other: Exact) -> Exact {
        let (high, low) = (b.add(self.high, other.high), b.add(self.low, other.low));
        Exact::carried(b, high, low)
    }

    pub(super) fn minus(self, b: &mut KernelBuilder, other: Exact) -> Exact {
        let (high, low) = (b.sub(self.high, other.high), b.sub(self.low, other.low));
        Exact::carried(b, high, low)
    }

    /// The sum with a step that is added again and again: what is further than 2^92 went there by such
    /// steps, and will not come back.
    pub(super) fn onward(self, b: &mut KernelBuilder, step: Exact) -> Exact {
        let sum = self.plus(b, step);
        Exact {
            high: clamped(b, sum.high, 1 << 60),
            low: sum.low,
        }
    }

    pub(super) fn is_negative(self, b: &mut KernelBuilder) -> Value {
        let zero = constant(b, 0);
        b.lt(self.high, zero)
    }

    /// As an `i64`; about ±[`NARROW_LIMIT`] if it is beyond.
    pub(super) fn near(self, b: &mut KernelBuilder) -> Value {
        let bits = constant(b, BITS);
        let high = clamped(b, self.high, NARROW_LIMIT >> BITS);
        let high = b.shl(high, bits);
        b.add(high, self.low)
    }
}

pub(super) fn constant(b: &mut KernelBuilder, value: i64) -> Value {
    b.constant(Const {
        scalar: Scalar::I64,
        bits: value as u64,
    })
}

/// An index or count as an `i64`, the largest one if it is larger.
pub(super) fn saturated(b: &mut KernelBuilder, value: Value) -> Value {
    let mut value = value;
    if b.ty(value) == Type::Scalar(Scalar::U64) {
        let most = b.constant(Const {
            scalar: Scalar::U64,
            bits: i64::MAX as u64,
        });
        value = b.min(value, most);
    }
    if b.ty(value) == I64 {
        value
    } else {
        b.cast(value, I64)
    }
}

/// Whether a number is within ±[`NARROW_LIMIT`].
pub(super) fn is_near(b: &mut KernelBuilder, value: Value) -> Value {
    let value = saturated(b, value);
    let inside = clamped(b, value, NARROW_LIMIT);
    b.eq(value, inside)
}

pub(super) fn clamped(b: &mut KernelBuilder, value: Value, limit: i64) -> Value {
    let (least, most) = (constant(b, -limit), constant(b, limit));
    let value = b.max(value, least);
    b.min(value, most)
}
