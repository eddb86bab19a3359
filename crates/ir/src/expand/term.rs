//! Expressions over a builder: what expansions are written in.
//!
//! A [`Float`], [`Int`], [`Uint`] or [`Bool`] names a value of the builder, scalar or vector, and
//! its operators and methods build one operation each, so that `x * x + 1.0` reads as it computes.
//! Every value of one expansion has the same number of components; floats are of one type, and
//! integers as wide. Numbers on the right of an operator become constants of the type.
//!
//! Deliberately absent: `fmin` and `fmax`, which drop NaN and order zeros where an expansion wants
//! neither and hardware has to be helped to both, and anything that folds.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

use smallvec::SmallVec;

use super::coefficients::{Coefficients, F32, F64};
use crate::builder::KernelBuilder;
use crate::inst::{Const, Value};
use crate::ops::{Imm, Op};
use crate::types::{Scalar, Type};

/// Where the terms of one expansion are built.
pub(crate) struct Terms<'b> {
    builder: RefCell<&'b mut KernelBuilder>,
    /// The floats' type, of any shape.
    float: Type,
    /// Constants that were built already, and can be seen from where the builder stands.
    constants: RefCell<Vec<(Type, u64, Value)>>,
}

macro_rules! term {
    ($($(#[doc = $doc:literal])+ $name:ident)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy)]
        pub(crate) struct $name<'t> {
            terms: &'t Terms<'t>,
            value: Value,
        }

        impl<'t> Term<'t> for $name<'t> {
            fn value(self) -> Value {
                self.value
            }

            fn terms(self) -> &'t Terms<'t> {
                self.terms
            }

            fn named(terms: &'t Terms<'t>, value: Value) -> Self {
                $name { terms, value }
            }
        }

        impl<'t> Operand<'t, $name<'t>> for $name<'t> {
            fn term(self, _: &'t Terms<'t>) -> Self {
                self
            }
        }
    )*};
}
term! {
    /// A float of the expansion's type.
    Float
    /// A signed integer as wide as its floats.
    Int
    /// An unsigned integer as wide as its floats.
    Uint
    /// A truth value for each component.
    Bool
}

/// What names a value.
pub(crate) trait Term<'t>: Copy {
    /// The value.
    fn value(self) -> Value;

    /// Where it is built.
    fn terms(self) -> &'t Terms<'t>;

    /// The term that names `value`, which must be of its type.
    fn named(terms: &'t Terms<'t>, value: Value) -> Self;
}

/// A term of type `T`, or a number that becomes a constant of it.
pub(crate) trait Operand<'t, T> {
    /// The term.
    fn term(self, terms: &'t Terms<'t>) -> T;
}

impl<'t> Operand<'t, Float<'t>> for f64 {
    fn term(self, terms: &'t Terms<'t>) -> Float<'t> {
        terms.float(self)
    }
}

impl<'t> Operand<'t, Int<'t>> for i64 {
    fn term(self, terms: &'t Terms<'t>) -> Int<'t> {
        terms.int(self)
    }
}

impl<'t> Operand<'t, Uint<'t>> for u64 {
    fn term(self, terms: &'t Terms<'t>) -> Uint<'t> {
        terms.uint(self)
    }
}

impl<'b> Terms<'b> {
    /// Terms of floats of the type `float`, built where the builder stands.
    pub(crate) fn new(builder: &'b mut KernelBuilder, float: Type) -> Terms<'b> {
        Terms {
            builder: RefCell::new(builder),
            float,
            constants: RefCell::default(),
        }
    }
}

impl<'t> Terms<'t> {
    fn scalar(&self) -> Scalar {
        self.float.scalar().unwrap_or(Scalar::F32)
    }

    /// A type of this shape.
    fn shaped(&self, scalar: Scalar) -> Type {
        self.float
            .with_scalar(scalar)
            .unwrap_or(Type::Scalar(scalar))
    }

    /// The width of floats and integers in bits.
    pub(crate) fn bits(&self) -> u32 {
        self.scalar().bits()
    }

