//! What an operation takes and gives: the rules for types, from which the verifier, the builder,
//! the parser and the documentation derive.

use std::fmt;

use super::{Imm, Op};
use crate::inst::Value;
use crate::module::Kernel;
use crate::types::{Scalar, Type};

/// A set of kinds of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u16);

impl Classes {
    /// `bool`.
    pub const BOOL: Classes = Classes(1);
    /// Signed integers.
    pub const SIGNED: Classes = Classes(2);
    /// Unsigned integers.
    pub const UNSIGNED: Classes = Classes(4);
    /// Floats.
    pub const FLOAT: Classes = Classes(8);
    /// Small matrices too (only where named; every other class means scalars and vectors).
    pub const MATRIX: Classes = Classes(16);
    /// Vectors only, no scalars.
    pub const VECTOR_ONLY: Classes = Classes(32);
    /// Scalars only, no vectors.
    pub const SCALAR_ONLY: Classes = Classes(64);
    /// Integers of 32 bits only.
    pub const BITS_32: Classes = Classes(128);
    /// Vectors of 3 only.
    pub const VECTOR_3: Classes = Classes(256);
    /// Integers.
    pub const INTEGER: Classes = Classes(2 | 4);
    /// Integers and floats.
    pub const NUMBER: Classes = Classes(2 | 4 | 8);
    /// `bool` and integers.
    pub const BITS: Classes = Classes(1 | 2 | 4);
    /// Every scalar and vector.
    pub const ANY: Classes = Classes(1 | 2 | 4 | 8);

