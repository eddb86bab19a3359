//! The rows of the op table.
//!
//! A row reads: documentation; name, and in parentheses the operands (`;` before what it takes
//! beside values) if the builder's method follows from them; `:` signature; `=>` meaning; accuracy;
//! uniformity; capability; an example of the method's operands, and its result after `=>`, or the
//! result's type after `:` where the result depends on the thread. Accuracy, uniformity and
//! capability are left out where they are exact, that of the operands, and core.

use super::{
    Accuracy, Capability, Classes, Dim, Group, Imm, LaneRule, Meaning, OpRow, ResultUniformity,
    Signature, Swizzle, eval,
};
use crate::builder::KernelBuilder;
use crate::expand::{
    self, bits, common, exponential, inverse_trigonometric, logarithm, matrix, pack, power,
    remainder, trigonometric, vector,
};
use crate::inst::{Scope, Value};
use crate::types::{Scalar, Type};

macro_rules! rows {
    ($(
        $(#[doc = $doc:literal])+
        $op:ident $name:ident $(($($arg:ident),* $(; $imm:ident: $imm_type:ty)?))? :
        $signature:expr => $meaning:expr
        $(, accuracy $accuracy:expr)?
        $(, uniformity $uniformity:expr)?
        $(, capability $capability:expr)?
        $(, example ($($value:expr),* $(; $imm_value:expr)?)
            $(: $result_type:expr)? $(=> $expected:expr)?)?;
    )*) => {
        /// An operation: a row of the op table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Op {
            $(#[doc = concat!("`", stringify!($name), "`; its row says more: [`OpRow::doc`].")] $op,)*
        }

        pub(super) static TABLE: &[OpRow] = &[$(
            OpRow {
                op: Op::$op,
                name: stringify!($name),
                operands: &[$($(stringify!($arg)),*)?],
                signature: $signature,
                meaning: $meaning,
                accuracy: rows!(@or Accuracy::Exact $(, $accuracy)?),
                uniformity: rows!(@or ResultUniformity::Operands $(, $uniformity)?),
                capability: rows!(@or Capability::Core $(, $capability)?),
                doc: concat!($($doc, "\n"),+),
            },
        )*];

        /// One method for each row of the op table.
        impl KernelBuilder {
            $(rows! {
                @method [$($doc)+] $op $name $(($($arg),* $(; $imm: $imm_type)?))?
                $(example [$($value),*] [$($imm_value)?] [$($result_type)?] [$($expected)?])?
            })*
        }
    };
    (@method [$($doc:literal)+] $op:ident $name:ident) => {};
    // A row with a method needs an example: without one nothing here matches.
    (@method [$($doc:literal)+] $op:ident $name:ident
        ($($arg:ident),* $(; $imm:ident: $imm_type:ty)?)
        example [$($value:expr),*] [$($imm_value:expr)?] [$($result_type:expr)?]
        [$($expected:expr)?]) => {
        $(#[doc = $doc])+
        ///
        /// ```
        /// # use invar_ir::{Dim, KernelBuilder, Literal, Module, Scalar, Swizzle, Type};
        /// # let mut k = KernelBuilder::new(Module::default(), "example");
        $(#[doc = concat!("let ", stringify!($arg), " = k.literal(", stringify!($value), ");")])*
        #[doc = concat!(
            "let result = k.", stringify!($name), "(",
            $(stringify!($arg), ", ",)* $(stringify!($imm_value),)? ");"
        )]
        $(#[doc = concat!(
            "assert_eq!(k.evaluate(result), Some((", stringify!($expected), ").components()));"
        )])?
        $(#[doc = concat!("assert_eq!(k.ty(result), ", stringify!($result_type), ");")])?
        /// ```
        pub fn $name(&mut self, $($arg: Value,)* $($imm: $imm_type)?) -> Value {
            let imm = rows!(@or Imm::None $(, Imm::from($imm))?);
            self.op(Op::$op, imm, &[$($arg),*])
        }
    };
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
}

use Classes as C;
use Meaning::{Arrange, Eval, Expand, Lanes, Query};
use Signature as S;

/// The same for all threads of the grid.
const GRID: ResultUniformity = ResultUniformity::Over(Scope::Device);
/// The same for all threads of a threadgroup.
const THREADGROUP: ResultUniformity = ResultUniformity::Over(Scope::Threadgroup);
/// The same for all threads of a simdgroup.
const SIMDGROUP: ResultUniformity = ResultUniformity::Over(Scope::Simdgroup);
/// Differs from thread to thread.
const VARYING: ResultUniformity = ResultUniformity::Varying;

/// Float vectors.
const FLOAT_VECTOR: Classes = C::FLOAT.and(C::VECTOR_ONLY);
/// What floats are packed from and unpacked to.
const F32X4: Type = Type::Vector(Scalar::F32, 4);
/// As `F32X4`, of two.
const F32X2: Type = Type::Vector(Scalar::F32, 2);
/// One bit for each lane of up to 128.
const BALLOT: Type = Type::Vector(Scalar::U32, 4);

/// Between the lanes of a simdgroup.
const fn simd(rule: LaneRule) -> Meaning {
    Lanes(Group::Simdgroup, rule)
}

/// Between the lanes of a quadgroup.
const fn quad(rule: LaneRule) -> Meaning {
    Lanes(Group::Quadgroup, rule)
}

const fn ulp(f32: f32, f64: f32) -> Accuracy {
    Accuracy::Ulp { f32, f64 }
}