    /// The first of two where the floats are `f32`, the second where they are `f64`.
    pub(crate) fn by_format<T>(&self, f32: T, f64: T) -> T {
        if self.bits() == 32 { f32 } else { f64 }
    }

    /// The constants of the format.
    pub(super) fn k(&self) -> &'static Coefficients {
        self.by_format(&F32, &F64)
    }

    /// The number of fraction bits that the format stores.
    pub(crate) fn fraction_bits(&self) -> i64 {
        self.by_format(23, 52)
    }

    /// The exponent bits of 1.
    pub(crate) fn bias(&self) -> i64 {
        self.by_format(127, 1023)
    }

    /// The sign bit alone.
    pub(crate) fn sign_mask(&self) -> i64 {
        self.by_format(i64::from(i32::MIN), i64::MIN)
    }

    fn signed(&self) -> Type {
        self.shaped(if self.bits() == 64 {
            Scalar::I64
        } else {
            Scalar::I32
        })
    }

    fn unsigned(&self) -> Type {
        self.shaped(if self.bits() == 64 {
            Scalar::U64
        } else {
            Scalar::U32
        })
    }

    fn op<T: Term<'t>>(&'t self, op: Op, imm: Imm, args: &[Value]) -> T {
        let value = self.builder.borrow_mut().op(op, imm, args);
        T::named(self, value)
    }

    /// A float that is there already.
    pub(crate) fn float_of(&'t self, value: Value) -> Float<'t> {
        Float::named(self, value)
    }

    /// An integer that is there already.
    pub(crate) fn int_of(&'t self, value: Value) -> Int<'t> {
        Int::named(self, value)
    }

    /// The constant nearest to `x`.
    pub(crate) fn float(&'t self, x: f64) -> Float<'t> {
        let bits = self.by_format(u64::from((x as f32).to_bits()), x.to_bits());
        self.constant(self.float, bits)
    }

    /// The constant `x`, of which the low bits count.
    pub(crate) fn int(&'t self, x: i64) -> Int<'t> {
        let bits = self.by_format(u64::from(x as u32), x as u64);
        self.constant(self.signed(), bits)
    }

    /// The constant `x`.
    pub(crate) fn uint(&'t self, x: u64) -> Uint<'t> {
        self.constant(self.unsigned(), x)
    }

    fn constant<T: Term<'t>>(&'t self, ty: Type, bits: u64) -> T {
        let known = self
            .constants
            .borrow()
            .iter()
            .find(|(t, b, _)| (*t, *b) == (ty, bits))
            .map(|(_, _, value)| *value);
        let value = known.unwrap_or_else(|| {
            let value = super::constant(&mut self.builder.borrow_mut(), ty, bits);
            self.constants.borrow_mut().push((ty, bits, value));
            value
        });
        T::named(self, value)
    }

    /// Builds a region; what is built in it cannot be seen from outside.
    fn region(&'t self, params: &[Type], body: impl FnOnce(&[Value]) -> Vec<Value>) {
        let outside = self.constants.borrow().len();
        let params = self.builder.borrow_mut().open_region(params);
        let values = body(&params);
        self.constants.borrow_mut().truncate(outside);
        self.builder.borrow_mut().yield_(&values);
    }

    /// `usual`, but where `exceptional` holds, what `otherwise` computes in its place: for what is
    /// dear and rarely needed, in a branch that is taken only if some component needs it.
    pub(crate) fn rarely<const N: usize>(
        &'t self,
        exceptional: Bool<'t>,
        usual: [Value; N],
        otherwise: impl FnOnce() -> [Value; N],
    ) -> [Value; N] {
        let condition = self.any(exceptional);
        self.region(&[], |_| {
            let values = otherwise();
            let choose = |k: usize| {
                let args = [usual[k], values[k], exceptional.value];
                self.builder.borrow_mut().op(Op::Select, (), &args)
            };
            (0..N).map(choose).collect()
        });
        let then = self.builder.borrow_mut().close_region();
        self.region(&[], |_| usual.to_vec());
        let builder = &mut *self.builder.borrow_mut();
        let otherwise = builder.close_region();
        let results = builder.if_regions(condition, then, otherwise);
        std::array::from_fn(|k| results[k])
    }

    /// Carries `value` through as many iterations as the largest component of `count` asks for at
    /// `step` an iteration; `body` gets the value and how much of its component's count it may work
    /// off now, which is 0 where nothing is left.
    pub(crate) fn work_off(
        &'t self,
        count: Int<'t>,
        step: i64,
        value: Float<'t>,
        body: impl FnOnce(Float<'t>, Int<'t>) -> Float<'t>,
    ) -> Float<'t> {
        let largest = self.largest(count);
        let scalar = Type::Scalar(self.signed().scalar().unwrap_or(Scalar::I32));
        let (zero, down) = {
            let builder = &mut *self.builder.borrow_mut();
            let constant = |builder: &mut KernelBuilder, x: i64| {
                let bits = self.by_format(u64::from(x as u32), x as u64);
                let scalar = scalar.scalar().unwrap_or(Scalar::I32);
                builder.constant(Const { scalar, bits })
            };
            (constant(builder, 0), constant(builder, -step))
        };
        let carried = [self.float, self.signed()];
        self.region(&[scalar, carried[0], carried[1]], |params| {
            let left = Int::named(self, params[2]);
            let now = left.lt(step).pick(left, step);
            let now: Int = now.lt(0).pick(0, now);
            let next = body(Float::named(self, params[1]), now);
            vec![next.value, (left - now).value]
        });
        let builder = &mut *self.builder.borrow_mut();
        let body = builder.close_region();
        let kind = crate::inst::InstKind::For {
            lower: largest,
            upper: zero,
            step: down,
            init: SmallVec::from_slice(&[value.value, count.value]),
            body,
        };
        let results = builder.push(kind, &carried);
        Float::named(self, results[0])
    }

    /// Components of a vector; a scalar itself.
    fn components(&self, value: Value) -> Vec<Value> {
        let builder = &mut *self.builder.borrow_mut();
        match builder.ty(value) {
            Type::Vector(..) => super::components(builder, value),
            _ => vec![value],
        }
    }

    fn any(&self, condition: Bool<'_>) -> Value {
        let parts = self.components(condition.value);
        let builder = &mut *self.builder.borrow_mut();
        parts[1..].iter().fold(parts[0], |a, b| builder.or(a, *b))
    }

    fn largest(&self, count: Int<'_>) -> Value {
        let parts = self.components(count.value);
        let builder = &mut *self.builder.borrow_mut();
        parts[1..].iter().fold(parts[0], |a, b| {
            let less = builder.lt(a, *b);
            builder.select(a, *b, less)
        })
    }
}

macro_rules! operators {
    ($($term:ident: $($trait:ident $method:ident $op:ident),*;)*) => {$($(
        impl<'t, R: Operand<'t, $term<'t>>> $trait<R> for $term<'t> {
            type Output = $term<'t>;
            fn $method(self, right: R) -> $term<'t> {
                let right = right.term(self.terms);
                self.terms.op(Op::$op, Imm::None, &[self.value, right.value])
            }
        }
    )*)*};
}
operators! {
    Float: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div;
    Int: Add add Add, Sub sub Sub, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor,
        Shl shl Shl, Shr shr Shr;
    Uint: Add add Add, Sub sub Sub, Mul mul Mul, BitAnd bitand And, BitOr bitor Or,
        BitXor bitxor Xor, Shl shl Shl, Shr shr Shr;
    Bool: BitAnd bitand And, BitOr bitor Or;
}

macro_rules! comparisons {
    ($($term:ident: $($method:ident $op:ident),*;)*) => {$(
        impl<'t> $term<'t> {$(
            /// The comparison of that name, by component.
            pub(crate) fn $method(self, right: impl Operand<'t, $term<'t>>) -> Bool<'t> {
                let right = right.term(self.terms);
                self.terms.op(Op::$op, Imm::None, &[self.value, right.value])
            }
        )*}
    )*};
}
comparisons! {
    Float: lt Lt, gt Gt, ge Ge, eq Eq, ne Ne;
    Int: lt Lt, ne Ne;
    Uint: lt Lt, ne Ne;
}

