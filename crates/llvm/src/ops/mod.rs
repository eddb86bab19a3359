//! The operations that a device must implement: the rows of the op table with an evaluator, on one
//! scalar or on each lane of a vector.
//!
//! They give what the evaluators of `invar-ir` give, for every operand (A1 to A9), except for the
//! bits of a NaN. No instruction here can trap or give poison: divisors, shift counts and conversions
//! are made safe first.
//!
//! `float.rs` has arithmetic of floats, the short ones through `f32`; `convert.rs` conversions;
//! `integer.rs` division, products of twice the width and counts of ones in bytes; `quotients.rs` quotients by constants
//! as products. Native arithmetic of
//! `f16` is deliberately absent: what computes through `f32` is right everywhere.

use inkwell::values::{BasicValueEnum, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};
use invar_ir::{Op, Scalar, Type};

use crate::emit::Emit;
pub(crate) use convert::Known;
pub(crate) use quotients::divided;
use words::{Any, Words};

mod convert;
mod float;
mod integer;
mod quotients;
#[cfg(test)]
mod tests;
mod words;

/// One component of a row with an evaluator, or of a function that was not written out: `from` is the scalar type of the first operand, `to`
/// that of the result. Operands are scalars or vectors, all of one shape, except that the condition
/// of `select` may be one scalar; `bool` is `i1`, `f16` is `half`, `bf16` is its bits:
/// LLVM would find out what an `xor` of the sign of a `bfloat` is, and compute it by an instruction that
/// flushes subnormals.
pub(crate) fn eval<'c>(
    e: &Emit<'c>,
    op: Op,
    from: Scalar,
    to: Scalar,
    args: &[BasicValueEnum<'c>],
) -> BasicValueEnum<'c> {
    let w = Words::like(e, args[0]);
    let bits = from.bits();
    let a = args[0];
    match op {
        Op::Add => basic(
            w,
            from,
            InstructionOpcode::Add,
            InstructionOpcode::FAdd,
            args,
        ),
        Op::Sub => basic(
            w,
            from,
            InstructionOpcode::Sub,
            InstructionOpcode::FSub,
            args,
        ),
        Op::Mul => basic(
            w,
            from,
            InstructionOpcode::Mul,
            InstructionOpcode::FMul,
            &quotients::factors(w, from, [a, args[1]]),
        ),
        Op::Div if from.is_float() => {
            let [a, b] = [a, args[1]].map(|x| float::widen(w, from, x));
            float::narrow(w, from, w.binary(InstructionOpcode::FDiv, a, b))
        }
        Op::Div => integer::divide(w, from, a, args[1]),
        Op::Rem => integer::remainder(w, from, a, args[1]),
        Op::Neg if from.is_float() => float::negate(w, from, a),
        Op::Neg => w.sub(w.integer(bits, 0), a),
        Op::Fma => {
            let [a, b] = quotients::factors(w, from, [a, args[1]]);
            float::fma(w, from, a, b, args[2])
        }
        Op::Sqrt => {
            let root = w.call("llvm.sqrt", &[float::widen(w, from, a)]);
            float::narrow(w, from, root)
        }
        Op::Abs if from.is_float() => float::magnitude(w, from, a),
        Op::Abs if from.is_signed_integer() => w.call("llvm.abs", &[a, w.flag(false)]),
        Op::Abs => a,
        Op::Min | Op::Fmin if from.is_float() => float::minimum(w, from, a, args[1]),
        Op::Max | Op::Fmax if from.is_float() => float::maximum(w, from, a, args[1]),
        Op::Min if from.is_signed_integer() => w.call("llvm.smin", args),
        Op::Min => w.call("llvm.umin", args),
        Op::Max if from.is_signed_integer() => w.call("llvm.smax", args),
        Op::Max => w.call("llvm.umax", args),
        Op::Ceil => float::round(w, from, float::Rounding::Up, a),
        Op::Floor => float::round(w, from, float::Rounding::Down, a),
        Op::Trunc => float::round(w, from, float::Rounding::TowardZero, a),
        Op::Rint => float::round(w, from, float::Rounding::NearestEven, a),
        Op::And => w.and(a, args[1]),
        Op::Or => w.or(a, args[1]),
        Op::Xor => w.xor(a, args[1]),
        Op::Not => w.not(bits, a),
        Op::Shl => w.binary(InstructionOpcode::Shl, a, count(w, bits, args[1])),
        Op::Shr if from.is_signed_integer() => {
            w.binary(InstructionOpcode::AShr, a, count(w, bits, args[1]))
        }
        Op::Shr => w.binary(InstructionOpcode::LShr, a, count(w, bits, args[1])),
        Op::Popcount if integer::counts_by_hand(e, bits) => integer::ones_of_byte(w, a),
        Op::Popcount => w.call("llvm.ctpop", &[a]),
        Op::Clz => w.call("llvm.ctlz", &[a, w.flag(false)]),
        Op::Ctz if integer::counts_by_hand(e, bits) => {
            let below_lowest = w.and(w.not(bits, a), w.sub(a, w.integer(bits, 1)));
            integer::ones_of_byte(w, below_lowest)
        }
        Op::Ctz => w.call("llvm.cttz", &[a, w.flag(false)]),
        Op::ReverseBits => w.call("llvm.bitreverse", &[a]),
        Op::MulHi => integer::multiply_high(w, from, a, args[1]),
        Op::Eq => compare(w, from, Ordering::EQ, args),
        Op::Ne => compare(w, from, Ordering::NE, args),
        Op::Lt => compare(w, from, Ordering::LT, args),
        Op::Le => compare(w, from, Ordering::LE, args),
        Op::Gt => compare(w, from, Ordering::GT, args),
        Op::Ge => compare(w, from, Ordering::GE, args),
        Op::Select => select(w, from, args),
        Op::Cast => convert::cast(w, from, to, a),
        function => {
            let types = vec![Type::Scalar(from); args.len()];
            crate::defined::call(e, function, &types, args)[0]
        }
    }
}

