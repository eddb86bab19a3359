//! Functions written in WGSL, put into a module when something needs them.

use invar_ir::expand::exp_of_f32;

use super::fused;
use super::interface::Fma;
use super::writer::Writer;

impl Writer<'_> {
    /// Puts a function, and what it needs, into the module.
    ///
    /// # Panics
    /// If there is none of that name.
    pub(super) fn need(&mut self, name: &str) {
        if self.written.contains(name) {
            return;
        }
        let fma = self.options.features.fma;
        for other in needs(name, fma) {
            self.need(other);
        }
        let text = text(name, fma).unwrap_or_else(|| panic!("no helper is called {name}"));
        self.helper(name, |_| text);
    }

    /// The function that is an `fma` of `f32`.
    pub(super) fn fma(&mut self) -> &'static str {
        let fma = self.options.features.fma;
        if fma != Fma::Fused {
            self.need(fused::NAME);
        }
        fused::function(fma)
    }

    /// Adds a helper at module scope unless it is there.
    pub(super) fn helper(&mut self, name: &str, text: impl FnOnce(&mut Self) -> String) {
        if self.written.insert(name.to_string()) {
            let text = text(self);
            self.helpers.push(text);
        }
    }
}

/// What a helper calls.
fn needs(name: &str, fma: Fma) -> &'static [&'static str] {
    match name {
        fused::NAME if fma == Fma::InIntegers => &["u32__mul_hi"],
        fused::SUM if fma == Fma::InIntegers => &[fused::NAME],
        "f32__exp" | "f32__div" if fma != Fma::Fused => &[fused::NAME],
        "f16__min" => &["f32__min"],
        "f16__max" => &["f32__max"],
        "f32__min" | "f32__max" | "f32__near_i32" | "bf16__round" => &["f32__is_nan"],
        "i32__mul_hi" => &["u32__mul_hi"],
        "i64__mul_hi" => &["u64__mul_hi"],
        "u64__div" | "u64__rem" => &["u64__quotient"],
        "i64__div" => &["u64__div", "i64__magnitude"],
        "i64__rem" => &["u64__rem", "i64__magnitude"],
        "i32__to_bf16" => &["u32__to_bf16", "bf16__round"],
        "u32__to_bf16" => &["bf16__round"],
        "i64__to_bf16" => &["u64__to_bf16"],
        "u64__to_bf16" => &["u64__leading_zeros", "bf16__round"],
        _ if name.starts_with("f32__to_") => &["f32__is_nan"],
        _ => &[],
    }
}

