//! Functions written in WGSL, put into a module when something needs them: those that are the same in every module.
//! What depends on a kernel is written where it is used ([`Writer::helper`]).

use invar_ir::expand::exp_of_f32;
use invar_ir::{Op, Scalar};

use super::fused;
use super::interface::Fma;
use super::loops::Loops;
use super::writer::Writer;

impl Writer<'_> {
    /// Puts a function, and what it needs, into the module. Returns its name.
    pub(super) fn need(&mut self, helper: Helper) -> &'static str {
        let name = helper.name();
        if !self.helpers.has(name) {
            let fma = self.options.features.fma;
            for other in helper.needs(fma) {
                self.need(*other);
            }
            self.helper(name, |w| helper.text(fma, &w.loops));
        }
        name
    }

    /// The function that is an `fma` of `f32`.
    pub(super) fn fma(&mut self) -> &'static str {
        let fma = self.options.features.fma;
        if fma != Fma::Fused {
            self.need(Helper::Fma);
        }
        fused::function(fma)
    }

    /// Adds a function of that name at module scope unless it is there; what `text` adds stands before it.
    pub(super) fn helper(&mut self, name: &str, text: impl FnOnce(&mut Self) -> String) {
        if self.helpers.is_first(name) {
            let text = text(self);
            self.helpers.push(text);
        }
    }
}

/// What modules have at most one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    ZeroBits,
    HiddenBits,
    Elsewhere,
    I32Index,
    I64Index,
    U64Index,
    IsNan,
    NearI32,
    Order,
    Unorder,
    F32Min,
    F32Max,
    F16Min,
    F16Max,
    F16Round,
    Bf16Round,
    U32MulHi,
    I32MulHi,
    U64MulHi,
    I64MulHi,
    U64Quotient,
    I32Div,
    U32Div,
    I64Div,
    U64Div,
    I32Rem,
    U32Rem,
    I64Rem,
    U64Rem,
    I64Magnitude,
    CountOnes,
    LeadingZeros,
    TrailingZeros,
    Reverse,
    I32ToBf16,
    U32ToBf16,
    I64ToBf16,
    U64ToBf16,
    ToI8,
    ToI16,
    ToI32,
    ToI64,
    ToU8,
    ToU16,
    ToU32,
    ToU64,
    F32Div,
    Exp,
    Fma,
    Sum,
}