    /// The union; of shapes, the restriction to both.
    pub const fn and(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    const fn has(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a type is in it.
    pub fn contains(self, ty: Type) -> bool {
        let shape = match ty {
            Type::Scalar(_) => !self.has(Classes::VECTOR_ONLY) && !self.has(Classes::VECTOR_3),
            Type::Vector(_, n) => {
                !self.has(Classes::SCALAR_ONLY) && (!self.has(Classes::VECTOR_3) || n == 3)
            }
            Type::Matrix { .. } => self.has(Classes::MATRIX),
            Type::SimdgroupMatrix { .. } | Type::Event => false,
        };
        let Some(scalar) = ty.scalar() else {
            return false;
        };
        let kind = if scalar == Scalar::Bool {
            self.has(Classes::BOOL)
        } else if scalar.is_signed_integer() {
            self.has(Classes::SIGNED)
        } else if scalar.is_unsigned_integer() {
            self.has(Classes::UNSIGNED)
        } else {
            self.has(Classes::FLOAT)
        };
        shape && kind && (!self.has(Classes::BITS_32) || scalar.size_bytes() == 4)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds = Vec::new();
        if self.has(Classes::BOOL) {
            kinds.push("bool");
        }
        match (self.has(Classes::SIGNED), self.has(Classes::UNSIGNED)) {
            (true, true) => kinds.push("integer"),
            (true, false) => kinds.push("signed integer"),
            (false, true) => kinds.push("unsigned integer"),
            (false, false) => {}
        }
        if self.has(Classes::FLOAT) {
            kinds.push("float");
        }
        if self.has(Classes::BITS_32) {
            f.write_str("32-bit ")?;
        }
        f.write_str(&kinds.join(" or "))?;
        if self.has(Classes::VECTOR_3) {
            f.write_str(" vector of 3")
        } else if self.has(Classes::VECTOR_ONLY) {
            f.write_str(" vector")
        } else if self.has(Classes::SCALAR_ONLY) {
            f.write_str(" scalar")
        } else if self.has(Classes::MATRIX) {
            f.write_str(" scalar, vector or matrix")
        } else {
            f.write_str(" scalar or vector")
        }
    }
}

/// What an operation takes and gives. `T` is any type of the classes; shapes of all operands agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signature {
    /// That many operands of one type `T`, result `T`.
    Same(u8, Classes),
    /// `T, T` to `bool` of that shape.
    Compare(Classes),
    /// `T` to `bool` of that shape.
    Test(Classes),
    /// `T, T, bool` of that shape (or one `bool` for all components) to `T`.
    Select(Classes),
    /// Float `T` and `i32` of that shape to `T`.
    Ldexp,
    /// Integer `T`, offset `u32`, count `u32` (scalars, for all components) to `T`.
    ExtractBits,
    /// Integer `T, T`, offset `u32`, count `u32` (scalars, for all components) to `T`.
    InsertBits,
    /// A scalar or vector, to the named type of the same shape.
    Cast,
    /// A scalar or vector, to the named type of as many bits; `bool` has no bits of its own.
    AsType,
    /// Components to the named vector (scalars and vectors that add up, or one scalar for all), or
    /// columns to the named matrix.
    Construct,
    /// A vector and an index to a component, a matrix and an index to a column; the index is any
    /// integer scalar.
    Extract,
    /// A vector, an index and a component (a matrix, an index and a column) to the whole.
    Insert,
    /// A vector and component names to a scalar or vector.
    Swizzle,
    /// That many vectors `T` to a scalar of its kind.
    VectorToScalar(u8, Classes),
    /// Float vectors `T, T` and a scalar of its kind to `T`.
    Refract,
    /// Matrix by matrix, matrix by vector or vector by matrix, of one scalar type.
    MatrixMultiply,
    /// A matrix to its transpose.
    Transpose,
    /// A square matrix to a scalar.
    Determinant,
    /// Fixed operand types and result type.
    Fixed(&'static [Type], Type),
    /// `T` to `T`, between lanes.
    Lanes(Classes),
    /// `T` and an integer scalar that says which lane, to `T`.
    LanesBy(Classes),
    /// No operand, a component, to `u32`.
    QueryDim,
    /// No operand, to `u32`.
    Query,
}

impl fmt::Display for Signature {
    /// `(T, T) -> bool, T: integer or float scalar or vector`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |n: u8| vec!["T"; usize::from(n)].join(", ");
        match self {
            Signature::Same(n, classes) => write!(f, "({}) -> T, T: {classes}", times(*n)),
            Signature::Compare(classes) => {
                write!(f, "(T, T) -> bool of T's shape, T: {classes}")
            }
            Signature::Test(classes) => write!(f, "(T) -> bool of T's shape, T: {classes}"),
            Signature::Select(classes) => write!(
                f,
                "(T, T, bool or bool of T's shape) -> T, T: {classes}"
            ),
            Signature::Ldexp => {
                write!(f, "(T, i32 of T's shape) -> T, T: {}", Classes::FLOAT)
            }
            Signature::ExtractBits => write!(f, "(T, u32, u32) -> T, T: {}", Classes::INTEGER),
            Signature::InsertBits => {
                write!(f, "(T, T, u32, u32) -> T, T: {}", Classes::INTEGER)
            }
            Signature::Cast => write!(
                f,
                "type U, (T) -> U, U of T's shape, T: {}",
                Classes::ANY
            ),
            Signature::AsType => write!(
                f,
                "type U, (T) -> U, U of as many bits as T, T: {}",
                Classes::NUMBER
            ),
            Signature::Construct => f.write_str(
                "vector U, (components or vectors of them) -> U; matrix U, (columns) -> U",
            ),
            Signature::Extract => {
                f.write_str("(vector, index) -> component; (matrix, index) -> column")
            }
            Signature::Insert => f.write_str(
                "(vector, index, component) -> vector; (matrix, index, column) -> matrix",
            ),
            Signature::Swizzle => {
                f.write_str("components, (vector) -> component or vector of them")
            }
            Signature::VectorToScalar(n, classes) => write!(
                f,
                "({}) -> T's scalar, T: {}",
                times(*n),
                classes.and(Classes::VECTOR_ONLY)
            ),
            Signature::Refract => write!(
                f,
                "(T, T, T's scalar) -> T, T: {}",
                Classes::FLOAT.and(Classes::VECTOR_ONLY)
            ),
            Signature::MatrixMultiply => f.write_str(
                "(matrix, matrix) -> matrix; (matrix, vector) -> vector; (vector, matrix) -> vector",
            ),
            Signature::Transpose => f.write_str("(matrix) -> matrix"),
            Signature::Determinant => f.write_str("(square matrix) -> scalar"),
            Signature::Fixed(types, result) => {
                let types: Vec<String> = types.iter().map(Type::to_string).collect();
                write!(f, "({}) -> {result}", types.join(", "))
            }
            Signature::Lanes(classes) => write!(f, "(T) -> T, T: {classes}"),
            Signature::LanesBy(classes) => {
                write!(f, "(T, integer scalar) -> T, T: {classes}")
            }
            Signature::QueryDim => f.write_str("x, y or z, () -> u32"),
            Signature::Query => f.write_str("() -> u32"),
        }
    }
}

/// Why operands do not fit an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// A wrong number of operands.
    Count {
        /// Expected, in words: `2`, `1 to 16`.
        expected: String,
        /// Found.
        found: usize,
    },
    /// An operand of a wrong type.
    Operand {
        /// Which, from 0.
        index: usize,
        /// Expected, in words.
        expected: String,
    },
    /// What the operation takes beside values is missing or wrong: a sentence without a full stop.
    Imm(String),
}

