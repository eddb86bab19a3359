//! Values of a kernel: constants, variables, operators.

use std::ops;

use invar_ir::{Const, KernelBuilder, Scope, Spaces, Type, Value};
use invar_runtime::{bf16, f16};

use super::data::{
    Bitwise, Constant, Data, Integer, Integers, Lanes, Number, Numbers, Scalar, SignedNumbers,
    Single, Stored, Val, fits, keep,
};
use super::define::{Definition, Place4, at, with};

/// A constant that stands in the author's text.
pub fn lit<T: Scalar>(value: T, place: Place4) -> Val<T> {
    let constant: Const = value.into();
    at(place, ());
    Val::of(with(|k| k.constant(constant)))
}

/// A value of this type from its scalars in order.
pub(super) fn assemble(k: &mut Definition, ty: Type, scalars: &[Value]) -> Value {
    match ty {
        Type::Vector(..) => k.builder.construct(ty, scalars),
        Type::Matrix { scalar, rows, .. } => {
            let columns: Vec<Value> = scalars
                .chunks(usize::from(rows))
                .map(|column| k.builder.construct(Type::Vector(scalar, rows), column))
                .collect();
            k.builder.construct(ty, &columns)
        }
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => scalars[0],
    }
}

/// A zero of this type; of an event there is none, and the verifier says so where it is used.
pub(super) fn zero_of(k: &mut Definition, ty: Type) -> Value {
    let scalar = ty.scalar().unwrap_or(invar_ir::Scalar::U32);
    let zero = k.builder.constant(Const { scalar, bits: 0 });
    match ty {
        Type::SimdgroupMatrix { .. } => k.builder.matrix_fill(ty, zero),
        Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } | Type::Event => {
            assemble(k, ty, &vec![zero; ty.component_count().max(1) as usize])
        }
    }
}

/// Zeros, for variables that get their values later.
pub fn zero<V: Vars>() -> V {
    let mut types = Vec::new();
    V::types(&mut types);
    let zeros: Vec<Value> = with(|k| types.iter().map(|ty| zero_of(k, *ty)).collect());
    V::rebuild(&mut zeros.into_iter())
}

/// A value of the same type as another one.
pub fn alike<V: Vars>(_other: V, value: V) -> V {
    value
}

/// What can stand where a kernel's body has a value: its values and arrays, and Rust constants, which
/// become constants of the kernel.
#[diagnostic::on_unimplemented(
    message = "a kernel has no values of type `{Self}`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, arrays of them, structs of those \
            with `#[derive(KernelData)]`, and tuples of up to 8; of an enum without fields a variant is a number, \
            `Cell::Wall as u32`"
)]
pub trait IntoVal: Sized {
    /// What it is in the kernel.
    type Val: Copy;

    /// The same in the kernel.
    fn into_val(self) -> Self::Val;

    /// Names it for reports, unless it has a name.
    fn name(self, name: &str) -> Self {
        let _no_value_to_name = name;
        self
    }
}

impl<T: Data> IntoVal for Val<T> {
    type Val = Val<T>;

    fn into_val(self) -> Val<T> {
        self
    }

    fn name(self, name: &str) -> Val<T> {
        let mut values = Vec::new();
        T::values(&self.repr, &mut values);
        if let [value] = values[..] {
            with(|k| k.builder.name(value, name));
        }
        self
    }
}

macro_rules! as_they_are {
    ($($ty:ty),*) => {$(
        impl IntoVal for $ty {
            type Val = $ty;

            fn into_val(self) -> $ty {
                self
            }
        }
    )*};
}
as_they_are!(
    (),
    invar_ir::Order,
    Scope,
    Spaces,
    invar_ir::texture::Sampler
);

macro_rules! constants {
    ($($ty:ty),*) => {$(
        impl IntoVal for $ty {
            type Val = Val<$ty>;

            fn into_val(self) -> Val<$ty> {
                let constant: Const = self.into();
                Val::of(with(|k| k.constant(constant)))
            }
        }
    )*};
}
constants!(
    bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64
);

macro_rules! sizes {
    ($($ty:ident as $of_kernel:ident),*) => {$(
        /// Sizes of the host have 64 bits in a kernel, as what `len()` gives.
        impl IntoVal for $ty {
            type Val = Val<$of_kernel>;

            fn into_val(self) -> Val<$of_kernel> {
                (self as $of_kernel).into_val()
            }
        }
    )*};
}
sizes!(usize as u64, isize as i64);