impl Helper {
    /// What it is called in a module.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Helper::ZeroBits => "zero_bits",
            Helper::HiddenBits => "hidden_bits",
            Helper::Elsewhere => "elsewhere",
            Helper::I32Index => "i32__index",
            Helper::I64Index => "i64__index",
            Helper::U64Index => "u64__index",
            Helper::IsNan => "f32__is_nan",
            Helper::NearI32 => "f32__near_i32",
            Helper::Order => "f32__order",
            Helper::Unorder => "f32__unorder",
            Helper::F32Min => "f32__min",
            Helper::F32Max => "f32__max",
            Helper::F16Min => "f16__min",
            Helper::F16Max => "f16__max",
            Helper::F16Round => "f16__round",
            Helper::Bf16Round => "bf16__round",
            Helper::U32MulHi => "u32__mul_hi",
            Helper::I32MulHi => "i32__mul_hi",
            Helper::U64MulHi => "u64__mul_hi",
            Helper::I64MulHi => "i64__mul_hi",
            Helper::U64Quotient => "u64__quotient",
            Helper::I32Div => "i32__div",
            Helper::U32Div => "u32__div",
            Helper::I64Div => "i64__div",
            Helper::U64Div => "u64__div",
            Helper::I32Rem => "i32__rem",
            Helper::U32Rem => "u32__rem",
            Helper::I64Rem => "i64__rem",
            Helper::U64Rem => "u64__rem",
            Helper::I64Magnitude => "i64__magnitude",
            Helper::CountOnes => "u64__count_ones",
            Helper::LeadingZeros => "u64__leading_zeros",
            Helper::TrailingZeros => "u64__trailing_zeros",
            Helper::Reverse => "u64__reverse",
            Helper::I32ToBf16 => "i32__to_bf16",
            Helper::U32ToBf16 => "u32__to_bf16",
            Helper::I64ToBf16 => "i64__to_bf16",
            Helper::U64ToBf16 => "u64__to_bf16",
            Helper::ToI8 => "f32__to_i8",
            Helper::ToI16 => "f32__to_i16",
            Helper::ToI32 => "f32__to_i32",
            Helper::ToI64 => "f32__to_i64",
            Helper::ToU8 => "f32__to_u8",
            Helper::ToU16 => "f32__to_u16",
            Helper::ToU32 => "f32__to_u32",
            Helper::ToU64 => "f32__to_u64",
            Helper::F32Div => "f32__div",
            Helper::Exp => "f32__exp",
            Helper::Fma => fused::NAME,
            Helper::Sum => fused::SUM,
        }
    }

    /// The quotient or remainder of integers of a type (A2).
    pub(super) const fn division(op: Op, scalar: Scalar) -> Helper {
        let quotient = matches!(op, Op::Div);
        match (quotient, scalar) {
            (true, Scalar::U64) => Helper::U64Div,
            (false, Scalar::U64) => Helper::U64Rem,
            (true, Scalar::I64) => Helper::I64Div,
            (false, Scalar::I64) => Helper::I64Rem,
            (true, signed) if signed.is_signed_integer() => Helper::I32Div,
            (false, signed) if signed.is_signed_integer() => Helper::I32Rem,
            (true, _unsigned) => Helper::U32Div,
            (false, _unsigned) => Helper::U32Rem,
        }
    }

    /// The upper half of a product of integers of 32 or 64 bits.
    pub(super) const fn mul_hi(scalar: Scalar) -> Helper {
        match scalar {
            Scalar::U64 => Helper::U64MulHi,
            Scalar::I64 => Helper::I64MulHi,
            signed if signed.is_signed_integer() => Helper::I32MulHi,
            _unsigned => Helper::U32MulHi,
        }
    }

    /// A float as an integer of a type (A5).
    pub(super) const fn to_integer(scalar: Scalar) -> Helper {
        match scalar {
            Scalar::I8 => Helper::ToI8,
            Scalar::I16 => Helper::ToI16,
            Scalar::I32 => Helper::ToI32,
            Scalar::I64 => Helper::ToI64,
            Scalar::U8 => Helper::ToU8,
            Scalar::U16 => Helper::ToU16,
            Scalar::U32 => Helper::ToU32,
            _widest => Helper::ToU64,
        }
    }

    /// An integer of 32 or 64 bits as a bf16.
    pub(super) const fn to_bf16(scalar: Scalar) -> Helper {
        match scalar {
            Scalar::U64 => Helper::U64ToBf16,
            Scalar::I64 => Helper::I64ToBf16,
            signed if signed.is_signed_integer() => Helper::I32ToBf16,
            _unsigned => Helper::U32ToBf16,
        }
    }

    /// What it calls.
    const fn needs(self, fma: Fma) -> &'static [Helper] {
        match self {
            Helper::Fma if matches!(fma, Fma::InIntegers) => &[Helper::U32MulHi],
            Helper::Sum if matches!(fma, Fma::InIntegers) => &[Helper::Fma],
            Helper::Exp | Helper::F32Div if !matches!(fma, Fma::Fused) => &[Helper::Fma],
            Helper::F16Min => &[Helper::F32Min],
            Helper::F16Max => &[Helper::F32Max],
            Helper::I32MulHi => &[Helper::U32MulHi],
            Helper::I64MulHi => &[Helper::U64MulHi],
            Helper::U64Div | Helper::U64Rem => &[Helper::U64Quotient],
            Helper::I64Div => &[Helper::U64Div, Helper::I64Magnitude],
            Helper::I64Rem => &[Helper::U64Rem, Helper::I64Magnitude],
            Helper::I32ToBf16 => &[Helper::U32ToBf16, Helper::Bf16Round],
            Helper::U32ToBf16 => &[Helper::Bf16Round],
            Helper::I64ToBf16 => &[Helper::U64ToBf16],
            Helper::U64ToBf16 => &[Helper::LeadingZeros, Helper::Bf16Round],
            Helper::F32Min | Helper::F32Max | Helper::NearI32 | Helper::Bf16Round => {
                &[Helper::IsNan]
            }
            Helper::ToI8 | Helper::ToI16 | Helper::ToI32 | Helper::ToI64 => &[Helper::IsNan],
            Helper::ToU8 | Helper::ToU16 | Helper::ToU32 | Helper::ToU64 => &[Helper::IsNan],
            _alone => &[],
        }
    }

    fn text(self, fma: Fma, loops: &Loops) -> String {
        let name = self.name();
        match self {
            Helper::I32Div => division("i32", name, "/"),
            Helper::U32Div => division("u32", name, "/"),
            Helper::I32Rem => division("i32", name, "%"),
            Helper::U32Rem => division("u32", name, "%"),
            Helper::Exp => exp(fused::function(fma)),
            Helper::F32Div => quotient(fused::function(fma)),
            Helper::Fma => fused::text(fma).to_string(),
            Helper::Sum => fused::sum_text(fma).to_string(),
            Helper::ToI8 => to_integer("i8", name),
            Helper::ToI16 => to_integer("i16", name),
            Helper::ToI32 => to_integer("i32", name),
            Helper::ToI64 => to_integer("i64", name),
            Helper::ToU8 => to_integer("u8", name),
            Helper::ToU16 => to_integer("u16", name),
            Helper::ToU32 => to_integer("u32", name),
            Helper::ToU64 => to_integer("u64", name),
            Helper::ZeroBits => ZERO_BITS.to_string(),
            Helper::HiddenBits => HIDDEN_BITS.to_string(),
            Helper::Elsewhere => ELSEWHERE.to_string(),
            Helper::I32Index => I32_INDEX.to_string(),
            Helper::I64Index => I64_INDEX.to_string(),
            Helper::U64Index => U64_INDEX.to_string(),
            Helper::IsNan => F32_IS_NAN.to_string(),
            Helper::NearI32 => F32_NEAR_I32.to_string(),
            Helper::Order => F32_ORDER.to_string(),
            Helper::Unorder => F32_UNORDER.to_string(),
            Helper::F32Min => F32_MIN.to_string(),
            Helper::F32Max => F32_MAX.to_string(),
            Helper::F16Min => F16_MIN.to_string(),
            Helper::F16Max => F16_MAX.to_string(),
            Helper::F16Round => F16_ROUND.to_string(),
            Helper::Bf16Round => BF16_ROUND.to_string(),
            Helper::U32MulHi => U32_MUL_HI.to_string(),
            Helper::I32MulHi => I32_MUL_HI.to_string(),
            Helper::U64MulHi => U64_MUL_HI.to_string(),
            Helper::I64MulHi => I64_MUL_HI.to_string(),
            Helper::U64Quotient => u64_quotient(loops),
            Helper::I64Div => I64_DIV.to_string(),
            Helper::U64Div => U64_DIV.to_string(),
            Helper::I64Rem => I64_REM.to_string(),
            Helper::U64Rem => U64_REM.to_string(),
            Helper::I64Magnitude => I64_MAGNITUDE.to_string(),
            Helper::CountOnes => U64_COUNT_ONES.to_string(),
            Helper::LeadingZeros => U64_LEADING_ZEROS.to_string(),
            Helper::TrailingZeros => U64_TRAILING_ZEROS.to_string(),
            Helper::Reverse => U64_REVERSE.to_string(),
            Helper::I32ToBf16 => I32_TO_BF16.to_string(),
            Helper::U32ToBf16 => U32_TO_BF16.to_string(),
            Helper::I64ToBf16 => I64_TO_BF16.to_string(),
            Helper::U64ToBf16 => U64_TO_BF16.to_string(),
        }
    }
}

