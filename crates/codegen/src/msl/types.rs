//! Spellings of types, constants and elements.
//!
//! Values are Metal's own types. Memory follows L3, where a vector is an array of its scalars and a
//! `bool` a byte: vectors in memory are `packed_` ones, small matrices structs of packed columns, bools
//! `uchar`. Metal has no matrices of bfloat, so those values are structs of columns, too.

use invar_ir::{Const, ElementType, Scalar, StructDef, Type};

/// The scalar as a value's type.
pub(super) const fn scalar(s: Scalar) -> &'static str {
    match s {
        Scalar::Bool => "bool",
        Scalar::I8 => "char",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "long",
        Scalar::U8 => "uchar",
        Scalar::U16 => "ushort",
        Scalar::U32 => "uint",
        Scalar::U64 => "ulong",
        Scalar::F16 => "half",
        Scalar::BF16 => "bfloat",
        Scalar::F32 => "float",
        // Refused before anything is written.
        Scalar::F64 => "double",
    }
}

/// The scalar as it lies in memory.
pub(super) const fn memory_scalar(s: Scalar) -> &'static str {
    match s {
        Scalar::Bool => "uchar",
        other => scalar(other),
    }
}

/// The unsigned integer of the same width; of a float, of a `bool` the byte.
pub(super) const fn unsigned(s: Scalar) -> Scalar {
    match s.size_bytes() {
        1 => Scalar::U8,
        2 => Scalar::U16,
        4 => Scalar::U32,
        _ => Scalar::U64,
    }
}

/// A value's type. A simdgroup matrix is Metal's own; what an event is depends on how async copies are
/// made.
pub(super) fn value(ty: Type) -> String {
    match ty {
        Type::Scalar(s) => scalar(s).to_string(),
        Type::Vector(s, n) => format!("{}{n}", scalar(s)),
        Type::Matrix {
            scalar: s,
            columns,
            rows,
        } => {
            let prefix = if s == Scalar::BF16 { "invar_" } else { "" };
            format!("{prefix}{}{columns}x{rows}", scalar(s))
        }
        Type::SimdgroupMatrix {
            scalar: s,
            rows,
            columns,
        } => format!("simdgroup_{}{rows}x{columns}", scalar(s)),
        Type::Event => "invar_event".to_string(),
    }
}

/// The type of a scalar, vector or matrix in memory.
pub(super) fn memory(ty: Type) -> String {
    match ty {
        Type::Scalar(s) => memory_scalar(s).to_string(),
        Type::Vector(s, n) => format!("packed_{}{n}", memory_scalar(s)),
        Type::Matrix {
            scalar: s,
            columns,
            rows,
        } => format!("invar_packed_{}{columns}x{rows}", scalar(s)),
        Type::SimdgroupMatrix { .. } | Type::Event => "uint".to_string(),
    }
}

/// Zero in every component.
pub(super) fn zero(ty: Type) -> String {
    match ty {
        Type::Scalar(s) => constant(Const { scalar: s, bits: 0 }),
        Type::Vector(s, _) => {
            let zero = constant(Const { scalar: s, bits: 0 });
            format!("{}({zero})", value(ty))
        }
        Type::Matrix { .. } => format!("{}{{}}", value(ty)),
        Type::SimdgroupMatrix { .. } | Type::Event => "0u".to_string(),
    }
}

/// A scalar constant.
pub(super) fn constant(c: Const) -> String {
    let signed = |width: u32| ((c.bits << (64 - width)) as i64) >> (64 - width);
    match c.scalar {
        Scalar::Bool => (c.bits != 0).to_string(),
        Scalar::U8 => format!("uchar({})", c.bits),
        Scalar::U16 => format!("ushort({})", c.bits),
        Scalar::U32 => format!("{}u", c.bits),
        Scalar::U64 => format!("{}ul", c.bits),
        Scalar::I8 => format!("char({})", signed(8)),
        Scalar::I16 => format!("short({})", signed(16)),
        Scalar::I32 => match signed(32) {
            // The most negative number has no literal of its own.
            -2_147_483_648 => "int(0x80000000u)".to_string(),
            n if n < 0 => format!("({n})"),
            n => n.to_string(),
        },
        Scalar::I64 => match signed(64) {
            i64::MIN => "long(0x8000000000000000ul)".to_string(),
            n if n < 0 => format!("({n}l)"),
            n => format!("{n}l"),
        },
        Scalar::F32 => {
            let x = f32::from_bits(c.bits as u32);
            if x.is_finite() && !x.is_subnormal() {
                float_literal(x)
            } else if x == f32::INFINITY {
                "INFINITY".to_string()
            } else if x == f32::NEG_INFINITY {
                "(-INFINITY)".to_string()
            } else {
                format!("as_type<float>(0x{:08x}u)", c.bits)
            }
        }
        Scalar::F16 => {
            let x = f16_value(c.bits as u16);
            match x {
                Some(x) => format!("half({})", float_literal(x)),
                None => format!("as_type<half>(ushort(0x{:04x}))", c.bits),
            }
        }
        Scalar::BF16 => {
            let x = f32::from_bits((c.bits as u32) << 16);
            if x.is_finite() && !x.is_subnormal() {
                format!("bfloat({})", float_literal(x))
            } else {
                format!("as_type<bfloat>(ushort(0x{:04x}))", c.bits)
            }
        }
        Scalar::F64 => format!("as_type<double>(0x{:016x}ul)", c.bits),
    }
}