impl<T: Constant, const N: usize> IntoVal for [T; N] {
    type Val = Val<[T; N]>;

    fn into_val(self) -> Val<[T; N]> {
        Val::from_repr(self.repr())
    }
}

/// What the next part of a tuple of this name is called: `p.0`.
fn part_name(name: &str, numbers: &mut impl Iterator<Item = u32>) -> String {
    numbers
        .next()
        .filter(|_| !name.is_empty())
        .map_or_else(String::new, |number| format!("{name}.{number}"))
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: IntoVal),+> IntoVal for ($($name,)+) {
            type Val = ($($name::Val,)+);

            #[expect(non_snake_case, reason = "the names of the types serve for the values")]
            fn into_val(self) -> Self::Val {
                let ($($name,)+) = self;
                ($($name.into_val(),)+)
            }

            #[expect(non_snake_case, reason = "the names of the types serve for the values")]
            fn name(self, name: &str) -> Self {
                let ($($name,)+) = self;
                let mut numbers = 0u32..;
                ($($name.name(&part_name(name, &mut numbers)),)+)
            }
        }
    )*};
}
tuples! {
    (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
}

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
    message = "`{Self}` is not a value: no variable, branch or loop has it",
    note = "which array is accessed is known when a kernel is compiled: choose between elements; two arrays that take \
            turns are one, `threadgroup!([[f32; 64]; 2])`"
)]
pub trait Vars: Copy {
    /// Appends its values in order.
    fn values(&self, into: &mut Vec<Value>);

    /// The same type of other values, in order.
    fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Self;

    /// The types of its values.
    fn types(into: &mut Vec<Type>);

    /// Names them, each variable by the next of the names.
    fn name_all(&self, names: &mut dyn Iterator<Item = &&str>);
}

impl Vars for () {
    fn values(&self, _none: &mut Vec<Value>) {}
    fn rebuild(_none: &mut dyn Iterator<Item = Value>) {}
    fn types(_none: &mut Vec<Type>) {}
    fn name_all(&self, _none: &mut dyn Iterator<Item = &&str>) {}
}

impl<T: Data> Vars for Val<T> {
    fn values(&self, into: &mut Vec<Value>) {
        T::values(&self.repr, into);
    }

    fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Val<T> {
        Val::from_repr(T::rebuild(from))
    }

    fn types(into: &mut Vec<Type>) {
        T::types(into);
    }

    fn name_all(&self, names: &mut dyn Iterator<Item = &&str>) {
        if let Some(name) = names.next() {
            IntoVal::name(*self, name);
        }
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

            fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Self {
                ($($name::rebuild(from),)+)
            }

            fn types(into: &mut Vec<Type>) {
                $($name::types(into);)+
            }

            #[expect(non_snake_case, reason = "the names of the types serve for the values")]
            fn name_all(&self, names: &mut dyn Iterator<Item = &&str>) {
                let ($($name,)+) = self;
                let Some(name) = names.next() else { return };
                let mut numbers = 0u32..;
                $($name.name_all(&mut [&*part_name(name, &mut numbers)].iter());)+
            }
        }
    )*};
}
vars! {
    (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
}

/// A variable that control flow carries, and those behind it.
#[derive(Clone, Copy)]
pub struct Carried<V, Others>(pub V, pub Others);

#[diagnostic::do_not_recommend]
impl<V: Vars, Others: Vars> Vars for Carried<V, Others> {
    fn values(&self, into: &mut Vec<Value>) {
        self.0.values(into);
        self.1.values(into);
    }

    fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Self {
        let first = V::rebuild(from);
        Carried(first, Others::rebuild(from))
    }

    fn types(into: &mut Vec<Type>) {
        V::types(into);
        Others::types(into);
    }

    fn name_all(&self, names: &mut dyn Iterator<Item = &&str>) {
        self.0.name_all(names);
        self.1.name_all(names);
    }
}

/// An index: a value of any integer type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    label = "an index is an integer of the kernel",
    note = "of a position it is one component, `thread_position_in_grid().x`; a float is converted, `x as u32`"
)]
pub trait Index: Copy {
    /// The value.
    fn index(self) -> Value;
}

impl<T: Integer> Index for Val<T> {
    fn index(self) -> Value {
        self.ssa()
    }
}

/// What `as` converts to another type (A5), and `as_type` reads as another type.
#[diagnostic::on_unimplemented(message = "`{Self}` does not convert by `as` in a kernel")]
pub trait Cast: Copy {
    /// The value.
    fn operand(self) -> Value;
}