const ZERO_BITS: &str = "// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;
";

const HIDDEN_BITS: &str =
    "// Bits of a constant that no compiler knows: rows are shorter than 2^31.
fn hidden_bits(bits: u32) -> u32 {
    return bits | (constants.row >> 31u);
}
";

const ELSEWHERE: &str = "// Never true: workgroups are fewer than 2^32 - 1. No driver takes what depends on it for a uniform.
var<private> elsewhere: bool;
";

const I32_INDEX: &str = "fn i32__index(i: i32) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0i);
}
";

const I64_INDEX: &str = "fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}
";

const U64_INDEX: &str = "fn u64__index(i: u64) -> u32 {
    return select(u32(i), 0xffffffffu, i > 4294967294lu);
}
";

const F32_IS_NAN: &str = "fn f32__is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
";

const F32_NEAR_I32: &str = "// Of a number in the range of i32.
fn f32__near_i32(x: f32) -> i32 {
    return select(i32(x), 0i, f32__is_nan(x));
}
";

const F32_ORDER: &str =
    "// The order of floats as unsigned integers: NaN, -inf, ..., -0, 0, ..., inf.
fn f32__order(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return (bits ^ (u32(bitcast<i32>(x) >> 31u) & 0x7fffffffu)) - 0x7f800001u;
}
";