impl SignatureError {
    /// What to do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            SignatureError::Count { .. } => "give it as many operands as it takes",
            SignatureError::Operand { .. } => {
                "there are no implicit conversions: `cast` what does not fit"
            }
            SignatureError::Imm(_) => "`invar ops` lists what each operation takes",
        }
    }

    /// What is wrong with the operands of an operation, in the author's names.
    pub(crate) fn message(
        &self,
        kernel: &Kernel,
        op: Op,
        args: &[Value],
        called: &dyn Fn(Value) -> String,
    ) -> String {
        match self {
            SignatureError::Count { expected, found } => {
                format!("`{op}` takes {expected} operands, found {found}")
            }
            SignatureError::Operand { index, expected } => {
                let value = args[*index];
                format!(
                    "operand {} (`{}`) of `{op}` has type {}, expected {expected}",
                    index + 1,
                    called(value),
                    kernel.ty(value),
                )
            }
            SignatureError::Imm(what) => format!("`{op}`: {what}"),
        }
    }
}

fn operand<T>(index: usize, expected: impl fmt::Display) -> Result<T, SignatureError> {
    Err(SignatureError::Operand {
        index,
        expected: expected.to_string(),
    })
}

fn with_scalar(ty: Type, scalar: Scalar) -> Type {
    ty.with_scalar(scalar).unwrap_or(ty)
}

impl Signature {
    /// How many operands it takes, least and most.
    pub fn operand_count(self) -> (usize, usize) {
        match self {
            Signature::Same(n, _) | Signature::VectorToScalar(n, _) => {
                (usize::from(n), usize::from(n))
            }
            Signature::Compare(_)
            | Signature::Ldexp
            | Signature::Extract
            | Signature::MatrixMultiply
            | Signature::LanesBy(_) => (2, 2),
            Signature::Test(_)
            | Signature::Cast
            | Signature::AsType
            | Signature::Swizzle
            | Signature::Transpose
            | Signature::Determinant
            | Signature::Lanes(_) => (1, 1),
            Signature::Select(_)
            | Signature::ExtractBits
            | Signature::Insert
            | Signature::Refract => (3, 3),
            Signature::InsertBits => (4, 4),
            Signature::Construct => (1, 16),
            Signature::Fixed(types, _) => (types.len(), types.len()),
            Signature::QueryDim | Signature::Query => (0, 0),
        }
    }