impl<T: Lanes> Cast for Val<T> {
    fn operand(self) -> Value {
        self.ssa()
    }
}

/// `x as T` (A5): floats truncate and saturate to integers, integers keep their low bits; a vector
/// converts to one of as many components.
pub fn cast<T: Lanes>(x: impl Cast) -> Val<T> {
    let x = x.operand();
    Val::of(with(|k| k.builder.cast(x, T::ty())))
}

macro_rules! binary {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:ident $bound:ident;)*) => {$(
        impl<T: $bound> ops::$trait for Val<T> {
            type Output = Val<T>;

            fn $method(self, other: Val<T>) -> Val<T> {
                Val::of(with(|k| KernelBuilder::$op(&mut k.builder, self.ssa(), other.ssa())))
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
    BitAnd bitand BitAndAssign bitand_assign and Bitwise;
    BitOr bitor BitOrAssign bitor_assign or Bitwise;
    BitXor bitxor BitXorAssign bitxor_assign xor Bitwise;
}

/// What `<<` and `>>` take: integers, and how far as an integer of any type, as in Rust; of a vector, component by
/// component, or as far for each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not shifted by `{Count}`",
    label = "one side is `{Self}`, the other `{Count}`",
    note = "an integer is shifted by an integer, a vector of integers by another one of as many or by an integer"
)]
pub trait Shift<Count: Data>: Data {
    /// How far, as a value of this type.
    #[doc(hidden)]
    fn count(count: Val<Count>) -> Val<Self>;
}

/// A count that says its type, in the type of what is shifted: what lies beyond that type's width counts for nothing
/// in either (A3).
fn count_as<T: Integer, Count: Integer>(count: Val<Count>) -> Val<T> {
    let ty = T::ty();
    if Count::ty() == ty {
        return Val::of(count.ssa());
    }
    cast::<T>(count)
}

#[diagnostic::do_not_recommend]
impl<T: Integer, Count: Integer> Shift<Count> for T {
    fn count(count: Val<Count>) -> Val<T> {
        count_as(count)
    }
}

macro_rules! shifts_of_vectors {
    ($($n:literal)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Integer, Count: Integer> Shift<Count> for [T; $n] {
            fn count(count: Val<Count>) -> Val<[T; $n]> {
                splat(count_as::<T, Count>(count))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Integer, Count: Integer> Shift<[Count; $n]> for [T; $n] {
            fn count(count: Val<[Count; $n]>) -> Val<[T; $n]> {
                if <[Count; $n]>::ty() == <[T; $n]>::ty() {
                    return Val::of(count.ssa());
                }
                cast::<[T; $n]>(count)
            }
        }
    )*};
}
shifts_of_vectors!(2 3 4);

/// How far a literal without a type says to shift: it has the type of what is shifted.
#[derive(Clone, Copy, Debug)]
pub struct ShiftCount(u64);

/// A literal on the right of `<<` or `>>`.
pub fn shift_count(count: u64, place: Place4) -> ShiftCount {
    at(place, ());
    ShiftCount(count)
}

impl ShiftCount {
    fn of<T: Integers>(self) -> Value {
        with(|k| {
            let scalar = T::ty().scalar().unwrap_or(invar_ir::Scalar::U32);
            let bits = self.0 & u64::MAX >> (64 - scalar.bits());
            let one = k.constant(Const { scalar, bits });
            match T::ty() {
                Type::Scalar(_) => one,
                ty => assemble(k, ty, &vec![one; ty.component_count() as usize]),
            }
        })
    }
}

macro_rules! shifts {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        impl<T: Integers + Shift<Count>, Count: Data> ops::$trait<Val<Count>> for Val<T> {
            type Output = Val<T>;

            fn $method(self, count: Val<Count>) -> Val<T> {
                let count = <T as Shift<Count>>::count(count);
                Val::of(with(|k| KernelBuilder::$method(&mut k.builder, self.ssa(), count.ssa())))
            }
        }

        impl<T: Integers + Shift<Count>, Count: Data> ops::$assign<Val<Count>> for Val<T> {
            fn $assign_method(&mut self, count: Val<Count>) {
                *self = ops::$trait::$method(*self, count);
            }
        }

        impl<T: Integers> ops::$trait<ShiftCount> for Val<T> {
            type Output = Val<T>;

            fn $method(self, count: ShiftCount) -> Val<T> {
                let count = count.of::<T>();
                Val::of(with(|k| KernelBuilder::$method(&mut k.builder, self.ssa(), count)))
            }
        }

        impl<T: Integers> ops::$assign<ShiftCount> for Val<T> {
            fn $assign_method(&mut self, count: ShiftCount) {
                *self = ops::$trait::$method(*self, count);
            }
        }
    )*};
}
shifts! {
    Shl shl ShlAssign shl_assign;
    Shr shr ShrAssign shr_assign;
}

