//! The functions that stand before a kernel: what is total in Invar and not in C++, and accesses of several
//! elements. Each is written once, when it is first used.

use std::fmt::Write as _;

use invar_ir::Scalar;

use crate::shading::helpers as shading;

use super::types;

/// The helpers of one kernel, in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct Helpers(shading::Helpers);

impl Helpers {
    /// All of them.
    pub(super) fn text(&self) -> String {
        self.0
            .texts()
            .map(|text| format!("{}\n\n", text.trim()))
            .collect()
    }

    /// Adds a helper unless one of that key is there; `text` comes before those added later.
    pub(super) fn add(&mut self, key: &str, text: impl FnOnce() -> String) {
        if self.0.is_first(key) {
            self.0.push(text());
        }
    }

    /// A2's quotient.
    pub(super) fn divide(&mut self, s: Scalar) -> &'static str {
        let ty = types::scalar(s);
        self.add(&format!("divide {ty}"), || {
            if s.is_signed_integer() {
                let wide = if s.bits() == 64 { "ulong" } else { "uint" };
                format!(
                    "// 0 for a divisor of 0; the most negative number by -1 is itself.
static inline {ty} invar_divide({ty} a, {ty} b) {{
    return b == 0 ? {ty}(0) : b == -1 ? {ty}({wide}(0) - {wide}(a)) : {ty}(a / b);
}}"
                )
            } else {
                format!(
                    "// 0 for a divisor of 0.
static inline {ty} invar_divide({ty} a, {ty} b) {{
    return b == 0 ? {ty}(0) : {ty}(a / b);
}}"
                )
            }
        });
        "invar_divide"
    }

    /// A2's remainder.
    pub(super) fn remainder(&mut self, s: Scalar) -> &'static str {
        let ty = types::scalar(s);
        let none = if s.is_signed_integer() {
            "b == 0 || b == -1"
        } else {
            "b == 0"
        };
        self.add(&format!("remainder {ty}"), || {
            format!(
                "// 0 for a divisor of 0.
static inline {ty} invar_remainder({ty} a, {ty} b) {{
    return {none} ? {ty}(0) : {ty}(a % b);
}}"
            )
        });
        "invar_remainder"
    }

    /// A7's `min` and `max`.
    pub(super) fn float_limit(&mut self, smaller: bool) -> &'static str {
        let (name, operator, sign, words) = if smaller {
            ("invar_min", "<", "as_type<int>(a) < 0", "smaller")
        } else {
            ("invar_max", ">", "as_type<int>(a) >= 0", "larger")
        };
        self.add(name, || {
            format!(
                "// The {words}; of a NaN and a number the number; -0 is less than +0.
static inline float {name}(float a, float b) {{
    const bool b_is_nan = (as_type<uint>(b) & 0x7fffffffu) > 0x7f800000u;
    return a {operator} b || b_is_nan || (a == b && {sign}) ? a : b;
}}"
            )
        });
        name
    }

    /// A5's conversion of a float to an integer.
    pub(super) fn saturated(&mut self, to: Scalar) -> String {
        let ty = types::scalar(to);
        let name = format!("invar_{ty}");
        let bits = to.bits();
        let (least, most, least_value, most_value) = if to.is_signed_integer() {
            let edge = 2f64.powi(bits as i32 - 1);
            let bound = 1i128 << (bits - 1);
            let most = bound - 1;
            let suffix = if bits == 64 { "l" } else { "" };
            (
                format!("{:?}f", -edge),
                format!("{edge:?}f"),
                format!("{ty}(-{most}{suffix} - 1)"),
                format!("{ty}({most}{suffix})"),
            )
        } else {
            let most = (1i128 << bits) - 1;
            let suffix = if bits == 64 { "ul" } else { "u" };
            (
                "0.0f".to_string(),
                format!("{:?}f", 2f64.powi(bits as i32)),
                format!("{ty}(0)"),
                format!("{ty}({most}{suffix})"),
            )
        };
        self.add(&name, || {
            format!(
                "// Truncates and saturates; 0 of a NaN.
static inline {ty} {name}(float x) {{
    const bool is_nan = (as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u;
    return is_nan ? {ty}(0) : x <= {least} ? {least_value} : x >= {most} ? {most_value} : {ty}(x);
}}"
            )
        });
        name
    }

    /// An integer of 32 or 64 bits rounded once: first to 24 bits that keep whether anything was lost.
    pub(super) fn bfloat_of_integer(&mut self, from: Scalar) -> &'static str {
        self.add("bfloat of ulong", || {
            "// Iterations once: a lowest bit of 1 stands for all that the float could not hold.
static inline bfloat invar_bfloat_of(ulong x) {
    const uint shift = x < 16777216ul ? 0u : 40u - uint(clz(x));
    const ulong kept = x >> shift;
    const ulong odd = (kept << shift) != x ? 1ul : 0ul;
    return bfloat(float(uint(kept | odd)) * as_type<float>((shift + 127u) << 23));
}"
            .to_string()
        });
        if from.is_signed_integer() {
            self.add("bfloat of long", || {
                "static inline bfloat invar_bfloat_of(long x) {
    const bfloat size = invar_bfloat_of(x < 0 ? 0ul - ulong(x) : ulong(x));
    return x < 0 ? as_type<bfloat>(ushort(as_type<ushort>(size) ^ 0x8000)) : size;
}"
                .to_string()
            });
        }
        match from {
            Scalar::I32 => {
                self.add("bfloat of int", || {
                    "static inline bfloat invar_bfloat_of(int x) { return invar_bfloat_of(long(x)); }"
                        .to_string()
                });
            }
            Scalar::U32 => {
                self.add("bfloat of uint", || {
                    "static inline bfloat invar_bfloat_of(uint x) { return invar_bfloat_of(ulong(x)); }"
                        .to_string()
                });
            }
            _ => {}
        }
        "invar_bfloat_of"
    }

    /// `a * b + c` of bfloats. The product is a float exactly unless it is below float's normal numbers.
    pub(super) fn bfloat_fma(&mut self) -> &'static str {
        self.add("bfloat fma", || {
            "// Iterations once: the float sum is made odd where it is not exact.
static inline bfloat invar_fma(bfloat a, bfloat b, bfloat c) {
    const float product = float(a) * float(b);
    const float sum = product + float(c);
    const float part = sum - product;
    const float error = (product - (sum - part)) + (float(c) - part);
    const uint bits = as_type<uint>(sum);
    if (!(fabs(error) > 0.0f) || (bits & 1u) != 0u) return bfloat(sum);
    const bool toward_zero = ((as_type<uint>(error) ^ bits) >> 31) != 0u;
    return bfloat(as_type<float>(toward_zero ? bits - 1u : bits + 1u));
}"
            .to_string()
        });
        "invar_fma"
    }

    /// The iterations of a `for` over indices of type `s`, as mathematical integers.
    pub(super) fn iterations(&mut self, s: Scalar, step: Scalar) -> &'static str {
        let ty = types::scalar(s);
        let step_type = types::scalar(step);
        let wide = if s.bits() == 64 { "ulong" } else { "uint" };
        self.add(&format!("iterations {ty} {step_type}"), || {
            let as_wide = |name: &str, ty: &str| {
                if ty == wide {
                    name.to_string()
                } else {
                    format!("{wide}({name})")
                }
            };
            let (lower, upper) = (as_wide("lower", ty), as_wide("upper", ty));
            let by = as_wide("step", step_type);
            let mut text = format!(
                "// How many iterations it takes from `lower` by `step` to `upper`.
static inline {wide} invar_iterations({ty} lower, {ty} upper, {step_type} step) {{
    if (step > 0 && lower < upper) return ({upper} - {lower} - 1) / {by} + 1;
"
            );
            if step.is_signed_integer() {
                let _ = writeln!(
                    text,
                    "    if (step < 0 && lower > upper) return ({lower} - {upper} - 1) / (0 - {by}) + 1;"
                );
            }
            text.push_str("    return 0;\n}");
            text
        });
        "invar_iterations"
    }
}
