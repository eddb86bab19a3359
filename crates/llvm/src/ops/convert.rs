//! Conversions (A5).

use inkwell::values::{BasicValueEnum, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};
use invar_ir::Scalar;

use super::float::{self, is_short};
use super::words::{Any, Words};

/// What is known of a float that becomes an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The least and the greatest that it may be where it is not NaN.
    pub range: [f64; 2],
    /// It is not NaN.
    pub is_number: bool,
    /// How many low bits of the integer make a difference.
    pub low_bits: u32,
}

/// What is known of any number.
const NOTHING: Known = Known {
    range: [f64::NEG_INFINITY, f64::INFINITY],
    is_number: false,
    low_bits: u32::MAX,
};

/// `x` of type `from` as `to`.
pub(super) fn cast<'c>(w: Words<'_, 'c>, from: Scalar, to: Scalar, x: Any<'c>) -> Any<'c> {
    if from == to {
        return x;
    }
    match (from.is_float(), to.is_float()) {
        (_, false) if to == Scalar::Bool => is_nonzero(w, from, x),
        (false, false) => integer_to_integer(w, from, to, x),
        (false, true) => integer_to_float(w, from, to, x),
        (true, false) => float_to_integer(w, from, to, x, NOTHING),
        (true, true) => float_to_float(w, from, to, x),
    }
}

fn is_nonzero<'c>(w: Words<'_, 'c>, from: Scalar, x: Any<'c>) -> Any<'c> {
    if !from.is_float() {
        return w.compare(IntPredicate::NE, x, w.integer(from.bits(), 0));
    }
    let zero = w.float(float::wide(from), 0.0);
    w.compare_floats(FloatPredicate::UNE, float::widen(w, from, x), zero)
}

fn integer_to_integer<'c>(w: Words<'_, 'c>, from: Scalar, to: Scalar, x: Any<'c>) -> Any<'c> {
    if from.is_signed_integer() && to.bits() > from.bits() {
        return w.convert(InstructionOpcode::SExt, x, w.ty(to));
    }
    w.resize(from.bits(), to.bits(), x)
}

fn integer_to_float<'c>(w: Words<'_, 'c>, from: Scalar, to: Scalar, x: Any<'c>) -> Any<'c> {
    let opcode = if from.is_signed_integer() {
        InstructionOpcode::SIToFP
    } else {
        InstructionOpcode::UIToFP
    };
    if !is_short(to) {
        return w.convert(opcode, x, w.ty(to));
    }
    if from.bits() <= 16 {
        let exact = w.convert(opcode, x, w.ty(Scalar::F32));
        return float::narrow(w, to, exact);
    }
    let wide = if from.bits() == 32 {
        w.convert(opcode, x, w.ty(Scalar::F64))
    } else {
        to_odd_f64(w, from, x)
    };
    float_to_float(w, Scalar::F64, to, wide)
}

/// A 64-bit integer rounded to odd.
fn to_odd_f64<'c>(w: Words<'_, 'c>, from: Scalar, x: Any<'c>) -> Any<'c> {
    let k = |value: u64| w.integer(64, value);
    let size = if from.is_signed_integer() {
        w.call("llvm.abs", &[x, w.flag(false)])
    } else {
        x
    };
    // Of a long number the bits below the 53 that count, as one.
    let long = w.compare(IntPredicate::UGE, size, k(1 << 53));
    let rest = w.compare(IntPredicate::NE, w.and(size, k(0x7ff)), k(0));
    let rest = w.convert(InstructionOpcode::ZExt, rest, w.int(64));
    let short = w.choose(long, w.or(w.down(64, size, 11), rest), size);
    let number = w.convert(InstructionOpcode::UIToFP, short, w.ty(Scalar::F64));
    let scale = w.choose(
        long,
        w.float(Scalar::F64, 2048.0),
        w.float(Scalar::F64, 1.0),
    );
    let number = w.fmul(number, scale);
    if !from.is_signed_integer() {
        return number;
    }
    let negative = w.compare(IntPredicate::SLT, x, k(0));
    w.choose(negative, float::negate(w, Scalar::F64, number), number)
}

