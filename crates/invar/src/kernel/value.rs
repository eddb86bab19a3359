//! Values of a kernel, by their Rust types.

use std::marker::PhantomData;
use std::ops;

use invar_ir::{Const, KernelBuilder, ScalarLiteral, Type, Value};
use invar_runtime::{bf16, f16};

use super::define::{Place4, at, with};

/// A number or truth value of kernels: what a `Val` can be.
#[diagnostic::on_unimplemented(
    message = "a kernel has no values of type `{Self}`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64"
)]
pub trait Scalar: ScalarLiteral + 'static {}

/// A number: what buffers hold, and arithmetic takes.
#[diagnostic::on_unimplemented(message = "`{Self}` is no number of kernels")]
pub trait Number: Scalar + invar_runtime::Element {}

/// An integer.
#[diagnostic::on_unimplemented(message = "`{Self}` is no integer of kernels")]
pub trait Integer: Number + Bits {}

/// A float.
#[diagnostic::on_unimplemented(message = "`{Self}` is no float of kernels")]
pub trait Float: Signed {}

/// A number with a sign.
#[diagnostic::on_unimplemented(message = "`{Self}` is no number with a sign")]
pub trait Signed: Number {}

/// An integer or a truth value: what has bits to combine.
#[diagnostic::on_unimplemented(message = "`{Self}` is neither an integer nor a truth value")]
pub trait Bits: Scalar {}

macro_rules! marks {
    ($($mark:ident: $($ty:ty),*;)*) => {$($(impl $mark for $ty {})*)*};
}
marks! {
    Scalar: bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Number: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Integer: i8, i16, i32, i64, u8, u16, u32, u64;
    Signed: i8, i16, i32, i64, f16, bf16, f32, f64;
    Float: f16, bf16, f32, f64;
    Bits: bool, i8, i16, i32, i64, u8, u16, u32, u64;
}

/// A value of the kernel being defined, different in each thread or not.
///
/// Under `#[kernel]` operators, comparisons and `as` work on it as on `T`, by the rules of the memory
/// model: integers wrap (A1), a division by zero gives 0 (A2), conversions saturate (A5).
pub struct Val<T> {
    pub(super) value: Value,
    ty: PhantomData<T>,
}

impl<T> Clone for Val<T> {
    fn clone(&self) -> Val<T> {
        *self
    }
}

impl<T> Copy for Val<T> {}

impl<T> Val<T> {
    pub(super) fn of(value: Value) -> Val<T> {
        Val {
            value,
            ty: PhantomData,
        }
    }
}

/// The type of a value.
pub(super) fn type_of<T: Scalar>() -> Type {
    Type::Scalar(T::SCALAR)
}

/// A constant that stands in the author's text.
pub fn lit<T: Scalar>(value: T, place: Place4) -> Val<T> {
    let constant: Const = value.into();
    at(place, ());
    Val::of(with(|k| k.builder.constant(constant)))
}

/// What can stand where a kernel's body has a value: its values and arrays, and Rust constants, which
/// become constants of the kernel.
#[diagnostic::on_unimplemented(
    message = "a kernel has no values of type `{Self}`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64"
)]
pub trait IntoVal: Copy {
    /// What it is in the kernel.
    type Val: Copy;

    /// The same in the kernel.
    fn into_val(self) -> Self::Val;

    /// Names it for reports, unless it has a name.
    fn name(self, name: &str) -> Self
    where
        Self: Sized,
    {
        let _no_value_to_name = name;
        self
    }
}

impl<T: Scalar> IntoVal for Val<T> {
    type Val = Val<T>;

    fn into_val(self) -> Val<T> {
        self
    }

    fn name(self, name: &str) -> Val<T> {
        with(|k| k.builder.name(self.value, name));
        self
    }
}

impl IntoVal for () {
    type Val = ();

    fn into_val(self) {}
}

macro_rules! constants {
    ($($ty:ty),*) => {$(
        impl IntoVal for $ty {
            type Val = Val<$ty>;

            fn into_val(self) -> Val<$ty> {
                let constant: Const = self.into();
                Val::of(with(|k| k.builder.constant(constant)))
            }
        }
    )*};
}
constants!(
    bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64
);

macro_rules! tuples {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: IntoVal),+> IntoVal for ($($name,)+) {
            type Val = ($($name::Val,)+);

            #[expect(non_snake_case, reason = "the names of the types serve for the values")]
            fn into_val(self) -> Self::Val {
                let ($($name,)+) = self;
                ($($name.into_val(),)+)
            }
        }
    )*};
}
tuples! { (A B) (A B C) (A B C D) }

