//! Numbers of more than 64 bits in code: enough for sums of indices and rows.

use invar_ir::inst::Value;
use invar_ir::{Const, KernelBuilder, Scalar, Type};

use super::{I64, clamped, constant};

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

    /// `high * 2^32 + low` for any `low`: what it has beyond its bits goes up. An arithmetic shift rounds
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

    /// As an `i64`; about ±[`super::NARROW_LIMIT`] if it is beyond.
    pub(super) fn near(self, b: &mut KernelBuilder) -> Value {
        let bits = constant(b, BITS);
        let high = clamped(b, self.high, super::NARROW_LIMIT >> BITS);
        let high = b.shl(high, bits);
        b.add(high, self.low)
    }
}