fn text(name: &str, fma: Fma) -> Option<String> {
    let operators = [("__div", "/"), ("__rem", "%")];
    for (suffix, operator) in operators {
        if let Some(ty @ ("i32" | "u32")) = name.strip_suffix(suffix) {
            return Some(division(ty, name, operator));
        }
    }
    if name == "f32__exp" {
        return Some(exp(fused::function(fma)));
    }
    if name == "f32__div" {
        return Some(quotient(fused::function(fma)));
    }
    if name == fused::NAME {
        return fused::text(fma).map(str::to_string);
    }
    if name == fused::SUM {
        return Some(fused::sum_text(fma).to_string());
    }
    if let Some(ty) = name.strip_prefix("f32__to_") {
        return Some(to_integer(ty, name));
    }
    let text = match name {
        "zero_bits" => {
            "// Never written: it keeps bits that make no literal from being folded.
var<private> zero_bits: u32;
"
        }
        "hidden_bits" => {
            "// Bits of a constant that no compiler knows: rows are shorter than 2^31.
fn hidden_bits(bits: u32) -> u32 {
    return bits | (constants.row >> 31u);
}
"
        }
        "elsewhere" => {
            "// Never true: workgroups are fewer than 2^32 - 1. No driver takes what depends on it for a uniform.
var<private> elsewhere: bool;
"
        }
        "i32__index" => {
            "fn i32__index(i: i32) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0i);
}
"
        }
        "i64__index" => {
            "fn i64__index(i: i64) -> u32 {
    return select(u32(i), 0xffffffffu, i < 0li || i > 4294967294li);
}
"
        }
        "u64__index" => {
            "fn u64__index(i: u64) -> u32 {
    return select(u32(i), 0xffffffffu, i > 4294967294lu);
}
"
        }
        "f32__is_nan" => {
            "fn f32__is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
"
        }
        "f32__near_i32" => {
            "// Of a number in the range of i32.
fn f32__near_i32(x: f32) -> i32 {
    return select(i32(x), 0i, f32__is_nan(x));
}
"
        }
        "f32__order" => {
            "// The order of floats as unsigned integers: NaN, -inf, ..., -0, 0, ..., inf.
fn f32__order(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return (bits ^ (u32(bitcast<i32>(x) >> 31u) & 0x7fffffffu)) - 0x7f800001u;
}
"
        }
        "f32__unorder" => {
            "fn f32__unorder(order: u32) -> f32 {
    let bits = order + 0x7f800001u;
    return bitcast<f32>(bits ^ (u32(bitcast<i32>(bits) >> 31u) & 0x7fffffffu));
}
"
        }
        "f32__min" => {
            "fn f32__min(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let smaller = select(b, a, a < b || f32__is_nan(b));
    return select(smaller, bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b)), a == b);
}
"
        }
        "f32__max" => {
            "fn f32__max(a: f32, b: f32) -> f32 {
    // Equal numbers have the same bits, but for zeros.
    let larger = select(b, a, a > b || f32__is_nan(b));
    return select(larger, bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b)), a == b);
}
"
        }
        "f16__min" => {
            "fn f16__min(a: float16, b: float16) -> float16 {
    return float16(f32__min(f32(a), f32(b)));
}
"
        }
        "f16__max" => {
            "fn f16__max(a: float16, b: float16) -> float16 {
    return float16(f32__max(f32(a), f32(b)));
}
"
        }
        "f16__round" => {
            "// The nearest f16, ties to even.
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
"
        }
        "bf16__round" => {
            "// The nearest bf16, ties to even.
fn bf16__round(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let nan = bits | 0x00400000u;
    let nearest = bits + 0x7fffu + ((bits >> 16u) & 1u);
    return bitcast<f32>(select(nearest, nan, f32__is_nan(x)) & 0xffff0000u);
}
"
        }
        "u32__mul_hi" => {
            "fn u32__mul_hi(a: u32, b: u32) -> u32 {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let middle = a_high * b_low + ((a_low * b_low) >> 16u);
    let other = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (other >> 16u);
}
"
        }
        "i32__mul_hi" => {
            "fn i32__mul_hi(a: i32, b: i32) -> i32 {
    return i32(u32__mul_hi(u32(a), u32(b))) - select(0i, b, a < 0i) - select(0i, a, b < 0i);
}
"
        }
        "u64__mul_hi" => {
            "fn u64__mul_hi(a: u64, b: u64) -> u64 {
    let a_low = a & 0xfffffffflu;
    let a_high = a >> 32u;
    let b_low = b & 0xfffffffflu;
    let b_high = b >> 32u;
    let middle = a_high * b_low + ((a_low * b_low) >> 32u);
    let other = a_low * b_high + (middle & 0xfffffffflu);
    return a_high * b_high + (middle >> 32u) + (other >> 32u);
}
"
        }
        "i64__mul_hi" => {
            "fn i64__mul_hi(a: i64, b: i64) -> i64 {
    // A factor counts where the other one is negative. As a choice between two values lavapipe gets it
    // wrong for constants.
    return i64(u64__mul_hi(u64(a), u64(b))) - ((a >> 63u) & b) - ((b >> 63u) & a);
}
"
        }
        "u64__quotient" => {
            "// For b > 0, by the high words and then bit by bit: with a 64-bit division in a kernel some
// compilers lose halves of other values.
fn u64__quotient(a: u64, b: u64) -> u64 {
    let high = u32(a >> 32u);
    let low = u32(a & 0xfffffffflu);
    var rest = u64(high);
    var quotient = 0lu;
    if (b <= 0xfffffffflu) {
        let divisor = u32(b & 0xfffffffflu);
        if (high == 0u) {
            return u64(low / divisor);
        }
        quotient = u64(high / divisor);
        rest = u64(high % divisor);
    }
    for (var bit = 0u; bit < 32u; bit++) {
        rest = (rest << 1u) | u64((low >> (31u - bit)) & 1u);
        quotient = quotient << 1u;
        if (rest >= b) {
            rest = rest - b;
            quotient = quotient | 1lu;
        }
    }
    return quotient;
}
"
        }
        "u64__div" => {
            "fn u64__div(a: u64, b: u64) -> u64 {
    if (b == 0lu) {
        return 0lu;
    }
    return u64__quotient(a, b);
}
"
        }
        "u64__rem" => {
            "fn u64__rem(a: u64, b: u64) -> u64 {
    if (b == 0lu) {
        return 0lu;
    }
    return a - u64__quotient(a, b) * b;
}
"
        }
        "i64__div" => {
            "fn i64__div(a: i64, b: i64) -> i64 {
    let quotient = i64(u64__div(u64(i64__magnitude(a)), u64(i64__magnitude(b))));
    let negative = (a ^ b) >> 63u;
    return (quotient ^ negative) - negative;
}
"
        }
        "i64__rem" => {
            "fn i64__rem(a: i64, b: i64) -> i64 {
    let rest = i64(u64__rem(u64(i64__magnitude(a)), u64(i64__magnitude(b))));
    let negative = a >> 63u;
    return (rest ^ negative) - negative;
}
"
        }
        "i64__magnitude" => {
            "fn i64__magnitude(x: i64) -> i64 {
    let negative = x >> 63u;
    return (x ^ negative) - negative;
}
"
        }
        "u64__count_ones" => {
            "fn u64__count_ones(x: u64) -> u64 {
    return u64(countOneBits(u32(x & 0xfffffffflu)) + countOneBits(u32(x >> 32u)));
}
"
        }
        "u64__leading_zeros" => {
            "fn u64__leading_zeros(x: u64) -> u64 {
    let high = u32(x >> 32u);
    let low = u32(x & 0xfffffffflu);
    return u64(select(countLeadingZeros(high), 32u + countLeadingZeros(low), high == 0u));
}
"
        }
        "u64__trailing_zeros" => {
            "fn u64__trailing_zeros(x: u64) -> u64 {
    let high = u32(x >> 32u);
    let low = u32(x & 0xfffffffflu);
    return u64(select(countTrailingZeros(low), 32u + countTrailingZeros(high), low == 0u));
}
"
        }
        "u64__reverse" => {
            "fn u64__reverse(x: u64) -> u64 {
    let high = u64(reverseBits(u32(x & 0xfffffffflu)));
    return (high << 32u) | u64(reverseBits(u32(x >> 32u)));
}
"
        }
        "u32__to_bf16" => {
            "// Rounded once: what an f32 cannot hold is rounded to odd on the way.
fn u32__to_bf16(x: u32) -> f32 {
    let odd = (x & 0xffffff00u) | select(0u, 0x100u, (x & 0xffu) != 0u);
    return bf16__round(f32(select(x, odd, x >= 0x1000000u)));
}
"
        }
        "i32__to_bf16" => {
            "fn i32__to_bf16(x: i32) -> f32 {
    let magnitude = u32__to_bf16(u32(select(x, 0i - x, x < 0i)));
    return select(magnitude, -magnitude, x < 0i);
}
"
        }
        "u64__to_bf16" => {
            "// Rounded once: what an f32 cannot hold is rounded to odd on the way.
fn u64__to_bf16(x: u64) -> f32 {
    if (x < 0x1000000lu) {
        return bf16__round(f32(u32(x)));
    }
    let shift = 40u - u32(u64__leading_zeros(x));
    let kept = u32(x >> shift);
    let odd = kept | select(0u, 1u, (u64(kept) << shift) != x);
    return bf16__round(f32(odd) * bitcast<f32>((127u + shift) << 23u));
}
"
        }
        "i64__to_bf16" => {
            "fn i64__to_bf16(x: i64) -> f32 {
    let magnitude = u64__to_bf16(u64(select(x, 0li - x, x < 0li)));
    return select(magnitude, -magnitude, x < 0li);
}
"
        }
        _ => return None,
    };
    Some(text.to_string())
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