/// What `+`, `-`, `/` and `%` take: two of one type, or a vector and a number on either side, which every component
/// is taken with, as in Metal.
#[diagnostic::on_unimplemented(
    message = "no operator takes `{Self}` and `{Other}`",
    label = "one side is `{Self}`, the other `{Other}`",
    note = "nothing converts by itself: `n as f32`",
    note = "a literal of `f16`, of `bf16` or of a type parameter `T` says its type: `2.0 as f16`, `2.0 as T`"
)]
pub trait Arithmetic<Other: Data>: Data {
    /// What comes out.
    type Result: Single;

    /// Both sides, of one type.
    #[doc(hidden)]
    fn sides(a: Val<Self>, b: Val<Other>) -> [Value; 2];
}

/// What `*` takes: as other operators, and matrices.
#[diagnostic::on_unimplemented(
    message = "no `*` takes `{Self}` and `{Other}`",
    label = "one side is `{Self}`, the other `{Other}`",
    note = "nothing converts by itself: `n as f32`",
    note = "a literal of `f16`, of `bf16` or of a type parameter `T` says its type: `2.0 as f16`, `2.0 as T`"
)]
pub trait Times<Other: Data>: Data {
    /// What comes out.
    type Product: Single;

    /// The product.
    #[doc(hidden)]
    fn times(a: Val<Self>, b: Val<Other>) -> Val<Self::Product>;
}

/// What functions of several values take beside one of this type: others of it, or for a vector numbers, which every
/// component is taken with, as in Metal: `max(v, 0.0)`.
#[diagnostic::on_unimplemented(
    message = "`{Other}` does not go with `{Self}`",
    label = "expected `{Self}`, found `{Other}`",
    note = "nothing converts by itself: `n as f32`; beside a vector there may be a number of its components' type, \
            `max(v, 0.0)`",
    note = "a literal of `f16`, of `bf16` or of a type parameter `T` says its type: `2.0 as f16`, `2.0 as T`"
)]
pub trait With<Other: Data>: Data {
    /// The other one as a value of this type.
    #[doc(hidden)]
    fn other(x: Val<Other>) -> Val<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Lanes> With<T> for T {
    fn other(x: Val<T>) -> Val<T> {
        x
    }
}

macro_rules! vectors_with_numbers {
    ($($n:literal)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Number> With<T> for [T; $n] {
            fn other(x: Val<T>) -> Val<[T; $n]> {
                splat(x)
            }
        }
    )*};
}
vectors_with_numbers!(2 3 4);

/// What a function takes: of a function that kernels call a value of the kernel.
#[diagnostic::on_unimplemented(
    message = "the function takes `{Taken}` here, and this is `{Self}`",
    label = "expected `{Taken}`, found `{Self}`",
    note = "nothing converts by itself: `n as f32`",
    note = "a function that takes numbers of Rust is one of the host; kernels call it with `#[device_fn]` above it, \
            which makes them values of the kernel: `f32` becomes `Val<f32>`"
)]
pub trait Passed<Taken> {
    /// The same.
    #[doc(hidden)]
    fn passed(self) -> Taken;
}

#[diagnostic::do_not_recommend]
impl<T> Passed<T> for T {
    fn passed(self) -> T {
        self
    }
}

/// What no function takes. That there is a second thing that a value might be passed as has rustc look at what the
/// function takes before it says what does not fit.
#[derive(Clone, Copy, Debug)]
pub enum NothingElse {}

#[diagnostic::do_not_recommend]
impl<T: Data> Passed<NothingElse> for Val<T> {
    fn passed(self) -> NothingElse {
        unreachable!("no function takes this")
    }
}

