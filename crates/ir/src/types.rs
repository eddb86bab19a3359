//! The types of values, and the types of what memory holds.
//!
//! Values are scalars, small vectors and matrices, simdgroup matrices and events: all `Copy`.
//! Memory holds [`ElementType`]s, which add fixed arrays and structs; those never become values,
//! their fields are loaded and stored one by one. There are no pointers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::memory_layout::MAX_TYPE_DEPTH;
use crate::span::Span;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Scalar {
    /// One byte in memory, stored as 0 or 1; any other byte reads as true (L3).
    Bool,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Scalar {
    /// Every scalar type, in the order of the enum.
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The scalar type of that name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Size in memory, which is also the alignment.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width in bits; a `bool` counts as one.
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            _ => self.size_bytes() as u32 * 8,
        }
    }

    /// Whether this is an integer type, of either sign.
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// One scalar: `f32`.
    Scalar(Scalar),
    /// Two to four scalars: `f32x4`.
    Vector(Scalar, u8),
    /// A small float matrix of 2 to 4 columns of 2 to 4 rows: `f32x4x3` has 4 columns of 3 rows,
    /// as Metal's `float4x3`.
    Matrix {
        /// Float scalar type.
        scalar: Scalar,
        /// 2 to 4.
        columns: u8,
        /// 2 to 4.
        rows: u8,
    },
    /// A float matrix that a whole simdgroup holds together: `simdgroup_f32x8x8`.
    SimdgroupMatrix {
        /// Float scalar type.
        scalar: Scalar,
        /// A positive multiple of 8.
        rows: u8,
        /// A positive multiple of 8.
        columns: u8,
    },
    /// An async copy under way: `event`.
    Event,
}

impl Type {
    /// `bool`.
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
    /// `i32`.
    pub const I32: Type = Type::Scalar(Scalar::I32);
    /// `u32`.
    pub const U32: Type = Type::Scalar(Scalar::U32);
    /// `u64`.
    pub const U64: Type = Type::Scalar(Scalar::U64);
    /// `f32`.
    pub const F32: Type = Type::Scalar(Scalar::F32);

    /// The scalar that a value of this type is made of; none for events.
    pub const fn scalar(self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) | Type::Vector(s, _) => Some(s),
            Type::Matrix { scalar, .. } | Type::SimdgroupMatrix { scalar, .. } => Some(scalar),
            Type::Event => None,
        }
    }

    /// The scalar that a value of this type is made of.
    ///
    /// ```
    /// use invar_ir::{Scalar, Type};
    /// assert_eq!(Type::Vector(Scalar::F16, 4).component_scalar(), Scalar::F16);
    /// ```
    ///
    /// # Panics
    /// For an event, which is made of none: in a verified kernel nothing computes with one.
    #[track_caller]
    pub const fn component_scalar(self) -> Scalar {
        match self.scalar() {
            Some(scalar) => scalar,
            None => panic!("an event has no components"),
        }
    }

    /// How many scalars a thread holds: components of a vector, entries of a small matrix (by
    /// column). Simdgroup matrices and events have none of their own.
    pub const fn component_count(self) -> u32 {
        match self {
            Type::Scalar(_) => 1,
            Type::Vector(_, n) => n as u32,
            Type::Matrix { columns, rows, .. } => columns as u32 * rows as u32,
            Type::SimdgroupMatrix { .. } | Type::Event => 0,
        }
    }

    /// The same shape with another scalar; `None` for simdgroup matrices and events.
    pub const fn with_scalar(self, scalar: Scalar) -> Option<Type> {
        match self {
            Type::Scalar(_) => Some(Type::Scalar(scalar)),
            Type::Vector(_, n) => Some(Type::Vector(scalar, n)),
            Type::Matrix { columns, rows, .. } => Some(Type::Matrix {
                scalar,
                columns,
                rows,
            }),
            Type::SimdgroupMatrix { .. } | Type::Event => None,
        }
    }

    /// The type of that name in the text form. It may have a [`Type::defect`], as `f32x9` has.
    ///
    /// ```
    /// use invar_ir::{Scalar, Type};
    ///
    /// assert_eq!(Type::from_name("f32x4"), Some(Type::Vector(Scalar::F32, 4)));
    /// assert_eq!(Type::from_name("f32x04"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Type> {
        let (plain, simdgroup) = match name.strip_prefix("simdgroup_") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        let mut parts = plain.split('x');
        let scalar = Scalar::from_name(parts.next()?);
        let mut size = || parts.next()?.parse::<u8>().ok();
        let (first, second) = (size(), size());
        let ty = match (scalar, first, second, simdgroup) {
            (None, ..) => Type::Event,
            (Some(scalar), None, _, _) => Type::Scalar(scalar),
            (Some(scalar), Some(n), None, _) => Type::Vector(scalar, n),
            (Some(scalar), Some(rows), Some(columns), true) => Type::SimdgroupMatrix {
                scalar,
                rows,
                columns,
            },
            (Some(scalar), Some(columns), Some(rows), false) => Type::Matrix {
                scalar,
                columns,
                rows,
            },
        };
        // One type has one name: whatever else was read in has another.
        (ty.to_string() == name).then_some(ty)
    }

    /// Whether this is a single integer, as an index must be.
    pub const fn is_integer_scalar(self) -> bool {
        matches!(self, Type::Scalar(s) if s.is_integer())
    }

    /// Why a type of this make cannot exist, if it cannot: a vector of 5, a matrix of integers.
    pub fn defect(self) -> Option<String> {
        match self {
            Type::Scalar(_) | Type::Event => None,
            Type::Vector(_, n) => {
                (!(2..=4).contains(&n)).then(|| format!("a vector has 2 to 4 components, not {n}"))
            }
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                if !scalar.is_float() {
                    Some(format!("a matrix holds floats, not {scalar}"))
                } else if !(2..=4).contains(&columns) || !(2..=4).contains(&rows) {
                    Some(format!(
                        "a matrix has 2 to 4 columns and rows, not {columns}x{rows}"
                    ))
                } else {
                    None
                }
            }
            Type::SimdgroupMatrix {
                scalar,
                rows,
                columns,
            } => {
                if !scalar.is_float() {
                    Some(format!("a simdgroup matrix holds floats, not {scalar}"))
                } else if rows != 8 || columns != 8 {
                    Some(format!("a simdgroup matrix is 8x8, not {rows}x{columns}"))
                } else {
                    None
                }
            }
        }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Type {
        Type::Scalar(scalar)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Type::Scalar(s) => write!(f, "{s}"),
            Type::Vector(s, n) => write!(f, "{s}x{n}"),
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => write!(f, "{scalar}x{columns}x{rows}"),
            Type::SimdgroupMatrix {
                scalar,
                rows,
                columns,
            } => write!(f, "simdgroup_{scalar}x{rows}x{columns}"),
            Type::Event => f.write_str("event"),
        }
    }
}