    /// The result's type for operands of these types.
    ///
    /// # Errors
    /// What does not fit.
    pub fn result_type(self, imm: Imm, args: &[Type]) -> Result<Type, SignatureError> {
        let (least, most) = self.operand_count();
        if args.len() < least || args.len() > most {
            return Err(SignatureError::Count {
                expected: if least == most {
                    least.to_string()
                } else {
                    format!("{least} to {most}")
                },
                found: args.len(),
            });
        }
        self.check_imm(imm)?;
        let same = |count: usize, classes: Classes| {
            if !classes.contains(args[0]) {
                return operand(0, classes);
            }
            match (1..count).find(|&i| args[i] != args[0]) {
                Some(i) => operand(i, args[0]),
                None => Ok(args[0]),
            }
        };
        let fixed = |index: usize, ty: Type| {
            if args[index] == ty {
                Ok(())
            } else {
                operand(index, ty)
            }
        };
        match self {
            Signature::Same(n, classes) => same(usize::from(n), classes),
            Signature::Compare(classes) => same(2, classes).map(|ty| with_scalar(ty, Scalar::Bool)),
            Signature::Test(classes) => same(1, classes).map(|ty| with_scalar(ty, Scalar::Bool)),
            Signature::Select(classes) => {
                let ty = same(2, classes)?;
                if args[2] == Type::BOOL || args[2] == with_scalar(ty, Scalar::Bool) {
                    Ok(ty)
                } else {
                    operand(2, with_scalar(ty, Scalar::Bool))
                }
            }
            Signature::Ldexp => {
                let ty = same(1, Classes::FLOAT)?;
                fixed(1, with_scalar(ty, Scalar::I32))?;
                Ok(ty)
            }
            Signature::ExtractBits => {
                let ty = same(1, Classes::INTEGER)?;
                fixed(1, Type::U32)?;
                fixed(2, Type::U32)?;
                Ok(ty)
            }
            Signature::InsertBits => {
                let ty = same(2, Classes::INTEGER)?;
                fixed(2, Type::U32)?;
                fixed(3, Type::U32)?;
                Ok(ty)
            }
            Signature::Cast => {
                let ty = same(1, Classes::ANY)?;
                match imm {
                    Imm::Type(to) if shape(to) == shape(ty) => Ok(to),
                    _ => Err(SignatureError::Imm(format!(
                        "a cast of {ty} gives a type of the same shape"
                    ))),
                }
            }
            Signature::AsType => {
                let ty = same(1, Classes::NUMBER)?;
                match imm {
                    Imm::Type(to)
                        if Classes::NUMBER.contains(to) && total_bits(to) == total_bits(ty) =>
                    {
                        Ok(to)
                    }
                    _ => Err(SignatureError::Imm(format!(
                        "the bits of {ty} make a type of {} bits that holds no bool",
                        total_bits(ty)
                    ))),
                }
            }
            Signature::Construct => construct(imm, args),
            Signature::Extract => {
                let part = part_of(args[0])?;
                index_operand(args, 1)?;
                Ok(part)
            }
            Signature::Insert => {
                let part = part_of(args[0])?;
                index_operand(args, 1)?;
                fixed(2, part)?;
                Ok(args[0])
            }
            Signature::Swizzle => swizzle(imm, args),
            Signature::VectorToScalar(n, classes) => {
                let ty = same(usize::from(n), classes.and(Classes::VECTOR_ONLY))?;
                Ok(ty.scalar().map_or(ty, Type::Scalar))
            }
            Signature::Refract => {
                let ty = same(2, Classes::FLOAT.and(Classes::VECTOR_ONLY))?;
                fixed(2, ty.scalar().map_or(ty, Type::Scalar))?;
                Ok(ty)
            }
            Signature::MatrixMultiply => matrix_multiply(args[0], args[1]),
            Signature::Transpose => match args[0] {
                Type::Matrix {
                    scalar,
                    columns,
                    rows,
                } => Ok(Type::Matrix {
                    scalar,
                    columns: rows,
                    rows: columns,
                }),
                _ => operand(0, "a matrix"),
            },
            Signature::Determinant => match args[0] {
                Type::Matrix {
                    scalar,
                    columns,
                    rows,
                } if columns == rows => Ok(Type::Scalar(scalar)),
                _ => operand(0, "a square matrix"),
            },
            Signature::Fixed(types, result) => {
                for (i, ty) in types.iter().enumerate() {
                    fixed(i, *ty)?;
                }
                Ok(result)
            }
            Signature::Lanes(classes) => same(1, classes),
            Signature::LanesBy(classes) => {
                let ty = same(1, classes)?;
                index_operand(args, 1)?;
                Ok(ty)
            }
            Signature::QueryDim | Signature::Query => Ok(Type::U32),
        }
    }

    fn check_imm(self, imm: Imm) -> Result<(), SignatureError> {
        let wrong = |what: &str| Err(SignatureError::Imm(what.to_string()));
        match self {
            Signature::Cast | Signature::AsType | Signature::Construct => match imm {
                Imm::Type(ty) => match ty.defect() {
                    Some(defect) => wrong(&defect),
                    None => Ok(()),
                },
                Imm::None | Imm::Dim(_) | Imm::Swizzle(_) => wrong("it needs the result's type"),
            },
            Signature::Swizzle => match imm {
                Imm::Swizzle(_) => Ok(()),
                Imm::None | Imm::Dim(_) | Imm::Type(_) => wrong("it needs component names"),
            },
            Signature::QueryDim => match imm {
                Imm::Dim(_) => Ok(()),
                Imm::None | Imm::Swizzle(_) | Imm::Type(_) => {
                    wrong("it needs a component: x, y or z")
                }
            },
            Signature::Same(..)
            | Signature::Compare(_)
            | Signature::Test(_)
            | Signature::Select(_)
            | Signature::Ldexp
            | Signature::ExtractBits
            | Signature::InsertBits
            | Signature::Extract
            | Signature::Insert
            | Signature::VectorToScalar(..)
            | Signature::Refract
            | Signature::MatrixMultiply
            | Signature::Transpose
            | Signature::Determinant
            | Signature::Fixed(..)
            | Signature::Lanes(_)
            | Signature::LanesBy(_)
            | Signature::Query => match imm {
                Imm::None => Ok(()),
                Imm::Type(_) | Imm::Dim(_) | Imm::Swizzle(_) => wrong("it takes only operands"),
            },
        }
    }
}