macro_rules! functions {
    ($($method:ident $op:ident),*) => {
        impl<'t> Float<'t> {$(
            /// The operation of that name.
            pub(crate) fn $method(self) -> Float<'t> {
                self.terms.op(Op::$op, Imm::None, &[self.value])
            }
        )*}
    };
}
functions! { sqrt Sqrt, abs Abs, rint Rint, trunc Trunc }

impl Neg for Float<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.terms.op(Op::Neg, Imm::None, &[self.value])
    }
}

impl Not for Bool<'_> {
    type Output = Self;
    fn not(self) -> Self {
        self.terms.op(Op::Not, Imm::None, &[self.value])
    }
}

impl<'t> Float<'t> {
    /// `self * b + c`, rounded once.
    pub(crate) fn fma(
        self,
        b: impl Operand<'t, Float<'t>>,
        c: impl Operand<'t, Float<'t>>,
    ) -> Float<'t> {
        let (b, c) = (b.term(self.terms), c.term(self.terms));
        let args = [self.value, b.value, c.value];
        self.terms.op(Op::Fma, Imm::None, &args)
    }

    /// The integer that it truncates to (A5).
    pub(crate) fn to_int(self) -> Int<'t> {
        let ty = self.terms.signed();
        self.terms.op(Op::Cast, ty.into(), &[self.value])
    }

    /// Its bits.
    pub(crate) fn as_int(self) -> Int<'t> {
        let ty = self.terms.signed();
        self.terms.op(Op::AsType, ty.into(), &[self.value])
    }

    /// Its bits.
    pub(crate) fn as_uint(self) -> Uint<'t> {
        let ty = self.terms.unsigned();
        self.terms.op(Op::AsType, ty.into(), &[self.value])
    }
}