/// A number that is neither infinite nor NaN.
fn float_literal(x: f32) -> String {
    let digits = format!("{x:?}f");
    if x.is_sign_negative() {
        format!("({digits})")
    } else {
        digits
    }
}

/// What a binary16 stands for, if it is a normal number or a zero; each is a float exactly.
fn f16_value(bits: u16) -> Option<f32> {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = bits >> 10 & 31;
    let mantissa = u32::from(bits & 0x3ff) << 13;
    match exponent {
        0 if mantissa == 0 => Some(f32::from_bits(sign)),
        0 | 31 => None,
        e => Some(f32::from_bits(sign | (u32::from(e) + 112) << 23 | mantissa)),
    }
}

/// An element's type, and the lengths of the arrays around it, outermost first: what a C declaration
/// writes before and after the name.
pub(super) fn element(element: &ElementType, struct_names: &[String]) -> (String, Vec<u32>) {
    match element {
        ElementType::Value(ty) => (memory(*ty), Vec::new()),
        ElementType::Struct(id) => (struct_names[id.0 as usize].clone(), Vec::new()),
        ElementType::Array(inner, length) => {
            let (name, mut lengths) = self::element(inner, struct_names);
            lengths.insert(0, *length);
            (name, lengths)
        }
    }
}

/// `[4][3]`.
pub(super) fn brackets(lengths: &[u32]) -> String {
    lengths.iter().map(|n| format!("[{n}]")).collect()
}

/// Every scalar type that an element holds.
pub(super) fn scalars_of(element: &ElementType, structs: &[StructDef], f: &mut dyn FnMut(Type)) {
    match element {
        ElementType::Value(ty) => f(*ty),
        ElementType::Array(inner, _) => scalars_of(inner, structs, f),
        ElementType::Struct(id) => {
            for (_, field) in &structs[id.0 as usize].fields {
                scalars_of(field, structs, f);
            }
        }
    }
}

/// The name of a component: `x` to `w`.
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// `device float* x`, or a pointer to arrays.
pub(super) fn pointer(qualifiers: &str, ty: &str, name: &str, inner: &[u32]) -> String {
    if inner.is_empty() {
        format!("{qualifiers} {ty}* {name}")
    } else {
        format!("{qualifiers} {ty} (*{name}){}", brackets(inner))
    }
}

/// Column `k` of a matrix.
pub(super) fn column(text: &str, scalar: Scalar, k: &str) -> String {
    if scalar == Scalar::BF16 {
        format!("{text}.columns[{k}]")
    } else {
        format!("{text}[{k}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_keep_their_bits() {
        let text = |scalar, bits| constant(Const { scalar, bits });
        assert_eq!(text(Scalar::F32, 0x3dcc_cccd), "0.1f");
        assert_eq!(text(Scalar::F32, 0x8000_0000), "(-0.0f)");
        assert_eq!(
            text(Scalar::F32, 0x7fc0_0000),
            "as_type<float>(0x7fc00000u)"
        );
        assert_eq!(text(Scalar::F16, 0x3c00), "half(1.0f)");
        assert_eq!(text(Scalar::F16, 0x2e66), "half(0.099975586f)");
        assert_eq!(text(Scalar::F16, 1), "as_type<half>(ushort(0x0001))");
        assert_eq!(text(Scalar::BF16, 0xbf80), "bfloat((-1.0f))");
        assert_eq!(text(Scalar::I8, 0x80), "char(-128)");
        assert_eq!(text(Scalar::I32, 0xffff_ffff), "(-1)");
        assert_eq!(text(Scalar::I32, 0x8000_0000), "int(0x80000000u)");
        assert_eq!(text(Scalar::Bool, 1), "true");
    }
}