/// Names what a `let` binds.
pub fn local<T: IntoVal>(name: &str, value: T) -> T::Val
where
    T::Val: IntoVal,
{
    value.into_val().name(name)
}

/// The first value of a `let mut`, which later ones are of the same type as.
pub fn variable<T: IntoVal>(value: T) -> T::Val
where
    T::Val: Vars,
{
    value.into_val()
}

/// Values that control flow carries: the variables that a block changes.
#[diagnostic::on_unimplemented(
    message = "a variable cannot be a `{Self}`",
    note = "variables hold values; what a thread keeps in an array goes into `thread!([f32; 4])`"
)]
pub trait Vars: Copy {
    /// Appends its values in order.
    fn values(&self, into: &mut Vec<Value>);

    /// The same type of other values, in order.
    fn rebuild(from: &mut impl Iterator<Item = Value>) -> Self;

    /// The types of its values.
    fn types(into: &mut Vec<Type>);
}

impl Vars for () {
    fn values(&self, _none: &mut Vec<Value>) {}
    fn rebuild(_none: &mut impl Iterator<Item = Value>) {}
    fn types(_none: &mut Vec<Type>) {}
}

impl<T: Scalar> Vars for Val<T> {
    fn values(&self, into: &mut Vec<Value>) {
        into.push(self.value);
    }

    fn rebuild(from: &mut impl Iterator<Item = Value>) -> Val<T> {
        let value = from.next();
        Val::of(value.expect("as many values come back as went in"))
    }

    fn types(into: &mut Vec<Type>) {
        into.push(type_of::<T>());
    }
}

macro_rules! vars {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: Vars),+> Vars for ($($name,)+) {
            #[expect(non_snake_case, reason = "the names of the types serve for the values")]
            fn values(&self, into: &mut Vec<Value>) {
                let ($($name,)+) = self;
                $($name.values(into);)+
            }

            fn rebuild(from: &mut impl Iterator<Item = Value>) -> Self {
                ($($name::rebuild(from),)+)
            }

            fn types(into: &mut Vec<Type>) {
                $($name::types(into);)+
            }
        }
    )*};
}
vars! { (A B) (A B C) (A B C D) }

/// An index: a value of any integer type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no index",
    label = "an index is an integer of the kernel"
)]
pub trait Index: Copy {
    /// The value.
    fn index(self) -> Value;
}

impl<T: Integer> Index for Val<T> {
    fn index(self) -> Value {
        self.value
    }
}

/// What `as` converts to another type (A5).
#[diagnostic::on_unimplemented(message = "`{Self}` does not convert by `as` in a kernel")]
pub trait Cast: Copy {
    /// The value.
    fn operand(self) -> Value;
}

impl<T: Scalar> Cast for Val<T> {
    fn operand(self) -> Value {
        self.value
    }
}

/// `x as T` (A5): floats truncate and saturate to integers, integers keep their low bits.
pub fn cast<T: Scalar>(x: impl Cast) -> Val<T> {
    let x = x.operand();
    Val::of(with(|k| k.builder.cast(x, type_of::<T>())))
}

macro_rules! binary {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:ident $bound:ident;)*) => {$(
        impl<T: $bound> ops::$trait for Val<T> {
            type Output = Val<T>;

            fn $method(self, other: Val<T>) -> Val<T> {
                Val::of(with(|k| KernelBuilder::$op(&mut k.builder, self.value, other.value)))
            }
        }

        impl<T: $bound> ops::$assign for Val<T> {
            fn $assign_method(&mut self, other: Val<T>) {
                *self = ops::$trait::$method(*self, other);
            }
        }
    )*};
}
binary! {
    Add add AddAssign add_assign add Number;
    Sub sub SubAssign sub_assign sub Number;
    Mul mul MulAssign mul_assign mul Number;
    Div div DivAssign div_assign div Number;
    Rem rem RemAssign rem_assign rem Integer;
    BitAnd bitand BitAndAssign bitand_assign and Bits;
    BitOr bitor BitOrAssign bitor_assign or Bits;
    BitXor bitxor BitXorAssign bitxor_assign xor Bits;
    Shl shl ShlAssign shl_assign shl Integer;
    Shr shr ShrAssign shr_assign shr Integer;
}

impl<T: Signed> ops::Neg for Val<T> {
    type Output = Val<T>;

    fn neg(self) -> Val<T> {
        Val::of(with(|k| k.builder.neg(self.value)))
    }
}

impl<T: Bits> ops::Not for Val<T> {
    type Output = Val<T>;

    fn not(self) -> Val<T> {
        Val::of(with(|k| k.builder.not(self.value)))
    }
}