macro_rules! arithmetic_of {
    ($(<$bound:ident> $a:ty, $b:ty => $result:ty, |$left:ident, $right:ident| $sides:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: $bound> Arithmetic<$b> for $a {
            type Result = $result;

            fn sides($left: Val<$a>, $right: Val<$b>) -> [Value; 2] {
                $sides
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: $bound> Times<$b> for $a {
            type Product = $result;

            fn times($left: Val<$a>, $right: Val<$b>) -> Val<$result> {
                let [a, b] = $sides;
                Val::of(with(|k| k.builder.mul(a, b)))
            }
        }
    )*};
}
arithmetic_of! {
    <Numbers> T, T => T, |a, b| [a.ssa(), b.ssa()];
    <Number> [T; 2], T => [T; 2], |a, b| [a.ssa(), splat::<T, 2>(b).ssa()];
    <Number> [T; 3], T => [T; 3], |a, b| [a.ssa(), splat::<T, 3>(b).ssa()];
    <Number> [T; 4], T => [T; 4], |a, b| [a.ssa(), splat::<T, 4>(b).ssa()];
    <Number> T, [T; 2] => [T; 2], |a, b| [splat::<T, 2>(a).ssa(), b.ssa()];
    <Number> T, [T; 3] => [T; 3], |a, b| [splat::<T, 3>(a).ssa(), b.ssa()];
    <Number> T, [T; 4] => [T; 4], |a, b| [splat::<T, 4>(a).ssa(), b.ssa()];
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:path;)*) => {$(
        impl<A: Arithmetic<B>, B: Data> ops::$trait<Val<B>> for Val<A> {
            type Output = Val<A::Result>;

            fn $method(self, other: Val<B>) -> Val<A::Result> {
                let [a, b] = A::sides(self, other);
                Val::of(with(|k| $op(&mut k.builder, a, b)))
            }
        }

        impl<A: Arithmetic<B, Result = A>, B: Data> ops::$assign<Val<B>> for Val<A> {
            fn $assign_method(&mut self, other: Val<B>) {
                *self = ops::$trait::$method(*self, other);
            }
        }
    )*};
}
arithmetic! {
    Add add AddAssign add_assign KernelBuilder::add;
    Sub sub SubAssign sub_assign KernelBuilder::sub;
    Div div DivAssign div_assign KernelBuilder::div;
    Rem rem RemAssign rem_assign remainder;
}

impl<A: Times<B>, B: Data> ops::Mul<Val<B>> for Val<A> {
    type Output = Val<A::Product>;

    fn mul(self, other: Val<B>) -> Val<A::Product> {
        A::times(self, other)
    }
}

impl<A: Times<B, Product = A>, B: Data> ops::MulAssign<Val<B>> for Val<A> {
    fn mul_assign(&mut self, other: Val<B>) {
        *self = *self * other;
    }
}

/// Of integers as A2 says; of floats as `fmod`, which is Rust's too.
fn remainder(builder: &mut KernelBuilder, a: Value, b: Value) -> Value {
    let scalar = builder.ty(a).scalar();
    match scalar.is_some_and(invar_ir::Scalar::is_float) {
        true => builder.fmod(a, b),
        false => builder.rem(a, b),
    }
}

impl<T: SignedNumbers> ops::Neg for Val<T> {
    type Output = Val<T>;

    fn neg(self) -> Val<T> {
        Val::of(with(|k| k.builder.neg(self.ssa())))
    }
}

impl<T: Bitwise> ops::Not for Val<T> {
    type Output = Val<T>;

    fn not(self) -> Val<T> {
        Val::of(with(|k| k.builder.not(self.ssa())))
    }
}

/// `[a, b, c]`: a vector of scalars, a matrix of columns, or the array that a field of a struct is.
pub fn vector<T: Stored, const N: usize>(parts: [Val<T>; N]) -> Val<[T; N]> {
    let mut values = Vec::new();
    parts
        .iter()
        .for_each(|part| T::values(&part.repr, &mut values));
    match <[T; N]>::VALUE {
        Some(ty) => Val::of(with(|k| k.builder.construct(ty, &values))),
        None if fits::<T>(N) => Val::from_repr(keep(values)),
        None => zero(),
    }
}

/// `[x; N]`: the same everywhere.
pub fn splat<T: Stored, const N: usize>(part: Val<T>) -> Val<[T; N]> {
    vector([part; N])
}

/// Prints a line: what `println!` in a kernel becomes (P1).
pub fn print_line(text: &str, values: &[Value]) {
    with(|k| k.builder.print(text, values));
}

/// What a line prints.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not printed",
    note = "a line prints scalars and vectors: of an array its elements, of a struct its fields"
)]
pub trait Printed {
    /// The value.
    fn value(self) -> Value;
}

impl<T: Lanes> Printed for Val<T> {
    fn value(self) -> Value {
        self.ssa()
    }
}

/// A value to print.
pub fn printed(x: impl Printed) -> Value {
    x.value()
}