rows! {
    // ---- arithmetic ----

    /// The sum; integers wrap (A1).
    Add add(a, b): S::Same(2, C::NUMBER.and(C::MATRIX)) => Eval(eval::add),
        example (2u32, 3u32) => 5u32;
    /// The difference; integers wrap (A1).
    Sub sub(a, b): S::Same(2, C::NUMBER.and(C::MATRIX)) => Eval(eval::sub),
        example (2i32, 3i32) => -1i32;
    /// The product, component by component; integers wrap (A1).
    Mul mul(a, b): S::Same(2, C::NUMBER) => Eval(eval::mul),
        example (2.5f32, 4.0f32) => 10.0f32;
    /// The quotient. Integers truncate toward zero, and `x / 0` is 0 (A2).
    Div div(a, b): S::Same(2, C::NUMBER) => Eval(eval::div),
        example (-7i32, 2i32) => -3i32;
    /// The remainder of [`div`](KernelBuilder::div), with the sign of `a`; `x % 0` is 0 (A2).
    Rem rem(a, b): S::Same(2, C::INTEGER) => Eval(eval::rem),
        example (-7i32, 2i32) => -1i32;
    /// `-x`: integers wrap (A1), of a float only the sign bit changes.
    Neg neg(x): S::Same(1, C::NUMBER.and(C::MATRIX)) => Eval(eval::neg),
        example (1.5f32) => -1.5f32;
    /// `a * b + c` with one rounding.
    Fma fma(a, b, c): S::Same(3, C::FLOAT) => Eval(eval::fma),
        example (2.0f32, 3.0f32, 0.5f32) => 6.5f32;
    /// The square root, correctly rounded; NaN of a negative number, -0 of -0.
    Sqrt sqrt(x): S::Same(1, C::FLOAT) => Eval(eval::sqrt),
        example (2.25f32) => 1.5f32;
    /// The magnitude: integers wrap (A1), so that of the most negative one is itself; of a float
    /// only the sign bit changes.
    Abs abs(x): S::Same(1, C::NUMBER) => Eval(eval::abs),
        example (-3i32) => 3i32;
    /// The smaller. Of floats the same as [`fmin`](KernelBuilder::fmin).
    Min min(a, b): S::Same(2, C::NUMBER) => Eval(eval::min),
        example (2u32, 3u32) => 2u32;
    /// The larger. Of floats the same as [`fmax`](KernelBuilder::fmax).
    Max max(a, b): S::Same(2, C::NUMBER) => Eval(eval::max),
        example ([1i32, 5], [4i32, 2]) => [4i32, 5];
    /// The smaller; the operand that is not NaN if one is, NaN if both are; -0 is less than +0 (A7).
    Fmin fmin(a, b): S::Same(2, C::FLOAT) => Eval(eval::min),
        example (1.0f32, f32::NAN) => 1.0f32;
    /// The larger; the operand that is not NaN if one is, NaN if both are; -0 is less than +0 (A7).
    Fmax fmax(a, b): S::Same(2, C::FLOAT) => Eval(eval::max),
        example (-0.0f32, 0.0f32) => 0.0f32;
    /// Rounds up to an integer.
    Ceil ceil(x): S::Same(1, C::FLOAT) => Eval(eval::ceil),
        example (1.25f32) => 2.0f32;
    /// Rounds down to an integer.
    Floor floor(x): S::Same(1, C::FLOAT) => Eval(eval::floor),
        example (-1.25f32) => -2.0f32;
    /// Rounds toward zero to an integer.
    Trunc trunc(x): S::Same(1, C::FLOAT) => Eval(eval::trunc),
        example (-1.75f32) => -1.0f32;
    /// Rounds to the nearest integer, ties to even.
    Rint rint(x): S::Same(1, C::FLOAT) => Eval(eval::rint),
        example (2.5f32) => 2.0f32;

    // ---- bits ----

    /// Bitwise, or of truth values: `a` and `b`.
    And and(a, b): S::Same(2, C::BITS) => Eval(eval::and),
        example (0b1100u32, 0b1010u32) => 0b1000u32;
    /// Bitwise, or of truth values: `a` or `b`.
    Or or(a, b): S::Same(2, C::BITS) => Eval(eval::or),
        example (true, false) => true;
    /// Bitwise, or of truth values: `a` or `b`, but not both.
    Xor xor(a, b): S::Same(2, C::BITS) => Eval(eval::xor),
        example (0b1100u32, 0b1010u32) => 0b0110u32;
    /// Bitwise, or of a truth value: not `x`.
    Not not(x): S::Same(1, C::BITS) => Eval(eval::not),
        example (0x0fu8) => 0xf0u8;
    /// `a << b`; the count is taken modulo the width (A3).
    Shl shl(a, b): S::Same(2, C::INTEGER) => Eval(eval::shl),
        example (1u32, 35u32) => 8u32;
    /// `a >> b`: signed integers keep their sign; the count is taken modulo the width (A3).
    Shr shr(a, b): S::Same(2, C::INTEGER) => Eval(eval::shr),
        example (-8i32, 1i32) => -4i32;
    /// How many bits are 1.
    Popcount popcount(x): S::Same(1, C::INTEGER) => Eval(eval::popcount),
        example (0xf0u32) => 4u32;
    /// How many bits above the highest 1; the width, of 0 (A4).
    Clz clz(x): S::Same(1, C::INTEGER) => Eval(eval::clz),
        example (1u32) => 31u32;
    /// How many bits below the lowest 1; the width, of 0 (A4).
    Ctz ctz(x): S::Same(1, C::INTEGER) => Eval(eval::ctz),
        example (8u32) => 3u32;
    /// The bits in the opposite order.
    ReverseBits reverse_bits(x): S::Same(1, C::INTEGER) => Eval(eval::reverse_bits),
        example (1u8) => 0x80u8;
    /// The upper half of the product at twice the width.
    MulHi mul_hi(a, b): S::Same(2, C::INTEGER) => Eval(eval::mul_hi),
        example (0x8000_0000u32, 6u32) => 3u32;

    // ---- comparisons and choice ----

    /// Whether `a` equals `b`; a NaN equals nothing.
    Eq eq(a, b): S::Compare(C::ANY) => Eval(eval::eq),
        example (f32::NAN, f32::NAN) => false;
    /// Whether `a` differs from `b`; a NaN differs from everything.
    Ne ne(a, b): S::Compare(C::ANY) => Eval(eval::ne),
        example ([1u32, 2], [1u32, 3]) => [false, true];
    /// Whether `a` is less than `b`; false if one is NaN.
    Lt lt(a, b): S::Compare(C::NUMBER) => Eval(eval::lt),
        example (1.0f32, 2.0f32) => true;
    /// Whether `a` is less than `b` or equal; false if one is NaN.
    Le le(a, b): S::Compare(C::NUMBER) => Eval(eval::le),
        example (2i32, 2i32) => true;
    /// Whether `a` is greater than `b`; false if one is NaN.
    Gt gt(a, b): S::Compare(C::NUMBER) => Eval(eval::gt),
        example (1u32, 2u32) => false;
    /// Whether `a` is greater than `b` or equal; false if one is NaN.
    Ge ge(a, b): S::Compare(C::NUMBER) => Eval(eval::ge),
        example (2.0f32, f32::NAN) => false;
    /// `on_true` where the condition holds, else `on_false`, by component.
    Select select(on_false, on_true, condition): S::Select(C::ANY) => Eval(eval::select),
        example (1.0f32, 2.0f32, true) => 2.0f32;

    // ---- conversions, components ----

    /// Converts to the named type of the same shape (A5): floats truncate and saturate to
    /// integers, NaN becomes 0; integers keep their low bits and are extended by their own sign;
    /// nonzero and NaN become `true`; floats are rounded to nearest even.
    Cast cast(x; ty: Type): S::Cast => Eval(eval::cast),
        example (-2.75f32; Type::I32) => -2i32;
    /// The same bits as the named type, of as many bits in all; the first component is lowest.
    AsType as_type(x; ty: Type): S::AsType => Arrange,
        example (1.0f32; Type::U32) => 0x3f80_0000u32;
    /// A vector from components (scalars and vectors that add up, or one scalar for all), or a
    /// matrix from its columns.
    Construct construct: S::Construct => Arrange;
    /// A component of a vector or a column of a matrix; 0 if the index is out of bounds (B4).
    Extract extract(x, index): S::Extract => Arrange,
        example ([10u32, 20, 30], 1u32) => 20u32;
    /// `x` with a component (of a vector) or column (of a matrix) replaced; `x` itself if the
    /// index is out of bounds (B4).
    Insert insert(x, index, part): S::Insert => Arrange,
        example ([10u32, 20, 30], 1u32, 7u32) => [10u32, 7, 30];
    /// Components of a vector in the order named.
    Swizzle swizzle(x; components: Swizzle): S::Swizzle => Arrange,
        example ([1u32, 2, 3]; Swizzle::parse("zx").unwrap()) => [3u32, 1];

    // ---- common functions ----

    /// Rounds to the nearest integer, ties away from zero.
    Round round(x): S::Same(1, C::FLOAT) => Expand(common::round),
        example (2.5f32) => 3.0f32;
    /// 1, 0 or -1 as `x` is; a zero itself, and 0 of NaN.
    Sign sign(x): S::Same(1, C::SIGNED.and(C::FLOAT)) => Expand(common::sign),
        example (-7.0f32) => -1.0f32;
    /// `x` limited to 0 up to 1; 0 of NaN.
    Saturate saturate(x): S::Same(1, C::FLOAT) => Expand(common::saturate),
        example (1.5f32) => 1.0f32;
    /// `x - floor(x)`, but never 1: the largest value below it instead; NaN of an infinity.
    Fract fract(x): S::Same(1, C::FLOAT) => Expand(common::fract),
        example (-0.25f32) => 0.75f32;
    /// 0 if `x` is less than `edge`, else 1.
    Step step(edge, x): S::Same(2, C::FLOAT) => Expand(common::step),
        example (0.5f32, 0.25f32) => 0.0f32;
    /// `min(max(x, low), high)`; so `low` of NaN, and `high` if `low` is greater.
    Clamp clamp(x, low, high): S::Same(3, C::NUMBER) => Expand(common::clamp),
        example (12i32, 0i32, 9i32) => 9i32;
    /// `x + (y - x) * a`, of steps whose rounding errors are kept, so within its bound also where the
    /// terms cancel and where steps or the result underflow, as long as none of the steps overflows.
    /// `fma(y - x, a, x)` is shorter, and as good where the terms do not cancel.
    Mix mix(x, y, a): S::Same(3, C::FLOAT) => Expand(common::mix), accuracy ulp(1.0, 1.0),
        example (10.0f32, 20.0f32, 0.25f32) => 12.5f32;
    /// `t * t * (3 - 2 * t)` for `t` the saturated `(x - low) / (high - low)`; within its bound also where
    /// the differences overflow.
    Smoothstep smoothstep(low, high, x): S::Same(3, C::FLOAT) => Expand(common::smoothstep),
        accuracy ulp(0.6, 0.6),
        example (0.0f32, 2.0f32, 1.0f32) => 0.5f32;
    /// `x` with the sign of `sign`; NaNs too.
    Copysign copysign(x, sign): S::Same(2, C::FLOAT) => Expand(bits::copysign),
        example (3.0f32, -0.0f32) => -3.0f32;
    /// `x` times 2 to the power of `exponent`, rounded once.
    Ldexp ldexp(x, exponent): S::Ldexp => Expand(bits::ldexp),
        example (0.75f32, 3i32) => 6.0f32;
    /// Whether it is NaN, in every float mode.
    IsNan isnan(x): S::Test(C::FLOAT) => Expand(bits::isnan),
        example (f32::NAN) => true;
    /// Whether it is an infinity, in every float mode.
    IsInf isinf(x): S::Test(C::FLOAT) => Expand(bits::isinf),
        example (f32::INFINITY) => true;
    /// Whether it is neither NaN nor an infinity, in every float mode.
    IsFinite isfinite(x): S::Test(C::FLOAT) => Expand(bits::isfinite),
        example (f32::INFINITY) => false;
    /// Whether it is neither zero, subnormal, infinite nor NaN.
    IsNormal isnormal(x): S::Test(C::FLOAT) => Expand(bits::isnormal),
        example (0.0f32) => false;
    /// Whether its sign bit is set; of zeros and NaNs too.
    Signbit signbit(x): S::Test(C::FLOAT) => Expand(bits::signbit),
        example (-0.0f32) => true;

    // ---- integer functions ----

    /// The distance of `a` and `b`. Where it does not fit a signed type its bits are still those
    /// of the distance, as an unsigned integer.
    AbsDiff abs_diff(a, b): S::Same(2, C::INTEGER) => Expand(bits::abs_diff),
        example (-100i8, 100i8) => 200u8 as i8;
    /// The sum, or the nearest number that the type has.
    AddSat add_sat(a, b): S::Same(2, C::INTEGER) => Expand(bits::add_sat),
        example (200u8, 100u8) => 255u8;
    /// The difference, or the nearest number that the type has.
    SubSat sub_sat(a, b): S::Same(2, C::INTEGER) => Expand(bits::sub_sat),
        example (-100i8, 100i8) => -128i8;
    /// `mul_hi(a, b) + c`.
    MadHi mad_hi(a, b, c): S::Same(3, C::INTEGER) => Expand(bits::mad_hi),
        example (0x8000_0000u32, 6u32, 1u32) => 4u32;
    /// `a * b + c`, or the nearest number that the type has.
    MadSat mad_sat(a, b, c): S::Same(3, C::INTEGER) => Expand(bits::mad_sat),
        example (100i8, 2i8, 3i8) => 127i8;
    /// The bits moved up by `count`, taken modulo the width; those that leave come back below.
    Rotate rotate(x, count): S::Same(2, C::INTEGER) => Expand(bits::rotate),
        example (0x81u8, 1u8) => 0x03u8;
    /// `x >> count`, as of an offset in bytes that becomes an index. Where a bit that is 1 is shifted out, the
    /// checked device reports `misaligned-access` (L4).
    ShrExact shr_exact(x, count): S::Same(2, C::INTEGER) => Expand(bits::shr_exact),
        example (24i64, 3i64) => 3i64;
    /// The `count` bits from bit `offset` on, extended by their sign if the type is signed. The
    /// offset is limited to the width, the count to the bits that are left (A6).
    ExtractBits extract_bits(x, offset, count): S::ExtractBits => Expand(bits::extract_bits),
        example (0xabcdu32, 4u32, 8u32) => 0xbcu32;
    /// `x` with its `count` bits from bit `offset` on replaced by the lowest ones of `part`. The
    /// offset is limited to the width, the count to the bits that are left (A6).
    InsertBits insert_bits(x, part, offset, count): S::InsertBits => Expand(bits::insert_bits),
        example (0xabcdu32, 0x12u32, 4u32, 8u32) => 0xa12du32;

    // ---- vectors ----

    /// Whether every component is true.
    All all(x): S::VectorToScalar(1, C::BOOL) => Expand(vector::all),
        example ([true, false]) => false;
    /// Whether some component is true.
    Any any(x): S::VectorToScalar(1, C::BOOL) => Expand(vector::any),
        example ([true, false]) => true;
    /// The sum of the products of components, accumulated in index order by fma (A11); of f16 and
    /// bf16 in f32. A11 says which roundings are made, and the products may cancel, so its error is
    /// relative to their magnitudes, and no bound relative to the result holds.
    Dot dot(a, b): S::VectorToScalar(2, C::FLOAT) => Expand(vector::dot),
        accuracy Accuracy::Terms(2.0),
        example ([1.0f32, 2.0, 3.0], [4.0f32, 5.0, 6.0]) => 32.0f32;
    /// The square root of the sum of squares, accumulated in index order by fma (A11), of which the
    /// rounding errors are added at the end. The squares are those of the components times a power of two,
    /// so the result alone overflows or underflows. Of f16 and bf16 it is computed in f32.
    Length length(x): S::VectorToScalar(1, C::FLOAT) => Expand(vector::length),
        accuracy ulp(0.6, 0.6),
        example ([3.0f32, 4.0]) => 5.0f32;
    /// `length(a - b)`, of differences and squares whose rounding errors are kept. As that of `length`, the
    /// result alone overflows or underflows. Of f16 and bf16 it is computed in f32.
    Distance distance(a, b): S::VectorToScalar(2, C::FLOAT) => Expand(vector::distance),
        accuracy ulp(0.6, 0.6),
        example ([1.0f32, 1.0], [4.0f32, 5.0]) => 5.0f32;
    /// `x / length(x)`, of a length whose rounding errors are kept, also where `length(x)` would overflow;
    /// NaN of a zero vector.
    Normalize normalize(x): S::Same(1, FLOAT_VECTOR) => Expand(vector::normalize),
        accuracy ulp(0.6, 0.6),
        example ([0.0f32, 2.0]) => [0.0f32, 1.0];
    /// The cross product. Each component is a difference of products, computed so that products
    /// that cancel leave no error of their own (Kahan): `cross(x, x)` is 0. It overflows only where a
    /// component does. Where a product is below 2^-101 (in f64 below 2^-968), its last digits underflow, and
    /// the component may be another quarter of an ulp off.
    Cross cross(a, b): S::Same(2, C::FLOAT.and(C::VECTOR_3)) => Expand(vector::cross),
        accuracy ulp(1.5, 1.5),
        example ([1.0f32, 0.0, 0.0], [0.0f32, 1.0, 0.0]) => [0.0f32, 0.0, 1.0];
    /// What comes back from a surface: `incident - 2 * dot(normal, incident) * normal`; the normal
    /// should be of length 1. The rounding errors of its products and sums are kept; the terms are the
    /// incident component and, for every component of the dot product, twice its product with the
    /// normal's. It is within its bound where no step overflows or underflows.
    Reflect reflect(incident, normal): S::Same(2, FLOAT_VECTOR) => Expand(vector::reflect),
        accuracy Accuracy::Twofold(0.6),
        example ([1.0f32, -1.0], [0.0f32, 1.0]) => [1.0f32, 1.0];
    /// What goes through a surface, for `eta` the ratio of refractive indices: with `d =
    /// dot(normal, incident)` and `k = 1 - eta * eta * (1 - d * d)`, `eta * incident - (eta * d +
    /// sqrt(k)) * normal`, or 0 if `k` is negative. Both vectors should be of length 1. The rounding
    /// errors of all steps are kept, short of overflow and underflow. The terms are the products that the formula sums up, and the root
    /// counts as `K / sqrt(k)`, since a root magnifies what a small `k` lacks; `K` is `1 + eta * eta *
    /// (1 + D * D)`, and `D` the sum of the magnitudes of which `d` is the sum. At the critical angle,
    /// where `k` is within 2^-42 (in f64 2^-100) of `K` from 0, the result may be that of a `k` of the
    /// other sign.
    Refract refract(incident, normal, eta): S::Refract => Expand(vector::refract),
        accuracy Accuracy::Twofold(0.6),
        example ([0.0f32, -1.0], [0.0f32, 1.0], 0.5f32) => [0.0f32, -1.0];
    /// `normal` if `dot(reference, incident)` is negative, else `-normal`.
    Faceforward faceforward(normal, incident, reference): S::Same(3, FLOAT_VECTOR)
        => Expand(vector::faceforward),
        example ([0.0f32, 1.0], [0.0f32, -1.0], [0.0f32, 1.0]) => [0.0f32, 1.0];

    // ---- small matrices ----

    /// The product of matrices, of a matrix and a column vector, or of a row vector and a matrix.
    /// Each entry is a [`dot`](KernelBuilder::dot) (A11), with its error.
    MatrixMultiply matrix_multiply(a, b): S::MatrixMultiply => Expand(matrix::multiply),
        accuracy Accuracy::Terms(2.0),
        example ([[1.0f32, 2.0], [3.0, 4.0]], [1.0f32, 1.0]) => [4.0f32, 6.0];
    /// Rows become columns.
    Transpose transpose(x): S::Transpose => Expand(matrix::transpose),
        example ([[1.0f32, 2.0], [3.0, 4.0]]) => [[1.0f32, 3.0], [2.0, 4.0]];
    /// The determinant, by minors of two columns, of which the rounding errors are kept; its terms are
    /// the products of one entry of each column and row. Where a step would overflow, or underflow so far that
    /// it counts, it is computed of numbers with exponents of their own: the result alone overflows or
    /// underflows, but of three and four columns also where the magnitudes of its terms add up to more than
    /// the largest float, though they cancel. Of two columns it is within its ulp also where the terms cancel
    /// (Kahan), but for another quarter where a product is below 2^-101 (in f64 below 2^-968). Of f16 and bf16 it
    /// is computed in f32.
    Determinant determinant(x): S::Determinant => Expand(matrix::determinant),
        accuracy Accuracy::Twofold(1.5),
        example ([[1.0f32, 2.0], [3.0, 4.0]]) => -2.0f32;

    // ---- packing ----

    /// Each component limited to 0 up to 1, times 255, rounded to nearest even, into 8 bits; the
    /// first is lowest, NaN becomes 0.
    PackFloatToUnorm4x8 pack_float_to_unorm4x8(x): S::Fixed(&[F32X4], Type::U32)
        => Expand(pack::pack_unorm4x8),
        example ([1.0f32, 0.0, 0.2, 1.0]) => 0xff33_00ffu32;
    /// Each component limited to -1 up to 1, times 127, rounded to nearest even, into 8 bits; the
    /// first is lowest, NaN becomes 0.
    PackFloatToSnorm4x8 pack_float_to_snorm4x8(x): S::Fixed(&[F32X4], Type::U32)
        => Expand(pack::pack_snorm4x8),
        example ([1.0f32, 0.0, -1.0, 0.0]) => 0x0081_007fu32;
    /// As [`pack_float_to_unorm4x8`](KernelBuilder::pack_float_to_unorm4x8), the first three components
    /// encoded as sRGB before; off by a level at most, and only within a thousandth of a tie.
    PackFloatToSrgbUnorm4x8 pack_float_to_srgb_unorm4x8(x): S::Fixed(&[F32X4], Type::U32)
        => Expand(pack::pack_srgb_unorm4x8), accuracy ulp(1.0, 1.0),
        example ([1.0f32, 0.0, 0.0, 1.0]) => 0xff00_00ffu32;
    /// Each component limited to 0 up to 1, times 65535, rounded to nearest even, into 16 bits;
    /// the first is lowest, NaN becomes 0.
    PackFloatToUnorm2x16 pack_float_to_unorm2x16(x): S::Fixed(&[F32X2], Type::U32)
        => Expand(pack::pack_unorm2x16),
        example ([1.0f32, 0.0]) => 0x0000_ffffu32;
    /// Each component limited to -1 up to 1, times 32767, rounded to nearest even, into 16 bits;
    /// the first is lowest, NaN becomes 0.
    PackFloatToSnorm2x16 pack_float_to_snorm2x16(x): S::Fixed(&[F32X2], Type::U32)
        => Expand(pack::pack_snorm2x16),
        example ([1.0f32, -1.0]) => 0x8001_7fffu32;
    /// As [`pack_float_to_unorm4x8`](KernelBuilder::pack_float_to_unorm4x8), into 10, 10, 10 and 2 bits.
    PackFloatToUnorm10a2 pack_float_to_unorm10a2(x): S::Fixed(&[F32X4], Type::U32)
        => Expand(pack::pack_unorm10a2),
        example ([1.0f32, 0.0, 0.0, 1.0]) => 0xc000_03ffu32;
    /// Each 8 bits, the lowest first, divided by 255.
    UnpackUnorm4x8ToFloat unpack_unorm4x8_to_float(x): S::Fixed(&[Type::U32], F32X4)
        => Expand(pack::unpack_unorm4x8),
        example (0xff33_00ffu32) => [1.0f32, 0.0, 0.2, 1.0];
    /// Each 8 bits as a signed integer, the lowest first, divided by 127, and at least -1.
    UnpackSnorm4x8ToFloat unpack_snorm4x8_to_float(x): S::Fixed(&[Type::U32], F32X4)
        => Expand(pack::unpack_snorm4x8),
        example (0x0081_007fu32) => [1.0f32, 0.0, -1.0, 0.0];
    /// As [`unpack_unorm4x8_to_float`](KernelBuilder::unpack_unorm4x8_to_float), the first three components
    /// decoded from sRGB, all correctly rounded.
    UnpackSrgbUnorm4x8ToFloat unpack_srgb_unorm4x8_to_float(x): S::Fixed(&[Type::U32], F32X4)
        => Expand(pack::unpack_srgb_unorm4x8),
        example (0xff00_00ffu32) => [1.0f32, 0.0, 0.0, 1.0];
    /// Each 16 bits, the lowest first, divided by 65535.
    UnpackUnorm2x16ToFloat unpack_unorm2x16_to_float(x): S::Fixed(&[Type::U32], F32X2)
        => Expand(pack::unpack_unorm2x16),
        example (0x0000_ffffu32) => [1.0f32, 0.0];
    /// Each 16 bits as a signed integer, the lowest first, divided by 32767, and at least -1.
    UnpackSnorm2x16ToFloat unpack_snorm2x16_to_float(x): S::Fixed(&[Type::U32], F32X2)
        => Expand(pack::unpack_snorm2x16),
        example (0x8001_7fffu32) => [1.0f32, -1.0];
    /// 10, 10, 10 and 2 bits, the lowest first, each divided by its largest value.
    UnpackUnorm10a2ToFloat unpack_unorm10a2_to_float(x): S::Fixed(&[Type::U32], F32X4)
        => Expand(pack::unpack_unorm10a2),
        example (0xc000_03ffu32) => [1.0f32, 0.0, 0.0, 1.0];

    // ---- math functions ----

    /// e to the power `x`.
    Exp exp(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp)),
        accuracy ulp(0.9, 1.0),
        example (0.0f32) => 1.0f32;
    /// 2 to the power `x`.
    Exp2 exp2(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp2)),
        accuracy ulp(0.9, 1.0),
        example (-3.0f32) => 0.125f32;
    /// 10 to the power `x`.
    Exp10 exp10(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp10)),
        accuracy ulp(1.1, 1.1),
        example (2.0f32) => 100.0f32;
    /// The natural logarithm; of 0 minus infinity, of less NaN.
    Log log(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log)),
        accuracy ulp(1.0, 1.2),
        example (1.0f32) => 0.0f32;
    /// The logarithm to the base 2; of 0 minus infinity, of less NaN.
    Log2 log2(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log2)),
        accuracy ulp(1.0, 1.0),
        example (8.0f32) => 3.0f32;
    /// The logarithm to the base 10; of 0 minus infinity, of less NaN.
    Log10 log10(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log10)),
        accuracy ulp(1.0, 1.0),
        example (1000.0f32) => 3.0f32;
    /// `x` to the power `y`, with the special cases of C99, F.9.4.4: `pow(x, 0)` and `pow(1, y)` are 1.
    Pow pow(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, power::pow)),
        accuracy ulp(1.0, 1.0),
        example (-2.0f32, 3.0f32) => -8.0f32;
    /// `x` to the power `y` as e to the power `y log(x)`: of a negative `x`, and of 0 to the power 0, NaN.
    Powr powr(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, power::powr)),
        accuracy ulp(1.0, 1.0),
        example (4.0f32, 0.5f32) => 2.0f32;
    /// 1 over the square root.
    Rsqrt rsqrt(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, power::rsqrt)),
        accuracy ulp(1.5, 1.5),
        example (4.0f32) => 0.5f32;
    /// The sine of `x` radians, for every finite `x`; never beyond 1.
    Sin sin(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::sin)),
        accuracy ulp(1.6, 1.7),
        example (0.0f32) => 0.0f32;
    /// The cosine of `x` radians, for every finite `x`; never beyond 1.
    Cos cos(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::cos)),
        accuracy ulp(1.7, 1.7),
        example (0.0f32) => 1.0f32;
    /// The tangent of `x` radians, for every finite `x`.
    Tan tan(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::tan)),
        accuracy ulp(1.4, 1.6),
        example (0.0f32) => 0.0f32;
    /// The sine of pi `x`; at integers a zero with the sign of `x`.
    Sinpi sinpi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::sinpi)),
        accuracy ulp(1.0, 1.0),
        example (0.5f32) => 1.0f32;
    /// The cosine of pi `x`; between integers +0.
    Cospi cospi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::cospi)),
        accuracy ulp(0.9, 1.0),
        example (1.0f32) => -1.0f32;
    /// The tangent of pi `x`; at odd integers the zero's sign is against that of `x`.
    Tanpi tanpi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::tanpi)),
        accuracy ulp(1.7, 1.7),
        example (0.25f32) => 1.0f32;
    /// The angle in [-pi/2, pi/2] whose sine is `x`; NaN beyond 1.
    Asin asin(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::asin)),
        accuracy ulp(1.2, 1.3),
        example (1.0f32) => std::f32::consts::FRAC_PI_2;
    /// The angle in [0, pi] whose cosine is `x`; NaN beyond 1.
    Acos acos(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::acos)),
        accuracy ulp(1.2, 1.2),
        example (-1.0f32) => std::f32::consts::PI;
    /// The angle in [-pi/2, pi/2] whose tangent is `x`.
    Atan atan(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::atan)),
        accuracy ulp(1.4, 1.6),
        example (f32::INFINITY) => std::f32::consts::FRAC_PI_2;
    /// The angle of the point (`x`, `y`) in [-pi, pi]; zeros keep their signs.
    Atan2 atan2(y, x): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, inverse_trigonometric::atan2)),
        accuracy ulp(1.7, 1.7),
        example (1.0f32, 0.0f32) => std::f32::consts::FRAC_PI_2;
    /// The hyperbolic sine.
    Sinh sinh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::sinh)),
        accuracy ulp(1.7, 1.8),
        example (0.0f32) => 0.0f32;
    /// The hyperbolic cosine.
    Cosh cosh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::cosh)),
        accuracy ulp(1.4, 1.5),
        example (0.0f32) => 1.0f32;
    /// The hyperbolic tangent.
    Tanh tanh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::tanh)),
        accuracy ulp(1.5, 1.6),
        example (f32::INFINITY) => 1.0f32;
    /// The number whose hyperbolic sine is `x`.
    Asinh asinh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::asinh)),
        accuracy ulp(1.4, 1.6),
        example (0.0f32) => 0.0f32;
    /// The number, not negative, whose hyperbolic cosine is `x`; NaN below 1.
    Acosh acosh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::acosh)),
        accuracy ulp(1.8, 1.9),
        example (1.0f32) => 0.0f32;
    /// The number whose hyperbolic tangent is `x`; NaN beyond 1.
    Atanh atanh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::atanh)),
        accuracy ulp(1.1, 1.4),
        example (0.0f32) => 0.0f32;
    /// The error function.
    Erf erf(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::erf)),
        accuracy ulp(1.3, 1.4),
        example (f32::INFINITY) => 1.0f32;
    /// `x - y trunc(x / y)`, exactly; NaN of an infinite `x` or a zero `y`.
    Fmod fmod(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, remainder::fmod)),
        example (-7.5f32, 2.0f32) => -1.5f32;

    // ---- between lanes ----

    /// The sum over the simdgroup. Lanes are combined by xor 1, 2, 4, ... (A11).
    SimdSum simd_sum(x): S::Lanes(C::NUMBER) => simd(LaneRule::Reduce(Op::Add)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The product over the simdgroup. Lanes are combined by xor 1, 2, 4, ... (A11).
    SimdProduct simd_product(x): S::Lanes(C::NUMBER) => simd(LaneRule::Reduce(Op::Mul)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The [`min`](KernelBuilder::min) over the simdgroup.
    SimdMin simd_min(x): S::Lanes(C::NUMBER) => simd(LaneRule::Reduce(Op::Min)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The [`max`](KernelBuilder::max) over the simdgroup.
    SimdMax simd_max(x): S::Lanes(C::NUMBER) => simd(LaneRule::Reduce(Op::Max)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The [`and`](KernelBuilder::and) over the simdgroup.
    SimdAnd simd_and(x): S::Lanes(C::BITS) => simd(LaneRule::Reduce(Op::And)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (3u32): Type::U32;
    /// The [`or`](KernelBuilder::or) over the simdgroup.
    SimdOr simd_or(x): S::Lanes(C::BITS) => simd(LaneRule::Reduce(Op::Or)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (3u32): Type::U32;
    /// The [`xor`](KernelBuilder::xor) over the simdgroup.
    SimdXor simd_xor(x): S::Lanes(C::BITS) => simd(LaneRule::Reduce(Op::Xor)),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (3u32): Type::U32;
    /// The sum over the lanes of the simdgroup up to this one, by doubling (A11).
    SimdPrefixInclusiveSum simd_prefix_inclusive_sum(x): S::Lanes(C::NUMBER) => simd(LaneRule::InclusiveScan(Op::Add)),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The sum over the lanes of the simdgroup before this one, by doubling (A11); 0 in the
    /// first lane.
    SimdPrefixExclusiveSum simd_prefix_exclusive_sum(x): S::Lanes(C::NUMBER) => simd(LaneRule::ExclusiveScan(Op::Add)),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The product over the lanes of the simdgroup up to this one, by doubling (A11).
    SimdPrefixInclusiveProduct simd_prefix_inclusive_product(x): S::Lanes(C::NUMBER) => simd(LaneRule::InclusiveScan(Op::Mul)),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The product over the lanes of the simdgroup before this one, by doubling (A11); 1 in the
    /// first lane.
    SimdPrefixExclusiveProduct simd_prefix_exclusive_product(x): S::Lanes(C::NUMBER) => simd(LaneRule::ExclusiveScan(Op::Mul)),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// The value of `x` in that lane; 0 if there is none (X6).
    SimdShuffle simd_shuffle(x, lane): S::LanesBy(C::ANY) => simd(LaneRule::Shuffle),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` below; 0 if there is none (X6).
    SimdShuffleUp simd_shuffle_up(x, delta): S::LanesBy(C::ANY) => simd(LaneRule::ShuffleUp),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` above; 0 if there is none (X6).
    SimdShuffleDown simd_shuffle_down(x, delta): S::LanesBy(C::ANY) => simd(LaneRule::ShuffleDown),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane whose number is this one's xor `mask`; 0 if there is none (X6).
    SimdShuffleXor simd_shuffle_xor(x, mask): S::LanesBy(C::ANY) => simd(LaneRule::ShuffleXor),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` below, counted around a full simdgroup; 0 if there is
    /// none (X6).
    SimdShuffleRotateUp simd_shuffle_rotate_up(x, delta): S::LanesBy(C::ANY) => simd(LaneRule::RotateUp),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` above, counted around a full simdgroup; 0 if there is
    /// none (X6).
    SimdShuffleRotateDown simd_shuffle_rotate_down(x, delta): S::LanesBy(C::ANY) => simd(LaneRule::RotateDown),
        uniformity VARYING, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in that lane, for all lanes of the simdgroup; 0 if there is none (X6). The
    /// number that the first lane gives counts.
    SimdBroadcast simd_broadcast(x, lane): S::LanesBy(C::ANY) => simd(LaneRule::Broadcast),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the first lane of the simdgroup.
    SimdBroadcastFirst simd_broadcast_first(x): S::Lanes(C::ANY) => simd(LaneRule::BroadcastFirst),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (1.5f32): Type::F32;
    /// One bit for each lane of the simdgroup, the first lane's lowest: whether `x` holds there.
    SimdBallot simd_ballot(x): S::Fixed(&[Type::BOOL], BALLOT) => simd(LaneRule::Ballot),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (true): Type::Vector(Scalar::U32, 4);
    /// Whether `x` holds in every lane of the simdgroup that exists.
    SimdAll simd_all(x): S::Fixed(&[Type::BOOL], Type::BOOL) => simd(LaneRule::All),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (true): Type::BOOL;
    /// Whether `x` holds in some lane of the simdgroup.
    SimdAny simd_any(x): S::Fixed(&[Type::BOOL], Type::BOOL) => simd(LaneRule::Any),
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (true): Type::BOOL;
    /// The sum over the quadgroup. Lanes are combined by xor 1, 2, 4, ... (A11).
    QuadSum quad_sum(x): S::Lanes(C::NUMBER) => quad(LaneRule::Reduce(Op::Add)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The product over the quadgroup. Lanes are combined by xor 1, 2, 4, ... (A11).
    QuadProduct quad_product(x): S::Lanes(C::NUMBER) => quad(LaneRule::Reduce(Op::Mul)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The [`min`](KernelBuilder::min) over the quadgroup.
    QuadMin quad_min(x): S::Lanes(C::NUMBER) => quad(LaneRule::Reduce(Op::Min)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The [`max`](KernelBuilder::max) over the quadgroup.
    QuadMax quad_max(x): S::Lanes(C::NUMBER) => quad(LaneRule::Reduce(Op::Max)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The [`and`](KernelBuilder::and) over the quadgroup.
    QuadAnd quad_and(x): S::Lanes(C::BITS) => quad(LaneRule::Reduce(Op::And)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (3u32): Type::U32;
    /// The [`or`](KernelBuilder::or) over the quadgroup.
    QuadOr quad_or(x): S::Lanes(C::BITS) => quad(LaneRule::Reduce(Op::Or)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (3u32): Type::U32;
    /// The [`xor`](KernelBuilder::xor) over the quadgroup.
    QuadXor quad_xor(x): S::Lanes(C::BITS) => quad(LaneRule::Reduce(Op::Xor)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (3u32): Type::U32;
    /// The sum over the lanes of the quadgroup up to this one, by doubling (A11).
    QuadPrefixInclusiveSum quad_prefix_inclusive_sum(x): S::Lanes(C::NUMBER) => quad(LaneRule::InclusiveScan(Op::Add)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The sum over the lanes of the quadgroup before this one, by doubling (A11); 0 in the
    /// first lane.
    QuadPrefixExclusiveSum quad_prefix_exclusive_sum(x): S::Lanes(C::NUMBER) => quad(LaneRule::ExclusiveScan(Op::Add)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The product over the lanes of the quadgroup up to this one, by doubling (A11).
    QuadPrefixInclusiveProduct quad_prefix_inclusive_product(x): S::Lanes(C::NUMBER) => quad(LaneRule::InclusiveScan(Op::Mul)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The product over the lanes of the quadgroup before this one, by doubling (A11); 1 in the
    /// first lane.
    QuadPrefixExclusiveProduct quad_prefix_exclusive_product(x): S::Lanes(C::NUMBER) => quad(LaneRule::ExclusiveScan(Op::Mul)),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// The value of `x` in that lane; 0 if there is none (X6).
    QuadShuffle quad_shuffle(x, lane): S::LanesBy(C::ANY) => quad(LaneRule::Shuffle),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` below; 0 if there is none (X6).
    QuadShuffleUp quad_shuffle_up(x, delta): S::LanesBy(C::ANY) => quad(LaneRule::ShuffleUp),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` above; 0 if there is none (X6).
    QuadShuffleDown quad_shuffle_down(x, delta): S::LanesBy(C::ANY) => quad(LaneRule::ShuffleDown),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane whose number is this one's xor `mask`; 0 if there is none (X6).
    QuadShuffleXor quad_shuffle_xor(x, mask): S::LanesBy(C::ANY) => quad(LaneRule::ShuffleXor),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` below, counted around a full quadgroup; 0 if there is
    /// none (X6).
    QuadShuffleRotateUp quad_shuffle_rotate_up(x, delta): S::LanesBy(C::ANY) => quad(LaneRule::RotateUp),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the lane `delta` above, counted around a full quadgroup; 0 if there is
    /// none (X6).
    QuadShuffleRotateDown quad_shuffle_rotate_down(x, delta): S::LanesBy(C::ANY) => quad(LaneRule::RotateDown),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in that lane, for all lanes of the quadgroup; 0 if there is none (X6). The
    /// number that the first lane gives counts.
    QuadBroadcast quad_broadcast(x, lane): S::LanesBy(C::ANY) => quad(LaneRule::Broadcast),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32, 1u32): Type::F32;
    /// The value of `x` in the first lane of the quadgroup.
    QuadBroadcastFirst quad_broadcast_first(x): S::Lanes(C::ANY) => quad(LaneRule::BroadcastFirst),
        uniformity VARYING, capability Capability::Quadgroup,
        example (1.5f32): Type::F32;
    /// One bit for each lane of the quadgroup, the first lane's lowest: whether `x` holds there.
    QuadBallot quad_ballot(x): S::Fixed(&[Type::BOOL], BALLOT) => quad(LaneRule::Ballot),
        uniformity VARYING, capability Capability::Quadgroup,
        example (true): Type::Vector(Scalar::U32, 4);
    /// Whether `x` holds in every lane of the quadgroup that exists.
    QuadAll quad_all(x): S::Fixed(&[Type::BOOL], Type::BOOL) => quad(LaneRule::All),
        uniformity VARYING, capability Capability::Quadgroup,
        example (true): Type::BOOL;
    /// Whether `x` holds in some lane of the quadgroup.
    QuadAny quad_any(x): S::Fixed(&[Type::BOOL], Type::BOOL) => quad(LaneRule::Any),
        uniformity VARYING, capability Capability::Quadgroup,
        example (true): Type::BOOL;

    // ---- where a thread stands ----

    /// The thread's position in the grid.
    ThreadPositionInGrid thread_position_in_grid(; dim: Dim): S::QueryDim => Query, uniformity VARYING,
        example (; Dim::X): Type::U32;
    /// The thread's position in its threadgroup.
    ThreadPositionInThreadgroup thread_position_in_threadgroup(; dim: Dim): S::QueryDim => Query,
        uniformity VARYING,
        example (; Dim::X): Type::U32;
    /// The thread's number in its threadgroup: x + y*size_x + z*size_x*size_y (X2).
    ThreadIndexInThreadgroup thread_index_in_threadgroup(): S::Query => Query, uniformity VARYING,
        example (): Type::U32;
    /// The threadgroup's position in the grid.
    ThreadgroupPositionInGrid threadgroup_position_in_grid(; dim: Dim): S::QueryDim => Query,
        uniformity THREADGROUP,
        example (; Dim::X): Type::U32;
    /// The size of this threadgroup, smaller at an edge of the grid (X2).
    ThreadsPerThreadgroup threads_per_threadgroup(; dim: Dim): S::QueryDim => Query,
        uniformity THREADGROUP,
        example (; Dim::X): Type::U32;
    /// The size of a threadgroup that is not at an edge of the grid (X2): the one dispatched with.
    DispatchThreadsPerThreadgroup dispatch_threads_per_threadgroup(; dim: Dim): S::QueryDim => Query,
        uniformity GRID,
        example (; Dim::X): Type::U32;
    /// The size of the grid in threads.
    ThreadsPerGrid threads_per_grid(; dim: Dim): S::QueryDim => Query, uniformity GRID,
        example (; Dim::X): Type::U32;
    /// The size of the grid in threadgroups, those at its edges counted whole.
    ThreadgroupsPerGrid threadgroups_per_grid(; dim: Dim): S::QueryDim => Query, uniformity GRID,
        example (; Dim::X): Type::U32;
    /// Where the grid begins: 0.
    GridOrigin grid_origin(; dim: Dim): S::QueryDim => Expand(common::grid_origin), uniformity GRID,
        example (; Dim::X) => 0u32;
    /// The size of the grid in threads: [`threads_per_grid`](KernelBuilder::threads_per_grid).
    GridSize grid_size(; dim: Dim): S::QueryDim => Expand(common::grid_size), uniformity GRID,
        example (; Dim::X): Type::U32;
    /// The thread's number in its simdgroup: its lane (X2).
    ThreadIndexInSimdgroup thread_index_in_simdgroup(): S::Query => Query, uniformity VARYING,
        capability Capability::Simdgroup,
        example (): Type::U32;
    /// The simdgroup's number in its threadgroup (X2).
    SimdgroupIndexInThreadgroup simdgroup_index_in_threadgroup(): S::Query => Query,
        uniformity SIMDGROUP, capability Capability::Simdgroup,
        example (): Type::U32;
    /// How many simdgroups this threadgroup has, the last one perhaps not full.
    SimdgroupsPerThreadgroup simdgroups_per_threadgroup(): S::Query => Query,
        uniformity THREADGROUP, capability Capability::Simdgroup,
        example (): Type::U32;
    /// How many simdgroups a threadgroup has that is not at an edge of the grid.
    DispatchSimdgroupsPerThreadgroup dispatch_simdgroups_per_threadgroup(): S::Query => Query,
        uniformity GRID, capability Capability::Simdgroup,
        example (): Type::U32;
    /// How many lanes a full simdgroup has: the simdgroup size (X2).
    ThreadsPerSimdgroup threads_per_simdgroup(): S::Query => Query, uniformity GRID,
        capability Capability::Simdgroup,
        example (): Type::U32;
    /// The simdgroup size: [`threads_per_simdgroup`](KernelBuilder::threads_per_simdgroup).
    ThreadExecutionWidth thread_execution_width(): S::Query
        => Expand(common::thread_execution_width), uniformity GRID,
        capability Capability::Simdgroup,
        example (): Type::U32;
    /// The thread's number in its quadgroup (X2).
    ThreadIndexInQuadgroup thread_index_in_quadgroup(): S::Query => Query, uniformity VARYING,
        capability Capability::Quadgroup,
        example (): Type::U32;
    /// The quadgroup's number in its threadgroup (X2).
    QuadgroupIndexInThreadgroup quadgroup_index_in_threadgroup(): S::Query => Query,
        uniformity VARYING, capability Capability::Quadgroup,
        example (): Type::U32;
    /// How many quadgroups this threadgroup has, the last one perhaps not full.
    QuadgroupsPerThreadgroup quadgroups_per_threadgroup(): S::Query => Query,
        uniformity THREADGROUP, capability Capability::Quadgroup,
        example (): Type::U32;
    /// How many quadgroups a threadgroup has that is not at an edge of the grid.
    DispatchQuadgroupsPerThreadgroup dispatch_quadgroups_per_threadgroup(): S::Query => Query,
        uniformity GRID, capability Capability::Quadgroup,
        example (): Type::U32;
}