/// Truncated and saturated; NaN to 0. What is known tells what is needless.
pub(super) fn float_to_integer<'c>(
    w: Words<'_, 'c>,
    from: Scalar,
    to: Scalar,
    x: Any<'c>,
    known: Known,
) -> Any<'c> {
    let signed = to.is_signed_integer();
    let x = float::widen(w, from, x);
    let [low, high] = known.range;
    let bits = to.bits();
    let power = |n: u32| 2f64.powi(n as i32);
    let (below, above) = if signed {
        (-power(bits - 1), power(bits - 1))
    } else {
        (0.0, power(bits))
    };
    let may_be_high = high >= above;
    if w.lanes().is_none() {
        let name = if signed {
            "llvm.fptosi.sat"
        } else {
            "llvm.fptoui.sat"
        };
        return w.call_for(name, &[w.ty(to), x.get_type()], &[x]);
    }
    if known.is_number && low >= below && !may_be_high && bits <= 32 {
        // All of these are integers of 32 bits with a sign too.
        let is_signed = signed || high < power(31);
        if is_signed
            && float::wide(from) == Scalar::F32
            && let Some(result) = nearest(w, x)
        {
            return w.resize(32, bits, result);
        }
        let (opcode, whole) = match is_signed {
            true => (InstructionOpcode::FPToSI, 32),
            false => (InstructionOpcode::FPToUI, bits),
        };
        return w.resize(whole, bits, w.convert(opcode, x, w.int(whole)));
    }
    if low >= below
        && !may_be_high
        && known.low_bits < bits
        && (float::wide(from), to) == (Scalar::F32, Scalar::I32)
        && let Some(result) = nearest(w, x).or_else(|| nan_to_least(w, x))
    {
        return result;
    }
    // LLVM computes those intrinsics of vectors lane by lane on x86. Here numbers out of range give
    // any one value first, and the right one is chosen afterwards.
    let float = float::wide(from);
    let zero = w.float(float, 0.0);
    // Where nothing below 0 counts, what is not above it gives 0, NaN too.
    let from_zero = !signed || low > -1.0;
    let x = if from_zero {
        w.choose(w.compare_floats(FloatPredicate::OGT, x, zero), x, zero)
    } else {
        x
    };
    let opcode = if signed {
        InstructionOpcode::FPToSI
    } else {
        InstructionOpcode::FPToUI
    };
    // Every processor converts to 32 bits; what is narrower is in their range.
    let (opcode, whole) = if bits < 32 {
        (InstructionOpcode::FPToSI, 32)
    } else {
        (opcode, bits)
    };
    let any = w.e.freeze(w.convert(opcode, x, w.int(whole)));
    let inside = w.resize(whole, bits, any);
    let ones = u64::MAX >> (64 - bits);
    let most = if signed { ones >> 1 } else { ones };
    let result = if may_be_high {
        let is_high = w.compare_floats(FloatPredicate::OGE, x, w.float(float, above));
        w.choose(is_high, w.integer(bits, most), inside)
    } else {
        inside
    };
    if from_zero {
        return result;
    }
    let result = if low >= below {
        result
    } else {
        let is_low = w.compare_floats(FloatPredicate::OLT, x, w.float(float, below));
        w.choose(is_low, w.integer(bits, 1 << (bits - 1)), result)
    };
    let is_number = w.compare_floats(FloatPredicate::ORD, x, x);
    w.choose(is_number, result, w.integer(bits, 0))
}

/// Truncated by an instruction that makes -2^31 of NaN, all of whose bits but the top one are those of 0;
/// `None` if there is none for so many lanes.
fn nan_to_least<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Option<Any<'c>> {
    let target = w.e.target;
    let call = |name: &str, args: &[Any<'c>]| w.e.intrinsic(name, &[], args);
    match w.lanes()? {
        4 if target.is_x86 => call("llvm.x86.sse2.cvttps2dq", &[x]),
        8 if target.has_avx2 => call("llvm.x86.avx.cvtt.ps2dq.256", &[x]),
        16 if target.has_avx512 => {
            const ROUNDING_OF_THE_THREAD: u32 = 4;
            let none = w.integer(32, 0);
            let all = w.e.context.i16_type().const_all_ones().into();
            let rounding = w.e.i32(ROUNDING_OF_THE_THREAD).into();
            let args = [x, none, all, rounding];
            call("llvm.x86.avx512.mask.cvttps2dq.512", &args)
        }
        _other_lanes => None,
    }
}

/// What was rounded to the nearest integer, by the instruction that does both and that makes -2^31 of NaN.
fn nearest<'c>(w: Words<'_, 'c>, x: Any<'c>) -> Option<Any<'c>> {
    let x = rounded(x)?;
    let target = w.e.target;
    let call = |name: &str, args: &[Any<'c>]| w.e.intrinsic(name, &[], args);
    match w.lanes()? {
        4 if target.is_x86 => call("llvm.x86.sse2.cvtps2dq", &[x]),
        8 if target.has_avx2 => call("llvm.x86.avx.cvt.ps2dq.256", &[x]),
        16 if target.has_avx512 => {
            const TO_NEAREST: u32 = 8;
            let none = w.integer(32, 0);
            let all = w.e.context.i16_type().const_all_ones().into();
            let args = [x, none, all, w.e.i32(TO_NEAREST).into()];
            call("llvm.x86.avx512.mask.cvtps2dq.512", &args)
        }
        _other_lanes => None,
    }
}

/// What [`float::round`] rounded to the nearest integer.
fn rounded(x: Any<'_>) -> Option<Any<'_>> {
    let call = x.into_vector_value().as_instruction()?;
    // Behind the operand of a call is what it calls.
    let called = (call.get_opcode() == InstructionOpcode::Call).then(|| call.get_operand(1))?;
    let BasicValueEnum::PointerValue(function) = called?.value()? else {
        return None;
    };
    let name = function.get_name().to_bytes();
    let operand = call.get_operand(0)?.value()?;
    name.starts_with(float::NEAREST.as_bytes())
        .then_some(operand)
}

fn float_to_float<'c>(w: Words<'_, 'c>, from: Scalar, to: Scalar, x: Any<'c>) -> Any<'c> {
    if from == Scalar::F64 {
        return if is_short(to) {
            float::narrow(w, to, float::f64_to_odd_f32(w, x))
        } else {
            w.convert(InstructionOpcode::FPTrunc, x, w.ty(to))
        };
    }
    let x = float::widen(w, from, x);
    if to == Scalar::F64 {
        w.convert(InstructionOpcode::FPExt, x, w.ty(to))
    } else {
        float::narrow(w, to, x)
    }
}