const F32_UNORDER: &str = "fn f32__unorder(order: u32) -> f32 {
    let bits = order + 0x7f800001u;
    return bitcast<f32>(bits ^ (u32(bitcast<i32>(bits) >> 31u) & 0x7fffffffu));
}
";

const F32_MIN: &str = "fn f32__min(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let smaller = select(b, a, a < b || f32__is_nan(b));
    return select(smaller, bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b)), a == b);
}
";

const F32_MAX: &str = "fn f32__max(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let larger = select(b, a, a > b || f32__is_nan(b));
    return select(larger, bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b)), a == b);
}
";

const F16_MIN: &str = "fn f16__min(a: float16, b: float16) -> float16 {
    return float16(f32__min(f32(a), f32(b)));
}
";

const F16_MAX: &str = "fn f16__max(a: float16, b: float16) -> float16 {
    return float16(f32__max(f32(a), f32(b)));
}
";

const F16_ROUND: &str = "// The nearest f16, ties to even.
fn f16__round(x: f32) -> float16 {
    let bits = bitcast<u32>(x);
    let sign = bits & 0x80000000u;
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return float16(x);
    }
    if (magnitude >= 0x477ff000u) {
        return float16(bitcast<f32>(sign | 0x7f800000u));
    }
    if (magnitude < 0x38800000u) {
        let steps = round(bitcast<f32>(magnitude) * 16777216.0);
        return float16(bitcast<f32>(bitcast<u32>(steps * 0.000000059604644775390625) | sign));
    }
    return float16(bitcast<f32>(sign | ((magnitude + 0x0fffu + ((magnitude >> 13u) & 1u)) & 0xffffe000u)));
}
";

const BF16_ROUND: &str = "// The nearest bf16, ties to even.
fn bf16__round(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let nan = bits | 0x00400000u;
    let nearest = bits + 0x7fffu + ((bits >> 16u) & 1u);
    return bitcast<f32>(select(nearest, nan, f32__is_nan(x)) & 0xffff0000u);
}
";

const U32_MUL_HI: &str = "fn u32__mul_hi(a: u32, b: u32) -> u32 {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let middle = a_high * b_low + ((a_low * b_low) >> 16u);
    let other = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (other >> 16u);
}
";

