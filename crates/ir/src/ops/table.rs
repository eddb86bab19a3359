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
use Meaning::{Arrange, Eval, Query};
use Signature as S;

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

    /// Whether `a` equals `b`; a NaN equals nothing.
    Eq eq(a, b): S::Compare(C::ANY) => Eval(eval::eq);
    /// Whether `a` is less than `b`.
    Lt lt(a, b): S::Compare(C::NUMBER) => Eval(eval::lt);

    /// `on_true` where the condition holds, else `on_false`, by component.
    Select select(on_false, on_true, condition): S::Select(C::ANY) => Eval(eval::select);

    /// Converts to the named type of the same shape (A5).
    Cast cast(x; ty: Type): S::Cast => Eval(eval::cast);
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
