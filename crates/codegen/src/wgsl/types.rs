//! Types of WGSL, and the bits of a scalar in memory.

use invar_ir::{Scalar, Type};

use super::interface::Features;

/// The WGSL type that holds a scalar. `float16` is an alias that the heading declares: of `f16`, or of `f32`
/// where the target has no `f16`.
pub(super) fn scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I8 | Scalar::I16 | Scalar::I32 => "i32",
        Scalar::U8 | Scalar::U16 | Scalar::U32 => "u32",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F16 => "float16",
        Scalar::BF16 | Scalar::F32 => "f32",
        Scalar::F64 => "f64",
    }
}

/// Entries of a simdgroup matrix.
pub(super) const MATRIX_ENTRIES: u32 = 64;

/// The WGSL type that holds a value.
pub(super) fn value(ty: Type) -> String {
    match ty {
        Type::Scalar(s) => scalar(s).to_string(),
        Type::Vector(s, n) => format!("vec{n}<{}>", scalar(s)),
        Type::Matrix {
            scalar: s,
            columns,
            rows,
        } => format!("mat{columns}x{rows}<{}>", scalar(s)),
        Type::SimdgroupMatrix { scalar: s, .. } => {
            format!("array<{}, {MATRIX_ENTRIES}>", scalar(s))
        }
        // Copies are made where they are issued; their events say nothing.
        Type::Event => "u32".to_string(),
    }
}

/// A type's name as a part of a function's name: of the language's type, not of what holds it.
pub(super) fn tag(ty: Type) -> String {
    ty.to_string()
}

/// Bytes of a scalar in memory that no host sees.
pub(super) fn held_bytes(scalar: Scalar, features: Features) -> u64 {
    match scalar {
        Scalar::F16 if features.f16 => 2,
        short => short.size_bytes().max(4),
    }
}

/// The value of all zero bits.
pub(super) fn zero(ty: Type) -> String {
    match ty {
        Type::Scalar(Scalar::Bool) => "false".to_string(),
        Type::Scalar(Scalar::F16) => "float16(0.0)".to_string(),
        Type::Scalar(s) if s.is_float() => "0.0".to_string(),
        Type::Scalar(Scalar::I64) => "0li".to_string(),
        Type::Scalar(Scalar::U64) => "0lu".to_string(),
        Type::Scalar(s) if s.is_signed_integer() => "0i".to_string(),
        Type::Scalar(_) | Type::Event => "0u".to_string(),
        Type::Vector(..) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } => {
            format!("{}()", value(ty))
        }
    }
}

/// A vector or matrix from the expressions of its scalars in order.
pub(super) fn assemble(ty: Type, parts: &[String]) -> String {
    match parts {
        [one] if matches!(ty, Type::Scalar(_) | Type::Event) => one.clone(),
        parts => format!("{}({})", value(ty), parts.join(", ")),
    }
}

/// The number of a component of a vector.
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// The expressions of the scalars of a value whose own expression is a name.
pub(super) fn parts(ty: Type, name: &str) -> Vec<String> {
    match ty {
        Type::Scalar(_) | Type::Event => vec![name.to_string()],
        Type::Vector(_, n) => COMPONENTS[..usize::from(n)]
            .iter()
            .map(|c| format!("{name}.{c}"))
            .collect(),
        Type::Matrix { columns, rows, .. } => (0..columns)
            .flat_map(|c| (0..rows).map(move |r| (c, r)))
            .map(|(c, r)| format!("{name}[{c}].{}", COMPONENTS[usize::from(r)]))
            .collect(),
        Type::SimdgroupMatrix { .. } => Vec::new(),
    }
}

/// As [`value`], a scalar repeated for every component of a type.
pub(super) fn splat(ty: Type, text: &str) -> String {
    match ty {
        Type::Vector(s, n) => format!("vec{n}<{}>({text})", scalar(s)),
        Type::Scalar(_) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
            text.to_string()
        }
    }
}

/// The vector of `u32` of a type's shape.
pub(super) fn splat_u32(ty: Type, text: &str) -> String {
    match ty {
        Type::Vector(_, n) => format!("vec{n}<u32>({text})"),
        Type::Scalar(_) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
            text.to_string()
        }
    }
}

/// The bits in memory of a scalar of at most 32, in the low end of a `u32`.
pub(super) fn to_bits(scalar: Scalar, text: &str) -> String {
    match scalar {
        Scalar::Bool => format!("select(0u, 1u, {text})"),
        Scalar::I8 => format!("(u32({text}) & 0xffu)"),
        Scalar::I16 => format!("(u32({text}) & 0xffffu)"),
        Scalar::I32 => format!("u32({text})"),
        Scalar::U8 | Scalar::U16 | Scalar::U32 => text.to_string(),
        Scalar::F16 => format!("(pack2x16float(vec2<f32>(f32({text}), 0.0)) & 0xffffu)"),
        Scalar::BF16 => format!("(bitcast<u32>({text}) >> 16u)"),
        Scalar::F32 => format!("bitcast<u32>({text})"),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => {
            unreachable!("a scalar of 64 bits has two words")
        }
    }
}

/// A scalar of at most 32 bits from its bits in memory; those above its width are 0.
pub(super) fn from_bits(scalar: Scalar, text: &str) -> String {
    match scalar {
        Scalar::Bool => format!("({text} != 0u)"),
        Scalar::I8 => format!("(i32({text} << 24u) >> 24u)"),
        Scalar::I16 => format!("(i32({text} << 16u) >> 16u)"),
        Scalar::I32 => format!("i32({text})"),
        Scalar::U8 | Scalar::U16 | Scalar::U32 => text.to_string(),
        Scalar::F16 => format!("float16(unpack2x16float({text}).x)"),
        Scalar::BF16 => format!("bitcast<f32>({text} << 16u)"),
        Scalar::F32 => format!("bitcast<f32>({text})"),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => {
            unreachable!("a scalar of 64 bits has two words")
        }
    }
}

/// A scalar from its words in memory: one, or two of 64-bit ones.
pub(super) fn from_words(scalar: Scalar, words: &[String]) -> String {
    match words {
        [low, high] => {
            let bits = format!("(u64({low}) | (u64({high}) << 32u))");
            match scalar {
                Scalar::I64 => format!("i64{bits}"),
                _unsigned => bits,
            }
        }
        words => {
            let word = words.first().cloned().unwrap_or_default();
            let masked = match scalar.size_bytes() {
                1 => format!("({word} & 0xffu)"),
                2 => format!("({word} & 0xffffu)"),
                _whole => word,
            };
            from_bits(scalar, &masked)
        }
    }
}

/// The words in memory of a scalar that a name stands for.
pub(super) fn to_words(scalar: Scalar, name: &str) -> Vec<String> {
    match scalar {
        Scalar::I64 | Scalar::U64 => vec![
            format!("u32(u64({name}) & 0xfffffffflu)"),
            format!("u32(u64({name}) >> 32u)"),
        ],
        short => vec![to_bits(short, name)],
    }
}

/// An f16 as the f32 of the same value.
pub(super) fn widen_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let finite = if magnitude < 0x0400 {
        // A subnormal counts steps of 2^-24.
        (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits()
    } else if magnitude < 0x7c00 {
        (magnitude << 13) + (112 << 23)
    } else {
        (magnitude << 13) | 0x7f80_0000
    };
    f32::from_bits(finite | sign)
}

/// A `u32` as an `i64`. In SPIR-V the sign of the result extends: what is converted in one step is
/// negative from 2^31 on.
pub(super) fn zero_extended(text: &str) -> String {
    format!("i64(u64({text}))")
}