const I32_MUL_HI: &str = "fn i32__mul_hi(a: i32, b: i32) -> i32 {
    return i32(u32__mul_hi(u32(a), u32(b))) - select(0i, b, a < 0i) - select(0i, a, b < 0i);
}
";

const U64_MUL_HI: &str = "fn u64__mul_hi(a: u64, b: u64) -> u64 {
    let a_low = a & 0xfffffffflu;
    let a_high = a >> 32u;
    let b_low = b & 0xfffffffflu;
    let b_high = b >> 32u;
    let middle = a_high * b_low + ((a_low * b_low) >> 32u);
    let other = a_low * b_high + (middle & 0xfffffffflu);
    return a_high * b_high + (middle >> 32u) + (other >> 32u);
}
";

const I64_MUL_HI: &str = "fn i64__mul_hi(a: i64, b: i64) -> i64 {
    // A factor counts where the other one is negative. As a choice between two values lavapipe gets it
    // wrong for constants.
    return i64(u64__mul_hi(u64(a), u64(b))) - ((a >> 63u) & b) - ((b >> 63u) & a);
}
";

const I64_DIV: &str = "fn i64__div(a: i64, b: i64) -> i64 {
    let quotient = i64(u64__div(u64(i64__magnitude(a)), u64(i64__magnitude(b))));
    let negative = (a ^ b) >> 63u;
    return (quotient ^ negative) - negative;
}
";

const U64_DIV: &str = "fn u64__div(a: u64, b: u64) -> u64 {
    if (b == 0lu) {
        return 0lu;
    }
    return u64__quotient(a, b);
}
";

const I64_REM: &str = "fn i64__rem(a: i64, b: i64) -> i64 {
    let rest = i64(u64__rem(u64(i64__magnitude(a)), u64(i64__magnitude(b))));
    let negative = a >> 63u;
    return (rest ^ negative) - negative;
}
";

const U64_REM: &str = "fn u64__rem(a: u64, b: u64) -> u64 {
    if (b == 0lu) {
        return 0lu;
    }
    return a - u64__quotient(a, b) * b;
}
";

const I64_MAGNITUDE: &str = "fn i64__magnitude(x: i64) -> i64 {
    let negative = x >> 63u;
    return (x ^ negative) - negative;
}
";

const U64_COUNT_ONES: &str = "fn u64__count_ones(x: u64) -> u64 {
    return u64(countOneBits(u32(x & 0xfffffffflu)) + countOneBits(u32(x >> 32u)));
}
";

const U64_LEADING_ZEROS: &str = "fn u64__leading_zeros(x: u64) -> u64 {
    let high = u32(x >> 32u);
    let low = u32(x & 0xfffffffflu);
    return u64(select(countLeadingZeros(high), 32u + countLeadingZeros(low), high == 0u));
}
";

const U64_TRAILING_ZEROS: &str = "fn u64__trailing_zeros(x: u64) -> u64 {
    let high = u32(x >> 32u);
    let low = u32(x & 0xfffffffflu);
    return u64(select(countTrailingZeros(low), 32u + countTrailingZeros(high), low == 0u));
}
";

const U64_REVERSE: &str = "fn u64__reverse(x: u64) -> u64 {
    let high = u64(reverseBits(u32(x & 0xfffffffflu)));
    return (high << 32u) | u64(reverseBits(u32(x >> 32u)));
}
";

const I32_TO_BF16: &str = "fn i32__to_bf16(x: i32) -> f32 {
    let magnitude = u32__to_bf16(u32(select(x, 0i - x, x < 0i)));
    return select(magnitude, -magnitude, x < 0i);
}
";

const U32_TO_BF16: &str = "// Rounded once: what an f32 cannot hold is rounded to odd on the way.
fn u32__to_bf16(x: u32) -> f32 {
    let odd = (x & 0xffffff00u) | select(0u, 0x100u, (x & 0xffu) != 0u);
    return bf16__round(f32(select(x, odd, x >= 0x1000000u)));
}
";