/// Scalars and vectors by their number of components; nothing else has this kind of shape.
fn shape(ty: Type) -> Option<u32> {
    match ty {
        Type::Scalar(_) => Some(1),
        Type::Vector(_, n) => Some(u32::from(n)),
        Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => None,
    }
}

fn total_bits(ty: Type) -> u32 {
    ty.scalar().map_or(0, |s| s.bits() * ty.component_count())
}

fn index_operand(args: &[Type], index: usize) -> Result<(), SignatureError> {
    if args[index].is_integer_scalar() {
        Ok(())
    } else {
        operand(index, "an integer scalar")
    }
}

fn part_of(ty: Type) -> Result<Type, SignatureError> {
    match ty {
        Type::Vector(scalar, _) => Ok(Type::Scalar(scalar)),
        Type::Matrix { scalar, rows, .. } => Ok(Type::Vector(scalar, rows)),
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => {
            operand(0, "a vector or matrix")
        }
    }
}

fn construct(imm: Imm, args: &[Type]) -> Result<Type, SignatureError> {
    let wrong = |what: String| Err(SignatureError::Imm(what));
    match imm {
        Imm::Type(ty @ Type::Vector(scalar, n)) => {
            let mut total = 0;
            for (i, arg) in args.iter().enumerate() {
                match shape(*arg) {
                    Some(count) if arg.scalar() == Some(scalar) => total += count,
                    _ => return operand(i, format!("{scalar} or a vector of it")),
                }
            }
            if total == u32::from(n) || (args.len() == 1 && total == 1) {
                Ok(ty)
            } else {
                wrong(format!("{ty} needs {n} components, found {total}"))
            }
        }
        Imm::Type(
            ty @ Type::Matrix {
                scalar,
                columns,
                rows,
            },
        ) => {
            let column = Type::Vector(scalar, rows);
            if args.len() != usize::from(columns) {
                return wrong(format!(
                    "{ty} needs {columns} columns of {column}, found {} operands",
                    args.len()
                ));
            }
            match args.iter().position(|arg| *arg != column) {
                Some(i) => operand(i, column),
                None => Ok(ty),
            }
        }
        Imm::Type(ty) => wrong(format!("{ty} is neither a vector nor a matrix")),
        Imm::None | Imm::Dim(_) | Imm::Swizzle(_) => wrong("it needs the result's type".into()),
    }
}

fn matrix_multiply(a: Type, b: Type) -> Result<Type, SignatureError> {
    match (a, b) {
        // (r x k)(k x c) = r x c; a matrix of `columns` columns and `rows` rows is rows x columns.
        (
            Type::Matrix {
                scalar,
                columns: k,
                rows,
            },
            Type::Matrix {
                scalar: s2,
                columns,
                rows: k2,
            },
        ) => {
            if scalar == s2 && k == k2 {
                Ok(Type::Matrix {
                    scalar,
                    columns,
                    rows,
                })
            } else {
                operand(1, format!("a matrix of {scalar} with {k} rows"))
            }
        }
        (
            Type::Matrix {
                scalar,
                columns,
                rows,
            },
            vector,
        ) => {
            if vector == Type::Vector(scalar, columns) {
                Ok(Type::Vector(scalar, rows))
            } else {
                operand(1, Type::Vector(scalar, columns))
            }
        }
        (
            vector,
            Type::Matrix {
                scalar,
                columns,
                rows,
            },
        ) => {
            if vector == Type::Vector(scalar, rows) {
                Ok(Type::Vector(scalar, columns))
            } else {
                operand(0, Type::Vector(scalar, rows))
            }
        }
        _ => operand(0, "a matrix"),
    }
}

/// The components of a vector that a swizzle names.
fn swizzle(imm: Imm, args: &[Type]) -> Result<Type, SignatureError> {
    let (Type::Vector(scalar, n), Imm::Swizzle(swizzle)) = (args[0], imm) else {
        return operand(0, "a vector");
    };
    if let Some(c) = swizzle.components().iter().find(|&&c| c >= n) {
        return Err(SignatureError::Imm(format!(
            "{} has no component {}",
            args[0],
            ["x", "y", "z", "w"][usize::from(*c)]
        )));
    }
    Ok(match swizzle.components().len() {
        1 => Type::Scalar(scalar),
        n => Type::Vector(scalar, n as u8),
    })
}
