//! What types of WGSL are as types of Invar, and what messages call them.

use invar_ir::{Scalar, Type};
use naga::{ScalarKind, TypeInner};

/// The scalar of Invar.
pub(crate) fn scalar(scalar: naga::Scalar) -> Option<Scalar> {
    Some(match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => Scalar::Bool,
        (ScalarKind::Sint, 2) => Scalar::I16,
        (ScalarKind::Sint, 4) => Scalar::I32,
        (ScalarKind::Sint, 8) => Scalar::I64,
        (ScalarKind::Uint, 2) => Scalar::U16,
        (ScalarKind::Uint, 4) => Scalar::U32,
        (ScalarKind::Uint, 8) => Scalar::U64,
        (ScalarKind::Float, 2) => Scalar::F16,
        (ScalarKind::Float, 4) => Scalar::F32,
        (ScalarKind::Float, 8) => Scalar::F64,
        (
            ScalarKind::Sint
            | ScalarKind::Uint
            | ScalarKind::Float
            | ScalarKind::AbstractInt
            | ScalarKind::AbstractFloat,
            _,
        ) => return None,
    })
}

/// The type of Invar of what one value can hold.
pub(crate) fn value_type(inner: &TypeInner) -> Option<Type> {
    Some(match *inner {
        TypeInner::Scalar(s) | TypeInner::Atomic(s) => Type::Scalar(scalar(s)?),
        TypeInner::Vector { size, scalar: s } => Type::Vector(scalar(s)?, size as u8),
        TypeInner::Matrix {
            columns,
            rows,
            scalar: s,
        } => Type::Matrix {
            scalar: scalar(s)?,
            columns: columns as u8,
            rows: rows as u8,
        },
        TypeInner::CooperativeMatrix { .. }
        | TypeInner::Pointer { .. }
        | TypeInner::ValuePointer { .. }
        | TypeInner::Array { .. }
        | TypeInner::Struct { .. }
        | TypeInner::Image { .. }
        | TypeInner::Sampler { .. }
        | TypeInner::AccelerationStructure { .. }
        | TypeInner::RayQuery { .. }
        | TypeInner::BindingArray { .. } => return None,
    })
}

/// The type of a part that an index leads to: a vector's component, a matrix's column.
pub(crate) fn part_type(ty: Type) -> Option<Type> {
    match ty {
        Type::Vector(scalar, _) => Some(Type::Scalar(scalar)),
        Type::Matrix { scalar, rows, .. } => Some(Type::Vector(scalar, rows)),
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => None,
    }
}

/// What a type is called in WGSL, for messages.
pub(crate) fn describe(inner: &TypeInner) -> &'static str {
    match inner {
        TypeInner::Image { .. } => "a texture",
        TypeInner::Sampler { .. } => "a sampler",
        TypeInner::AccelerationStructure { .. } => "an acceleration structure",
        TypeInner::RayQuery { .. } => "a ray query",
        TypeInner::BindingArray { .. } => "a binding array",
        TypeInner::CooperativeMatrix { .. } => "a cooperative matrix",
        TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => "a pointer",
        TypeInner::Array { .. } => "an array",
        TypeInner::Struct { .. } => "a struct",
        TypeInner::Scalar(_)
        | TypeInner::Atomic(_)
        | TypeInner::Vector { .. }
        | TypeInner::Matrix { .. } => "a value",
    }
}

/// What a member is called.
pub(crate) fn field_name(member: &naga::StructMember, number: usize) -> String {
    let name = member.name.clone().filter(|n| !n.is_empty());
    name.unwrap_or_else(|| format!("field{number}"))
}