const I64_TO_BF16: &str = "fn i64__to_bf16(x: i64) -> f32 {
    let magnitude = u64__to_bf16(u64(select(x, 0li - x, x < 0li)));
    return select(magnitude, -magnitude, x < 0li);
}
";

const U64_TO_BF16: &str = "// Rounded once: what an f32 cannot hold is rounded to odd on the way.
fn u64__to_bf16(x: u64) -> f32 {
    if (x < 0x1000000lu) {
        return bf16__round(f32(u32(x)));
    }
    let shift = 40u - u32(u64__leading_zeros(x));
    let kept = u32(x >> shift);
    let odd = kept | select(0u, 1u, (u64(kept) << shift) != x);
    return bf16__round(f32(odd) * bitcast<f32>((127u + shift) << 23u));
}
";

/// A quotient of 64 bits.
fn u64_quotient(loops: &Loops) -> String {
    let each_bit = loops.counted("bit = 0u; bit < 32u; bit++");
    format!(
        "// For b > 0, by the high words and then bit by bit: with a 64-bit division in a kernel some
// compilers lose halves of other values.
fn u64__quotient(a: u64, b: u64) -> u64 {{
    let high = u32(a >> 32u);
    let low = u32(a & 0xfffffffflu);
    var rest = u64(high);
    var quotient = 0lu;
    if (b <= 0xfffffffflu) {{
        let divisor = u32(b & 0xfffffffflu);
        if (high == 0u) {{
            return u64(low / divisor);
        }}
        quotient = u64(high / divisor);
        rest = u64(high % divisor);
    }}
    {each_bit}
        rest = (rest << 1u) | u64((low >> (31u - bit)) & 1u);
        quotient = quotient << 1u;
        if (rest >= b) {{
            rest = rest - b;
            quotient = quotient | 1lu;
        }}
    }}
    return quotient;
}}
"
    )
}

/// A quotient of `f32`, with the name of a fused `fma`.
fn quotient(fma: &str) -> String {
    format!(
        "// By the reciprocal and one step of Newton: a target's own division takes longer, and may be wrong by
// what is larger than 2^126. The factors keep the reciprocal in range.
fn f32__div(a: f32, b: f32) -> f32 {{
    let size = abs(b);
    let scale = select(select(1.0, 16777216.0, size < 1.2e-37), 0.0625, size > 8.5e37);
    let divisor = b * scale;
    let share = 1.0 / divisor;
    let quotient = (a * scale) * share;
    let better = {fma}({fma}(-quotient, divisor, a * scale), share, quotient);
    // Of zeros, whose sign it would lose, of infinities and of what is not a number there is none better.
    let normal = abs(quotient) > 0.0 && abs(quotient) <= 3.4028234e38;
    return select(quotient, better, normal && size <= 3.4028234e38);
}}
"
    )
}

