//! The functions that are built in.

use invar_ir::{Const, Op, Scalar, Type, Value};
use naga::MathFunction as F;

use crate::translator::{Done, Translator};
use crate::value::{Index, Val};

const F16X2: Type = Type::Vector(Scalar::F16, 2);

impl Translator<'_> {
    /// A built-in function of these arguments.
    pub fn math(&mut self, function: F, args: &[Value]) -> Done<Val> {
        let mut args = args.to_vec();
        let ty = self.k.ty(args[0]);
        if function == F::Mix {
            args[2] = self.spread_like(args[2], ty);
        }
        let is_float = ty.scalar().is_some_and(Scalar::is_float);
        let is_vector = matches!(ty, Type::Vector(..));
        let op = match function {
            F::Abs if ty.scalar().is_some_and(Scalar::is_unsigned_integer) => {
                return Ok(Val::One(args[0]));
            }
            F::Abs => Op::Abs,
            F::Min => Op::Min,
            F::Max => Op::Max,
            F::Clamp => Op::Clamp,
            F::Saturate => Op::Saturate,
            F::Cos => Op::Cos,
            F::Cosh => Op::Cosh,
            F::Sin => Op::Sin,
            F::Sinh => Op::Sinh,
            F::Tan => Op::Tan,
            F::Tanh => Op::Tanh,
            F::Acos => Op::Acos,
            F::Asin => Op::Asin,
            F::Atan => Op::Atan,
            F::Atan2 => Op::Atan2,
            F::Asinh => Op::Asinh,
            F::Acosh => Op::Acosh,
            F::Atanh => Op::Atanh,
            F::Ceil => Op::Ceil,
            F::Floor => Op::Floor,
            // Ties to even.
            F::Round => Op::Rint,
            F::Fract => Op::Fract,
            F::Trunc => Op::Trunc,
            F::Ldexp => Op::Ldexp,
            F::Exp => Op::Exp,
            F::Exp2 => Op::Exp2,
            F::Log => Op::Log,
            F::Log2 => Op::Log2,
            F::Pow => Op::Pow,
            F::Dot if is_float => Op::Dot,
            F::Cross => Op::Cross,
            F::Distance if is_vector => Op::Distance,
            F::Length if is_vector => Op::Length,
            F::Normalize => Op::Normalize,
            F::FaceForward => Op::Faceforward,
            F::Reflect => Op::Reflect,
            F::Refract => Op::Refract,
            F::Sign if is_float => Op::Sign,
            F::Fma => Op::Fma,
            F::Mix => Op::Mix,
            F::Step => Op::Step,
            F::SmoothStep => Op::Smoothstep,
            F::Sqrt => Op::Sqrt,
            F::InverseSqrt => Op::Rsqrt,
            F::Transpose => Op::Transpose,
            F::Determinant => Op::Determinant,
            F::CountTrailingZeros => Op::Ctz,
            F::CountLeadingZeros => Op::Clz,
            F::CountOneBits => Op::Popcount,
            F::ReverseBits => Op::ReverseBits,
            F::ExtractBits => Op::ExtractBits,
            F::InsertBits => Op::InsertBits,
            F::Pack4x8snorm => Op::PackFloatToSnorm4x8,
            F::Pack4x8unorm => Op::PackFloatToUnorm4x8,
            F::Pack2x16snorm => Op::PackFloatToSnorm2x16,
            F::Pack2x16unorm => Op::PackFloatToUnorm2x16,
            F::Unpack4x8snorm => Op::UnpackSnorm4x8ToFloat,
            F::Unpack4x8unorm => Op::UnpackUnorm4x8ToFloat,
            F::Unpack2x16snorm => Op::UnpackSnorm2x16ToFloat,
            F::Unpack2x16unorm => Op::UnpackUnorm2x16ToFloat,
            F::Radians
            | F::Degrees
            | F::Modf
            | F::Frexp
            | F::Dot
            | F::Dot4I8Packed
            | F::Dot4U8Packed
            | F::Outer
            | F::Distance
            | F::Length
            | F::Sign
            | F::Inverse
            | F::QuantizeToF16
            | F::FirstTrailingBit
            | F::FirstLeadingBit
            | F::Pack2x16float
            | F::Pack4xI8
            | F::Pack4xU8
            | F::Pack4xI8Clamp
            | F::Pack4xU8Clamp
            | F::Unpack2x16float
            | F::Unpack4xI8
            | F::Unpack4xU8 => return self.composed(function, &args),
        };
        Ok(Val::One(self.op(op, &args)))
    }

    fn spread_like(&mut self, value: Value, like: Type) -> Value {
        match (self.k.ty(value), like) {
            (Type::Scalar(scalar), Type::Vector(_, n)) => {
                self.construct(Type::Vector(scalar, n), &[value])
            }
            _same => value,
        }
    }

    /// Functions made of several operations.
    fn composed(&mut self, function: F, args: &[Value]) -> Done<Val> {
        let x = args[0];
        let ty = self.k.ty(x);
        let scalar = ty.scalar();
        let i8s = matches!(
            function,
            F::Dot4I8Packed | F::Pack4xI8 | F::Pack4xI8Clamp | F::Unpack4xI8
        );
        let (narrow, wide) = if i8s {
            (Scalar::I8, Scalar::I32)
        } else {
            (Scalar::U8, Scalar::U32)
        };
        let (narrow4, wide4) = (Type::Vector(narrow, 4), Type::Vector(wide, 4));
        Ok(Val::One(match function {
            F::Radians | F::Degrees => {
                let factor = if function == F::Radians {
                    std::f64::consts::PI / 180.0
                } else {
                    180.0 / std::f64::consts::PI
                };
                let Some(constant) = scalar.and_then(|s| float(s, factor)) else {
                    return Err(self.unexpected("an angle that is not a float"));
                };
                let factor = self.splat(ty, constant);
                self.op(Op::Mul, &[x, factor])
            }
            F::Modf => {
                let whole = self.op(Op::Trunc, &[x]);
                let rest = self.op(Op::Sub, &[x, whole]);
                return Ok(Val::Many(vec![Val::One(rest), Val::One(whole)].into()));
            }
            F::Frexp => return self.frexp(x),
            F::Dot => {
                let products = self.op(Op::Mul, &[x, args[1]]);
                self.sum(products)?
            }
            F::Dot4I8Packed | F::Dot4U8Packed => {
                let mut factors = Vec::new();
                for packed in &args[..2] {
                    let bytes = self.k.op(Op::AsType, narrow4, &[*packed]);
                    factors.push(self.k.op(Op::Cast, wide4, &[bytes]));
                }
                let products = self.op(Op::Mul, &factors);
                self.sum(products)?
            }
            // Of scalars: of vectors there are operations.
            F::Length => self.op(Op::Abs, &[x]),
            F::Distance => {
                let difference = self.op(Op::Sub, &[x, args[1]]);
                self.op(Op::Abs, &[difference])
            }
            F::Sign => {
                let zero = self.zero_of(ty)?;
                let Some(of) = scalar else {
                    return Err(self.unexpected("the sign of no number"));
                };
                let one = self.splat(ty, integer(of, 1));
                let minus = self.splat(ty, integer(of, -1));
                let positive = self.op(Op::Gt, &[x, zero]);
                let negative = self.op(Op::Lt, &[x, zero]);
                let sign = self.op(Op::Select, &[zero, one, positive]);
                self.op(Op::Select, &[sign, minus, negative])
            }
            F::QuantizeToF16 => {
                let Some(half) = ty.with_scalar(Scalar::F16) else {
                    return Err(self.unexpected("expected a float"));
                };
                let half = self.k.op(Op::Cast, half, &[x]);
                self.k.op(Op::Cast, ty, &[half])
            }
            F::FirstTrailingBit => {
                let count = self.op(Op::Ctz, &[x]);
                let zero = self.zero_of(ty)?;
                let none = self.op(Op::Eq, &[x, zero]);
                let minus = self.op(Op::Not, &[zero]);
                self.op(Op::Select, &[count, minus, none])
            }
            F::FirstLeadingBit => {
                let Some(of) = scalar else {
                    return Err(self.unexpected("the bits of no number"));
                };
                let top = self.splat(ty, integer(of, i64::from(of.bits()) - 1));
                // Of a negative number, the highest bit that is not as the sign.
                let bits = if of.is_signed_integer() {
                    let sign = self.op(Op::Shr, &[x, top]);
                    self.op(Op::Xor, &[x, sign])
                } else {
                    x
                };
                let above = self.op(Op::Clz, &[bits]);
                self.op(Op::Sub, &[top, above])
            }
            F::Pack2x16float => {
                let halves = self.k.op(Op::Cast, F16X2, &[x]);
                self.k.op(Op::AsType, Type::U32, &[halves])
            }
            F::Unpack2x16float => {
                let halves = self.k.op(Op::AsType, F16X2, &[x]);
                self.k.op(Op::Cast, Type::Vector(Scalar::F32, 2), &[halves])
            }
            F::Pack4xI8 | F::Pack4xU8 => {
                let bytes = self.k.op(Op::Cast, narrow4, &[x]);
                self.k.op(Op::AsType, Type::U32, &[bytes])
            }
            F::Pack4xI8Clamp | F::Pack4xU8Clamp => {
                let (low, high) = if i8s { (-128, 127) } else { (0, 255) };
                let low = self.splat(ty, integer(wide, low));
                let high = self.splat(ty, integer(wide, high));
                let clamped = self.op(Op::Clamp, &[x, low, high]);
                let bytes = self.k.op(Op::Cast, narrow4, &[clamped]);
                self.k.op(Op::AsType, Type::U32, &[bytes])
            }
            F::Unpack4xI8 | F::Unpack4xU8 => {
                let bytes = self.k.op(Op::AsType, narrow4, &[x]);
                self.k.op(Op::Cast, wide4, &[bytes])
            }
            other => return Err(self.refuse(&format!("the function `{other:?}`"))),
        }))
    }

    /// The sum of a vector's components.
    fn sum(&mut self, vector: Value) -> Done<Value> {
        let count = self.k.ty(vector).component_count();
        let first = self.part(&Val::One(vector), Index::Constant(0))?;
        let mut sum = self.one(&first)?;
        for i in 1..count {
            let part = self.part(&Val::One(vector), Index::Constant(i))?;
            let part = self.one(&part)?;
            sum = self.op(Op::Add, &[sum, part]);
        }
        Ok(sum)
    }

    /// `x` as a fraction from 0.5 up to 1 and a power of two.
    fn frexp(&mut self, x: Value) -> Done<Val> {
        let ty = self.k.ty(x);
        if ty.scalar() != Some(Scalar::F32) {
            return Err(self.refuse("`frexp` of `f16`"));
        }
        let (Some(bits_type), Some(int_type)) =
            (ty.with_scalar(Scalar::U32), ty.with_scalar(Scalar::I32))
        else {
            return Err(self.unexpected("expected a float"));
        };
        let number = |t: &mut Self, n: u32| t.splat(bits_type, Const::from(n));
        // Subnormal numbers have their exponent after a scaling by 2^32.
        let magnitude = self.op(Op::Abs, &[x]);
        let zero = self.zero_of(ty)?;
        let least = self.splat(ty, Const::from(f32::MIN_POSITIVE));
        let small = self.op(Op::Lt, &[magnitude, least]);
        let scale = self.splat(ty, Const::from(4_294_967_296.0_f32));
        let scaled = self.op(Op::Mul, &[x, scale]);
        let x_scaled = self.op(Op::Select, &[x, scaled, small]);
        let bits = self.k.op(Op::AsType, bits_type, &[x_scaled]);
        let (width, mask, keep, half) = (
            number(self, 23),
            number(self, 0xff),
            number(self, 0x807f_ffff),
            number(self, 0x3f00_0000),
        );
        let exponent = self.op(Op::Shr, &[bits, width]);
        let exponent = self.op(Op::And, &[exponent, mask]);
        let exponent = self.k.op(Op::Cast, int_type, &[exponent]);
        let (bias, bias_small) = (
            self.splat(int_type, Const::from(126_i32)),
            self.splat(int_type, Const::from(126 + 32_i32)),
        );
        let bias = self.op(Op::Select, &[bias, bias_small, small]);
        let exponent = self.op(Op::Sub, &[exponent, bias]);
        let fraction = self.op(Op::And, &[bits, keep]);
        let fraction = self.op(Op::Or, &[fraction, half]);
        let fraction = self.k.op(Op::AsType, ty, &[fraction]);
        // Zeros, infinities and NaN are their own fraction.
        let is_zero = self.op(Op::Eq, &[x, zero]);
        let finite = self.op(Op::IsFinite, &[x]);
        let odd = self.op(Op::Not, &[finite]);
        let odd = self.op(Op::Or, &[odd, is_zero]);
        let fraction = self.op(Op::Select, &[fraction, x, odd]);
        let none = self.zero_of(int_type)?;
        let exponent = self.op(Op::Select, &[exponent, none, odd]);
        Ok(Val::Many(
            vec![Val::One(fraction), Val::One(exponent)].into(),
        ))
    }
}

/// An integer of that type.
fn integer(scalar: Scalar, value: i64) -> Const {
    let width = scalar.size_bytes() * 8;
    let mask = if width == 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    };
    Const {
        scalar,
        bits: value as u64 & mask,
    }
}

/// A float of that type.
fn float(scalar: Scalar, value: f64) -> Option<Const> {
    match scalar {
        Scalar::F16 => Some(Const::from(half::f16::from_f64(value))),
        Scalar::F32 => Some(Const::from(value as f32)),
        Scalar::F64 => Some(Const::from(value)),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::BF16 => None,
    }
}
