//! Constants as text.

use invar_ir::{Const, Scalar, Type};

use super::helpers::Helper;
use super::types::{splat, widen_f16, zero};
use super::writer::Writer;

impl Writer<'_> {
    /// A constant. What no literal can say, an infinity, a NaN, a subnormal or -0, comes from bits that
    /// the target's front end cannot fold; where zeros are hidden, 0 does too.
    pub(super) fn literal(&mut self, c: Const) -> String {
        match c.scalar {
            Scalar::Bool => if c.bits != 0 { "true" } else { "false" }.to_string(),
            Scalar::I8 | Scalar::I16 | Scalar::I32 => match c.scalar.integer(c.bits) {
                n if n == i128::from(i32::MIN) => "i32(-2147483648)".to_string(),
                n if n < 0 => format!("({n}i)"),
                n => format!("{n}i"),
            },
            Scalar::U8 | Scalar::U16 | Scalar::U32 => format!("{}u", c.bits),
            Scalar::I64 => match c.bits as i64 {
                i64::MIN => "i64(9223372036854775808lu)".to_string(),
                n if n < 0 => format!("({n}li)"),
                n => format!("{n}li"),
            },
            Scalar::U64 => format!("{}lu", c.bits),
            Scalar::F32 => self.float(f32::from_bits(c.bits as u32)),
            Scalar::BF16 => self.float(f32::from_bits((c.bits as u32) << 16)),
            Scalar::F16 => {
                let widened = widen_f16(c.bits as u16);
                let magnitude = c.bits & 0x7fff;
                let zero = c.bits == 0 && !self.options.features.hides_zeros;
                let says_a_literal = zero || (0x0400..0x7c00).contains(&magnitude);
                match (self.options.features.f16, says_a_literal) {
                    (false, _) => self.float(widened),
                    (true, true) if widened < 0.0 => format!("({widened:?}h)"),
                    (true, true) => format!("{widened:?}h"),
                    (true, false) => format!("float16({})", self.float_of_bits(widened)),
                }
            }
            Scalar::F64 => format!("{:?}lf", f64::from_bits(c.bits)),
        }
    }

    /// As [`zero`], of what a kernel computes with.
    pub(super) fn zero(&mut self, ty: Type) -> String {
        match (ty, ty.scalar()) {
            (Type::Scalar(_) | Type::Vector(..), Some(scalar))
                if scalar.is_float() && self.options.features.hides_zeros =>
            {
                splat(ty, &self.literal(Const { scalar, bits: 0 }))
            }
            _known => zero(ty),
        }
    }

    /// A constant that no compiler knows, where it is a float.
    pub(super) fn hidden(&mut self, c: Const) -> String {
        match c.scalar {
            Scalar::F32 => self.float_of_bits(f32::from_bits(c.bits as u32)),
            Scalar::BF16 => self.float_of_bits(f32::from_bits((c.bits as u32) << 16)),
            Scalar::F16 => {
                let widened = self.float_of_bits(widen_f16(c.bits as u16));
                format!("float16({widened})")
            }
            _no_float => self.literal(c),
        }
    }

    fn float(&mut self, x: f32) -> String {
        if x.is_normal() || x.to_bits() == 0 && !self.options.features.hides_zeros {
            return if x < 0.0 {
                format!("({x:?}f)")
            } else {
                format!("{x:?}f")
            };
        }
        self.float_of_bits(x)
    }

    fn float_of_bits(&mut self, x: f32) -> String {
        let bits = x.to_bits();
        if self.options.features.hides_zeros {
            self.need(Helper::HiddenBits);
            return format!("bitcast<f32>(hidden_bits({bits:#x}u))");
        }
        self.need(Helper::ZeroBits);
        format!("bitcast<f32>({bits:#x}u | zero_bits)")
    }
}