/// Floats that are in a range, unless they are NaN, as integers.
pub(crate) fn cast_within<'c>(
    e: &Emit<'c>,
    from: Scalar,
    to: Scalar,
    x: BasicValueEnum<'c>,
    known: Known,
) -> BasicValueEnum<'c> {
    convert::float_to_integer(Words::like(e, x), from, to, x, known)
}

/// An instruction for integers, and the one for floats.
fn basic<'c>(
    w: Words<'_, 'c>,
    from: Scalar,
    integer: InstructionOpcode,
    float: InstructionOpcode,
    args: &[Any<'c>],
) -> Any<'c> {
    if !from.is_float() {
        return w.binary(integer, args[0], args[1]);
    }
    let [a, b] = [args[0], args[1]].map(|x| float::widen(w, from, x));
    float::narrow(w, from, w.binary(float, a, b))
}

/// A shift count modulo the width, which is a power of two (A3).
fn count<'c>(w: Words<'_, 'c>, bits: u32, by: Any<'c>) -> Any<'c> {
    w.and(by, w.integer(bits, u64::from(bits) - 1))
}

/// A comparison of floats, of signed and of unsigned integers.
struct Ordering(FloatPredicate, IntPredicate, IntPredicate);

impl Ordering {
    const EQ: Ordering = Ordering(FloatPredicate::OEQ, IntPredicate::EQ, IntPredicate::EQ);
    const NE: Ordering = Ordering(FloatPredicate::UNE, IntPredicate::NE, IntPredicate::NE);
    const LT: Ordering = Ordering(FloatPredicate::OLT, IntPredicate::SLT, IntPredicate::ULT);
    const LE: Ordering = Ordering(FloatPredicate::OLE, IntPredicate::SLE, IntPredicate::ULE);
    const GT: Ordering = Ordering(FloatPredicate::OGT, IntPredicate::SGT, IntPredicate::UGT);
    const GE: Ordering = Ordering(FloatPredicate::OGE, IntPredicate::SGE, IntPredicate::UGE);
}

fn compare<'c>(w: Words<'_, 'c>, from: Scalar, ordering: Ordering, args: &[Any<'c>]) -> Any<'c> {
    if from.is_float() {
        let [a, b] = [args[0], args[1]].map(|x| float::widen(w, from, x));
        return w.compare_floats(ordering.0, a, b);
    }
    let predicate = if from.is_signed_integer() {
        ordering.1
    } else {
        ordering.2
    };
    w.compare(predicate, args[0], args[1])
}

/// `c ? b : a`, short floats as the integers that their bits are.
fn select<'c>(w: Words<'_, 'c>, from: Scalar, args: &[Any<'c>]) -> Any<'c> {
    if !float::is_short(from) {
        return w.choose(args[2], args[1], args[0]);
    }
    let [a, b] = [args[0], args[1]].map(|x| w.bits_as(x, w.int(16)));
    w.bits_as(w.choose(args[2], b, a), w.ty(from))
}