/// A struct of a module, by its place in [`crate::Module::structs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StructId(pub u32);

/// What one element of a memory object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Flat", try_from = "Flat")]
pub enum ElementType {
    /// A scalar, vector or small matrix.
    Value(Type),
    /// A fixed array: `f32[4]`; its length is at least 1.
    Array(Arc<ElementType>, u32),
    /// A struct of the module, laid out by C's rules.
    Struct(StructId),
}

/// An [`ElementType`] as it is written: without recursion, so that what is read has no depth.
#[derive(Serialize, Deserialize)]
struct Flat {
    /// Of arrays, the outermost first.
    lengths: Vec<u32>,
    base: Base,
}

#[derive(Serialize, Deserialize)]
enum Base {
    Value(Type),
    Struct(StructId),
}

impl From<ElementType> for Flat {
    fn from(element: ElementType) -> Flat {
        let mut lengths = Vec::new();
        let mut element = &element;
        let base = loop {
            match element {
                ElementType::Array(inner, length) => {
                    lengths.push(*length);
                    element = inner;
                }
                ElementType::Value(ty) => break Base::Value(*ty),
                ElementType::Struct(id) => break Base::Struct(*id),
            }
        };
        Flat { lengths, base }
    }
}

impl TryFrom<Flat> for ElementType {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<ElementType, Self::Error> {
        if flat.lengths.len() > MAX_TYPE_DEPTH as usize {
            return Err("an array type that nests too deep");
        }
        let base = match flat.base {
            Base::Value(ty) => ElementType::Value(ty),
            Base::Struct(id) => ElementType::Struct(id),
        };
        let around = |inner, length: &u32| ElementType::Array(Arc::new(inner), *length);
        Ok(flat.lengths.iter().rev().fold(base, around))
    }
}

impl From<Type> for ElementType {
    fn from(ty: Type) -> ElementType {
        ElementType::Value(ty)
    }
}

impl From<Scalar> for ElementType {
    fn from(scalar: Scalar) -> ElementType {
        ElementType::Value(Type::Scalar(scalar))
    }
}

/// A struct: named fields in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructDef {
    /// The name, unique in the module.
    pub name: Arc<str>,
    /// Its fields, at least one; names unique in the struct.
    pub fields: Vec<(Arc<str>, ElementType)>,
    /// Where it was declared.
    pub span: Span,
}