/// The expansion of `exp` (A10) with an integer of n that comes from the bits of n + 3 2^22, in whose low end
/// it stands, and without a choice between arguments that are near 0; with the name of a fused `fma`.
fn exp(fma: &str) -> String {
    let k = exp_of_f32();
    let order: Vec<f32> = [1.0, 1.0]
        .into_iter()
        .chain(k.polynomial.iter().map(|c| *c as f32))
        .collect();
    let mut power = order.iter().rev();
    let last = power.next().map_or(String::new(), |c| format!("{c:?}f"));
    let power = power.fold(last, |sum, c| format!("{fma}({sum}, r, {c:?}f)"));
    let [high, low] = k.ln_2;
    let log2_e = k.log2_e;
    format!(
        "// The distance from 0 as an integer of the same order; that of NaN is the largest.
fn f32__magnitude(x: f32) -> u32 {{
    return bitcast<u32>(x) & 0x7fffffffu;
}}

// The magnitude of 87, up to which the result is a normal number.
const f32__exp_near_most: u32 = 0x42ae0000u;
// The bits of its square.
const f32__exp_near_squares: u32 = 0x45ec8800u;

// e^r of x = n ln(2) + r.
fn f32__exp_rest(x: f32, n: f32) -> f32 {{
    let r = {fma}(n, {:?}f, {fma}(n, ({:?}f), x));
    return {power};
}}

// e^x of an x up to 87 from 0.
fn f32__exp_near(x: f32) -> f32 {{
    let n = round(x * {log2_e:?}f);
    let power = bitcast<u32>(f32__exp_rest(x, n));
    return bitcast<f32>(power + (bitcast<u32>(n + 12582912.0f) << 23u));
}}

// e^x of any x, scaled in two steps.
fn f32__exp_far(x: f32) -> f32 {{
    let size = f32__magnitude(x);
    // Beyond 104 the result is zero, or infinite.
    let c = bitcast<f32>((bitcast<u32>(x) & 0x80000000u) | min(size, 0x42d00000u));
    let n = round(c * {log2_e:?}f);
    let power = bitcast<u32>(f32__exp_rest(c, n));
    let bits = bitcast<u32>(n + 12582912.0f);
    let half = bits >> 1u;
    let e = bitcast<f32>(power + (half << 23u)) * bitcast<f32>(((bits - half) << 23u) + 0x3f800000u);
    return select(e, x, size > 0x7f800000u);
}}

fn f32__exp(x: f32) -> f32 {{
    if (f32__magnitude(x) <= f32__exp_near_most) {{
        return f32__exp_near(x);
    }}
    return f32__exp_far(x);
}}
",
        -low, -high
    )
}

/// Integer division that is total (A2), of 32 bits.
fn division(ty: &str, name: &str, operator: &str) -> String {
    let suffix = if ty == "i32" { "i" } else { "u" };
    let zero = format!("0{suffix}");
    let minus_one = if ty.starts_with('i') {
        let result = if operator == "/" {
            format!("{zero} - a")
        } else {
            zero.clone()
        };
        format!("    if (b == (-1{suffix})) {{\n        return {result};\n    }}\n")
    } else {
        String::new()
    };
    format!(
        "fn {name}(a: {ty}, b: {ty}) -> {ty} {{\n    if (b == {zero}) {{\n        return {zero};\n    }}\n{minus_one}    return a {operator} b;\n}}\n"
    )
}

/// Float to integer: truncates, saturates, and makes 0 of NaN (A5).
fn to_integer(ty: &str, name: &str) -> String {
    // The range, the largest float below its end, and that end where a float reaches it.
    let (holds, zero, low, high, end) = match ty {
        "i8" => ("i32", "0i", "-128.0", "127.0", None),
        "i16" => ("i32", "0i", "-32768.0", "32767.0", None),
        "u8" => ("u32", "0u", "0.0", "255.0", None),
        "u16" => ("u32", "0u", "0.0", "65535.0", None),
        "i32" => (
            "i32",
            "0i",
            "-2147483648.0",
            "2147483520.0",
            Some(("2147483648.0", "2147483647i")),
        ),
        "u32" => (
            "u32",
            "0u",
            "0.0",
            "4294967040.0",
            Some(("4294967296.0", "0xffffffffu")),
        ),
        "i64" => (
            "i64",
            "0li",
            "-9223372036854775808.0",
            "9223371487098961920.0",
            Some(("9223372036854775808.0", "9223372036854775807li")),
        ),
        _ => (
            "u64",
            "0lu",
            "0.0",
            "18446742974197923840.0",
            Some(("18446744073709551616.0", "18446744073709551615lu")),
        ),
    };
    let saturate = end.map_or(String::new(), |(from, to)| {
        format!("    if (x >= {from}) {{\n        return {to};\n    }}\n")
    });
    format!(
        "fn {name}(x: f32) -> {holds} {{\n    if (f32__is_nan(x)) {{\n        return {zero};\n    }}\n{saturate}    return {holds}(clamp(x, {low}, {high}));\n}}\n"
    )
}