impl<'t> Int<'t> {
    /// The larger, by component.
    pub(crate) fn max(self, right: impl Operand<'t, Int<'t>>) -> Int<'t> {
        let right = right.term(self.terms);
        self.terms
            .op(Op::Max, Imm::None, &[self.value, right.value])
    }

    /// The nearest float.
    pub(crate) fn to_float(self) -> Float<'t> {
        let ty = self.terms.float;
        self.terms.op(Op::Cast, ty.into(), &[self.value])
    }

    /// The float of these bits.
    pub(crate) fn as_float(self) -> Float<'t> {
        let ty = self.terms.float;
        self.terms.op(Op::AsType, ty.into(), &[self.value])
    }
}

impl<'t> Uint<'t> {
    /// The high half of the product.
    pub(crate) fn mul_hi(self, right: Uint<'t>) -> Uint<'t> {
        self.terms
            .op(Op::MulHi, Imm::None, &[self.value, right.value])
    }

    /// The signed integer of these bits.
    pub(crate) fn as_int(self) -> Int<'t> {
        let ty = self.terms.signed();
        self.terms.op(Op::AsType, ty.into(), &[self.value])
    }
}

macro_rules! pick {
    ($($term:ident)*) => {$(
        impl<'t> Pick<'t> for $term<'t> {
            fn pick(condition: Bool<'t>, yes: Self, no: Self) -> Self {
                let args = [no.value, yes.value, condition.value];
                condition.terms.op(Op::Select, Imm::None, &args)
            }
        }
    )*};
}
pick! { Float Int Uint }

/// A term that a condition can choose between two of.
pub(crate) trait Pick<'t>: Sized {
    /// `yes` where the condition holds, else `no`.
    fn pick(condition: Bool<'t>, yes: Self, no: Self) -> Self;
}

impl<'t> Bool<'t> {
    /// `yes` where it holds, else `no`.
    pub(crate) fn pick<T: Pick<'t>>(self, yes: impl Operand<'t, T>, no: impl Operand<'t, T>) -> T {
        let (yes, no) = (yes.term(self.terms), no.term(self.terms));
        T::pick(self, yes, no)
    }
}
