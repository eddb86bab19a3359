//! The rows of the op table.
//!
//! A row reads: documentation; name, and in parentheses the operands (`;` before what it takes
//! beside values) if the builder's method follows from them; `:` signature; `=>` meaning; accuracy;
//! uniformity; capability. The last three are left out where they are exact, that of the operands,
//! and core.

use super::{
    Accuracy, Capability, Classes, Dim, Imm, Meaning, OpRow, ResultUniformity, Signature, Swizzle,
    eval,
};
use crate::builder::KernelBuilder;
use crate::expand::{
    self, exponential, inverse_trigonometric, logarithm, power, remainder, trigonometric,
};
use crate::inst::{Scope, Value};
use crate::types::Type;

macro_rules! rows {
    ($(
        $(#[doc = $doc:literal])+
        $op:ident $name:ident $(($($arg:ident),* $(; $imm:ident: $imm_type:ty)?))? :
        $signature:expr => $meaning:expr
        $(, accuracy $accuracy:expr)?
        $(, uniformity $uniformity:expr)?
        $(, capability $capability:expr)?;
    )*) => {
        /// An operation: a row of the op table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Op {
            $($(#[doc = $doc])+ $op,)*
        }

        pub(super) static TABLE: &[OpRow] = &[$(
            OpRow {
                op: Op::$op,
                name: stringify!($name),
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
            $(rows! { @method [$($doc)+] $op $name $(($($arg),* $(; $imm: $imm_type)?))? })*
        }
    };
    (@method [$($doc:literal)+] $op:ident $name:ident) => {};
    (@method [$($doc:literal)+] $op:ident $name:ident
        ($($arg:ident),* $(; $imm:ident: $imm_type:ty)?)) => {
        $(#[doc = $doc])+
        pub fn $name(&mut self, $($arg: Value,)* $($imm: $imm_type)?) -> Value {
            let imm = rows!(@or Imm::None $(, Imm::from($imm))?);
            self.op(Op::$op, imm, &[$($arg),*])
        }
    };
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
}

use Classes as C;
use Meaning::{Arrange, Eval, Expand, Query};
use Signature as S;

/// Measured errors, in units in the last place.
const fn ulp(f32: f32, f64: f32) -> Accuracy {
    Accuracy::Ulp { f32, f64 }
}

/// The same for all threads of the grid.
const GRID: ResultUniformity = ResultUniformity::Over(Scope::Device);
/// The same for all threads of a threadgroup.
const THREADGROUP: ResultUniformity = ResultUniformity::Over(Scope::Threadgroup);
/// Differs from thread to thread.
const VARYING: ResultUniformity = ResultUniformity::Varying;

rows! {
    /// The sum; integers wrap (A1).
    Add add(a, b): S::Same(2, C::NUMBER.and(C::MATRIX)) => Eval(eval::add);
    /// The difference; integers wrap (A1).
    Sub sub(a, b): S::Same(2, C::NUMBER.and(C::MATRIX)) => Eval(eval::sub);
    /// The product, component by component; integers wrap (A1).
    Mul mul(a, b): S::Same(2, C::NUMBER) => Eval(eval::mul);
    /// The quotient. Integers truncate toward zero, and `x / 0` is 0 (A2).
    Div div(a, b): S::Same(2, C::NUMBER) => Eval(eval::div);
    /// The remainder of [`div`](Self::div), with the sign of `a`; `x % 0` is 0 (A2).
    Rem rem(a, b): S::Same(2, C::INTEGER) => Eval(eval::rem);
    /// `a * b + c` with one rounding.
    Fma fma(a, b, c): S::Same(3, C::FLOAT) => Eval(eval::fma);

    /// `-x`: the sign bit flipped, of an integer the wrapped negative (A1).
    Neg neg(x): S::Same(1, C::NUMBER) => Eval(eval::neg);
    /// The magnitude; the most negative integer is its own (A1).
    Abs abs(x): S::Same(1, C::NUMBER) => Eval(eval::abs);
    /// The square root.
    Sqrt sqrt(x): S::Same(1, C::FLOAT) => Eval(eval::sqrt);
    /// The next integer that is not greater.
    Floor floor(x): S::Same(1, C::FLOAT) => Eval(eval::floor);
    /// The next integer that is not less.
    Ceil ceil(x): S::Same(1, C::FLOAT) => Eval(eval::ceil);
    /// The next integer toward zero.
    Trunc trunc(x): S::Same(1, C::FLOAT) => Eval(eval::trunc);
    /// The nearest integer, ties to even.
    Rint rint(x): S::Same(1, C::FLOAT) => Eval(eval::rint);
    /// The high half of the product of twice the width.
    MulHi mul_hi(a, b): S::Same(2, C::INTEGER) => Eval(eval::mul_hi);

    /// Bits set in both; of `bool`, whether both hold.
    And and(a, b): S::Same(2, C::BITS) => Eval(eval::and);
    /// Bits set in either; of `bool`, whether one holds.
    Or or(a, b): S::Same(2, C::BITS) => Eval(eval::or);
    /// Bits set in exactly one; of `bool`, whether one alone holds.
    Xor xor(a, b): S::Same(2, C::BITS) => Eval(eval::xor);
    /// Bits not set; of `bool`, whether it does not hold.
    Not not(x): S::Same(1, C::BITS) => Eval(eval::not);
    /// `a` shifted left; the count is taken modulo the width (A3).
    Shl shl(a, count): S::Same(2, C::INTEGER) => Eval(eval::shl);
    /// `a` shifted right, arithmetically if signed; the count is taken modulo the width (A3).
    Shr shr(a, count): S::Same(2, C::INTEGER) => Eval(eval::shr);

    /// Whether `a` equals `b`; a NaN equals nothing.
    Eq eq(a, b): S::Compare(C::ANY) => Eval(eval::eq);
    /// Whether `a` differs from `b`; a NaN differs from everything.
    Ne ne(a, b): S::Compare(C::ANY) => Eval(eval::ne);
    /// Whether `a` is less than `b`.
    Lt lt(a, b): S::Compare(C::NUMBER) => Eval(eval::lt);

    /// Whether `a` is at most `b`.
    Le le(a, b): S::Compare(C::NUMBER) => Eval(eval::le);
    /// Whether `a` is greater than `b`.
    Gt gt(a, b): S::Compare(C::NUMBER) => Eval(eval::gt);
    /// Whether `a` is at least `b`.
    Ge ge(a, b): S::Compare(C::NUMBER) => Eval(eval::ge);

    /// `on_true` where the condition holds, else `on_false`, by component.
    Select select(on_false, on_true, condition): S::Select(C::ANY) => Eval(eval::select);

    /// Converts to the named type of the same shape (A5).
    Cast cast(x; ty: Type): S::Cast => Eval(eval::cast);
    /// The same bits as a value of the named type.
    AsType as_type(x; ty: Type): S::AsType => Arrange;
    /// A vector from components (scalars and vectors that add up, or one scalar for all), or a
    /// matrix from its columns.
    Construct construct: S::Construct => Arrange;
    /// A component of a vector or a column of a matrix; 0 if the index is out of bounds (B4).
    Extract extract(x, index): S::Extract => Arrange;
    /// `x` with a component (of a vector) or column (of a matrix) replaced; `x` itself if the
    /// index is out of bounds (B4).
    Insert insert(x, index, part): S::Insert => Arrange;
    /// Components of a vector in the order named.
    Swizzle swizzle(x; components: Swizzle): S::Swizzle => Arrange;

    /// e to the power `x`.
    Exp exp(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp)),
        accuracy ulp(0.9, 0.9);
    /// 2 to the power `x`.
    Exp2 exp2(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp2)),
        accuracy ulp(0.9, 0.8);
    /// 10 to the power `x`.
    Exp10 exp10(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::exp10)),
        accuracy ulp(0.9, 0.9);
    /// The natural logarithm; of 0 minus infinity, of less NaN.
    Log log(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log)),
        accuracy ulp(1.0, 1.2);
    /// The logarithm to the base 2; of 0 minus infinity, of less NaN.
    Log2 log2(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log2)),
        accuracy ulp(1.0, 0.9);
    /// The logarithm to the base 10; of 0 minus infinity, of less NaN.
    Log10 log10(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::log10)),
        accuracy ulp(1.0, 1.0);
    /// `x` to the power `y`, with the special cases of C99, F.9.4.4: `pow(x, 0)` and `pow(1, y)` are 1.
    Pow pow(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, power::pow)),
        accuracy ulp(1.0, 1.0);
    /// `x` to the power `y` as e to the power `y log(x)`: of a negative `x`, and of 0 to the power 0, NaN.
    Powr powr(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, power::powr)),
        accuracy ulp(1.0, 1.0);
    /// 1 over the square root.
    Rsqrt rsqrt(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, power::rsqrt)),
        accuracy ulp(1.5, 1.5);
    /// The sine of `x` radians, for every finite `x`; never beyond 1.
    Sin sin(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::sin)),
        accuracy ulp(1.6, 1.5);
    /// The cosine of `x` radians, for every finite `x`; never beyond 1.
    Cos cos(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::cos)),
        accuracy ulp(1.6, 1.5);
    /// The tangent of `x` radians, for every finite `x`.
    Tan tan(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::tan)),
        accuracy ulp(1.6, 1.5);
    /// The sine of pi `x`; at integers a zero with the sign of `x`.
    Sinpi sinpi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::sinpi)),
        accuracy ulp(1.0, 1.0);
    /// The cosine of pi `x`; between integers +0.
    Cospi cospi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::cospi)),
        accuracy ulp(1.0, 1.0);
    /// The tangent of pi `x`; at odd integers the zero's sign is against that of `x`.
    Tanpi tanpi(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, trigonometric::tanpi)),
        accuracy ulp(1.6, 1.6);
    /// The angle in [-pi/2, pi/2] whose sine is `x`; NaN beyond 1.
    Asin asin(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::asin)),
        accuracy ulp(1.3, 1.3);
    /// The angle in [0, pi] whose cosine is `x`; NaN beyond 1.
    Acos acos(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::acos)),
        accuracy ulp(1.3, 1.3);
    /// The angle in [-pi/2, pi/2] whose tangent is `x`.
    Atan atan(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, inverse_trigonometric::atan)),
        accuracy ulp(1.5, 1.5);
    /// The angle of the point (`x`, `y`) in [-pi, pi]; zeros keep their signs.
    Atan2 atan2(y, x): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, inverse_trigonometric::atan2)),
        accuracy ulp(1.6, 1.6);
    /// The hyperbolic sine.
    Sinh sinh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::sinh)),
        accuracy ulp(1.6, 1.6);
    /// The hyperbolic cosine.
    Cosh cosh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::cosh)),
        accuracy ulp(1.4, 1.4);
    /// The hyperbolic tangent.
    Tanh tanh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::tanh)),
        accuracy ulp(1.4, 1.4);
    /// The number whose hyperbolic sine is `x`.
    Asinh asinh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::asinh)),
        accuracy ulp(1.4, 1.4);
    /// The number, not negative, whose hyperbolic cosine is `x`; NaN below 1.
    Acosh acosh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::acosh)),
        accuracy ulp(1.7, 1.7);
    /// The number whose hyperbolic tangent is `x`; NaN beyond 1.
    Atanh atanh(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, logarithm::atanh)),
        accuracy ulp(1.3, 1.3);
    /// The error function.
    Erf erf(x): S::Same(1, C::FLOAT) => Expand(|b, _, x| expand::unary(b, x, exponential::erf)),
        accuracy ulp(1.2, 1.2);
    /// `x - y trunc(x / y)`, exactly; NaN of an infinite `x` or a zero `y`.
    Fmod fmod(x, y): S::Same(2, C::FLOAT) => Expand(|b, _, x| expand::binary(b, x, remainder::fmod));
    /// The thread's position in the grid.
    ThreadPositionInGrid thread_position_in_grid(; dim: Dim): S::QueryDim => Query, uniformity VARYING;
    /// The thread's position in its threadgroup.
    ThreadPositionInThreadgroup thread_position_in_threadgroup(; dim: Dim): S::QueryDim => Query,
        uniformity VARYING;
    /// The thread's number in its threadgroup: x + y*size_x + z*size_x*size_y (X2).
    ThreadIndexInThreadgroup thread_index_in_threadgroup(): S::Query => Query, uniformity VARYING;
    /// The threadgroup's position in the grid.
    ThreadgroupPositionInGrid threadgroup_position_in_grid(; dim: Dim): S::QueryDim => Query,
        uniformity THREADGROUP;
    /// The size of this threadgroup, smaller at an edge of the grid (X2).
    ThreadsPerThreadgroup threads_per_threadgroup(; dim: Dim): S::QueryDim => Query,
        uniformity THREADGROUP;
    /// The size of the grid in threads.
    ThreadsPerGrid threads_per_grid(; dim: Dim): S::QueryDim => Query, uniformity GRID;
}
