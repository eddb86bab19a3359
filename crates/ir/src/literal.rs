//! Rust values as constants of a kernel.
//!
//! A number is a scalar, an array of 2 to 4 numbers a vector, an array of such arrays a matrix of
//! columns. Deliberately absent: anything that folds. [`KernelBuilder::evaluate`] only tells what a
//! value is.

use std::collections::{HashMap, HashSet};

use crate::builder::KernelBuilder;
use crate::inst::{Const, InstKind, Value};
use crate::ops::evaluate::evaluate;
use crate::types::{Scalar, Type};

/// A Rust number that is a scalar of the language.
pub trait ScalarLiteral: Copy + Into<Const> {
    /// The scalar's type.
    const SCALAR: Scalar;
}

/// A Rust value that is a scalar, vector or matrix of the language.
///
/// ```
/// use invar_ir::{Literal, Scalar, Type};
///
/// assert_eq!(1.0f32.ty(), Type::F32);
/// assert_eq!([1u8, 2, 3].ty(), Type::Vector(Scalar::U8, 3));
/// assert_eq!([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]].ty().to_string(), "f32x3x2");
/// assert_eq!([1u8, 2, 3].components().len(), 3);
/// ```
pub trait Literal {
    /// Its type.
    fn ty(&self) -> Type;

    /// Its scalars in order, a matrix column by column.
    fn components(&self) -> Vec<Const>;
}

macro_rules! scalar_literal {
    ($($rust:ty => $scalar:ident),*) => {$(
        impl ScalarLiteral for $rust {
            const SCALAR: Scalar = Scalar::$scalar;
        }

        impl Literal for $rust {
            fn ty(&self) -> Type {
                Type::Scalar(Scalar::$scalar)
            }

            fn components(&self) -> Vec<Const> {
                vec![Const::from(*self)]
            }
        }
    )*};
}
scalar_literal! {
    bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64
}

/// A length that vectors, and the rows and columns of matrices, can have.
const fn length(n: usize) -> u8 {
    assert!(
        2 <= n && n <= 4,
        "vectors have 2 to 4 components, and matrices 2 to 4 columns and rows"
    );
    n as u8
}

impl<T: ScalarLiteral, const N: usize> Literal for [T; N] {
    fn ty(&self) -> Type {
        Type::Vector(T::SCALAR, const { length(N) })
    }

    fn components(&self) -> Vec<Const> {
        self.iter().map(|x| (*x).into()).collect()
    }
}

impl<T: ScalarLiteral, const COLUMNS: usize, const ROWS: usize> Literal for [[T; ROWS]; COLUMNS] {
    fn ty(&self) -> Type {
        Type::Matrix {
            scalar: T::SCALAR,
            columns: const { length(COLUMNS) },
            rows: const { length(ROWS) },
        }
    }

    fn components(&self) -> Vec<Const> {
        self.iter().flatten().map(|x| (*x).into()).collect()
    }
}

impl KernelBuilder {
    /// A constant of a Rust value's type.
    ///
    /// ```
    /// use invar_ir::{KernelBuilder, Module, Scalar, Type};
    ///
    /// let mut k = KernelBuilder::new(Module::default(), "example");
    /// let half = k.literal(0.5f32);
    /// let axis = k.literal([0.0f32, 0.0, 1.0]);
    /// assert_eq!(k.ty(half), Type::F32);
    /// assert_eq!(k.ty(axis), Type::Vector(Scalar::F32, 3));
    /// ```
    pub fn literal(&mut self, literal: impl Literal) -> Value {
        let scalars: Vec<Value> = literal
            .components()
            .into_iter()
            .map(|c| self.constant(c))
            .collect();
        let ty = literal.ty();
        match ty {
            Type::Matrix { scalar, rows, .. } => {
                let columns: Vec<Value> = scalars
                    .chunks(usize::from(rows))
                    .map(|column| self.construct(Type::Vector(scalar, rows), column))
                    .collect();
                self.construct(ty, &columns)
            }
            Type::Vector(..) => self.construct(ty, &scalars),
            Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => scalars[0],
        }
    }

    /// The components of a value that operations make of constants alone, computed as they are
    /// written (A8 may still fuse a product and a sum); `None` for any other value.
    ///
    /// ```
    /// use invar_ir::{Dim, KernelBuilder, Literal, Module};
    ///
    /// let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (a, b) = (k.literal(6u32), k.literal(7u32));
    /// let product = k.mul(a, b);
    /// assert_eq!(k.evaluate(product), Some(42u32.components()));
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let sum = k.add(product, i);
    /// assert_eq!(k.evaluate(sum), None);
    /// ```
    pub fn evaluate(&self, value: Value) -> Option<Vec<Const>> {
        // Backwards to what it is made of, then forwards again.
        let mut needed = HashSet::from([value]);
        let mut insts = Vec::new();
        for inst in self.open_insts().rev() {
            let Some(result) = inst.results.iter().find(|v| needed.contains(*v)) else {
                continue;
            };
            needed.remove(result);
            if let Some((_, _, args)) = inst.kind.as_op() {
                needed.extend(args);
            }
            insts.push((*result, &inst.kind));
        }
        if !needed.is_empty() {
            return None;
        }
        let mut known: HashMap<Value, Vec<Const>> = HashMap::new();
        for (result, kind) in insts.into_iter().rev() {
            let components = match kind {
                InstKind::Const(constant) => vec![*constant],
                kind => {
                    let (op, imm, args) = kind.as_op()?;
                    let types: Vec<Type> = args.iter().map(|v| self.ty(*v)).collect();
                    let columns: Vec<[u64; 1]> = args
                        .iter()
                        .flat_map(|v| &known[v])
                        .map(|c| [c.bits])
                        .collect();
                    let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
                    let scalar = self.ty(result).scalar()?;
                    let results = evaluate(op, imm, &types, &columns).ok()?;
                    let results = results.into_iter().flatten();
                    results.map(|bits| Const { scalar, bits }).collect()
                }
            };
            known.insert(result, components);
        }
        known.remove(&value)
    }
}
