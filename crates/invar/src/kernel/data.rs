//! What a kernel computes with, by its Rust type, and what its memory holds.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use invar_ir::{Const, ElementType, Place, ScalarLiteral, Step, Type, Value};
use invar_runtime::{bf16, f16};

use super::define::with;
use super::memory::SpotId;
use super::value::{IntoVal, Shift, assemble, zero};

/// A type that kernels have: the macros look each of the author's up here.
///
/// Where a type is not here, rustc says so on its name, and takes what would have been it for no type, of which it
/// says nothing else.
#[diagnostic::on_unimplemented(
    message = "a kernel has no type `{Self}`",
    label = "no number, and no struct with `#[derive(KernelData)]`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, arrays of them, and structs with \
            `#[derive(KernelData)]`"
)]
pub trait Known {
    /// The type.
    type Itself;
}

/// The same of `Self`, which in a trait is any type.
#[diagnostic::on_unimplemented(
    message = "a kernel has no type `{Self}`",
    label = "no number, and no struct with `#[derive(KernelData)]`",
    note = "a trait says that its types are those of kernels: `trait Shape: Data`; a type of yours is one by \
            `#[derive(KernelData)]`"
)]
pub trait KnownSelf {
    /// The type.
    type Itself;
}

/// A type that values of kernels have: `bool`, numbers, `[T; 2]` to `[T; 4]` as vectors, arrays of float
/// vectors as matrices, structs with `#[derive(KernelData)]`, simdgroup matrices and events.
#[diagnostic::on_unimplemented(
    message = "a kernel has no values of type `{Self}`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, arrays of 2 to 4 of them as vectors, and structs with `#[derive(KernelData)]`"
)]
pub trait Data: Known<Itself = Self> + KnownSelf<Itself = Self> + Sized + 'static {
    /// What a value of the type is while a kernel is defined.
    type Repr: Copy;

    /// Appends its values in order.
    #[doc(hidden)]
    fn values(repr: &Self::Repr, into: &mut Vec<Value>);

    /// The same of other values, in order.
    #[doc(hidden)]
    fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Self::Repr;

    /// The types of its values.
    #[doc(hidden)]
    fn types(into: &mut Vec<Type>);
}

/// A type whose values are one value of the kernel: no struct.
#[diagnostic::on_unimplemented(
    message = "this takes one value, and a `{Self}` is several",
    note = "one value is a number, a truth value, a vector or a matrix; of a struct each field is one, and a \
            parameter of a kernel is a buffer of it, `&[S]` or `&Constants<S>`"
)]
pub trait Single: Data<Repr = Ssa> {
    /// The type.
    #[doc(hidden)]
    fn ty() -> Type;

    /// What stands for a value of the kernel.
    #[doc(hidden)]
    fn made(value: Value) -> Ssa {
        Ssa::of(value)
    }

    /// The value of the kernel that this stands for.
    #[doc(hidden)]
    fn value(repr: Ssa) -> Value {
        repr.value
    }
}

/// A type that memory of kernels holds.
#[diagnostic::on_unimplemented(
    message = "memory of a kernel does not hold `{Self}`",
    note = "it holds numbers, truth values, arrays of them, and structs with `#[derive(KernelData)]`"
)]
pub trait Stored: Data {
    /// The parts of an element where it lies.
    type At: Copy;

    /// The type of an element that is one value.
    #[doc(hidden)]
    const VALUE: Option<Type>;

    /// What an element is.
    #[doc(hidden)]
    fn element() -> ElementType;

    /// Its parts in a place.
    #[doc(hidden)]
    fn at(spot: SpotId) -> Self::At;

    /// Reads a place.
    #[doc(hidden)]
    fn load(place: &Place) -> Self::Repr;

    /// Writes a place.
    #[doc(hidden)]
    fn store(place: &Place, repr: &Self::Repr);
}

/// A value of the kernel being defined, without its type; of an array that is neither a vector nor a matrix
/// the number of the list of its values.
#[derive(Clone, Copy)]
pub struct Ssa {
    value: Value,
}

impl Ssa {
    fn of(value: Value) -> Ssa {
        Ssa { value }
    }
}

/// A value of the kernel being defined, different in each thread or not.
///
/// Under `#[kernel]` operators, comparisons and `as` work on it as on `T`, by the rules of the memory
/// model: integers wrap (A1), a division by zero gives 0 (A2), conversions saturate (A5).
pub struct Val<T: Data> {
    pub(super) repr: T::Repr,
}

impl<T: Data> Val<T> {
    pub(super) fn from_repr(repr: T::Repr) -> Val<T> {
        Val { repr }
    }
}

impl<T: Data> Clone for Val<T> {
    fn clone(&self) -> Val<T> {
        *self
    }
}

impl<T: Data> Copy for Val<T> {}

impl<T: Data> Deref for Val<T> {
    type Target = T::Repr;

    fn deref(&self) -> &T::Repr {
        &self.repr
    }
}

impl<T: Data> DerefMut for Val<T> {
    fn deref_mut(&mut self) -> &mut T::Repr {
        &mut self.repr
    }
}

impl<T: Single> Val<T> {
    pub(super) fn of(value: Value) -> Val<T> {
        Val::from_repr(T::made(value))
    }

    pub(super) fn ssa(self) -> Value {
        T::value(self.repr)
    }
}

const AS_MANY: &str = "as many values come back as went in";

macro_rules! single {
    ($ty:ty, <$($generic:tt)*) => {
        impl<$($generic)* Known for $ty {
            type Itself = $ty;
        }

        impl<$($generic)* KnownSelf for $ty {
            type Itself = $ty;
        }

        impl<$($generic)* Data for $ty {
            type Repr = Ssa;

            fn values(repr: &Ssa, into: &mut Vec<Value>) {
                into.push(repr.value);
            }

            fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Ssa {
                Ssa::of(from.next().expect(AS_MANY))
            }

            fn types(into: &mut Vec<Type>) {
                into.push(<$ty as Single>::ty());
            }
        }
    };
}

fn load_one(place: &Place) -> Ssa {
    Ssa::of(with(|k| {
        k.uses(place.memory, true, false);
        k.builder.load(place.clone())
    }))
}

fn store_one(place: &Place, value: Ssa) {
    with(|k| {
        k.uses(place.memory, false, true);
        k.builder.store(place.clone(), value.value);
    });
}

macro_rules! scalars {
    ($($ty:ty),*) => {$(
        single!($ty, <>);

        impl Single for $ty {
            fn ty() -> Type {
                Type::Scalar(<$ty as ScalarLiteral>::SCALAR)
            }
        }

        impl Stored for $ty {
            type At = ();
            const VALUE: Option<Type> = Some(Type::Scalar(<$ty as ScalarLiteral>::SCALAR));

            fn element() -> ElementType {
                <$ty as ScalarLiteral>::SCALAR.into()
            }

            fn at(_whole: SpotId) {}

            fn load(place: &Place) -> Ssa {
                load_one(place)
            }

            fn store(place: &Place, repr: &Ssa) {
                store_one(place, *repr);
            }
        }

        impl Constant for $ty {
            fn consts(&self, into: &mut Vec<Const>) {
                into.push((*self).into());
            }

            fn repr(&self) -> Ssa {
                Ssa::of(with(|k| k.constant((*self).into())))
            }
        }

        impl Scalar for $ty {}

        impl Lanes for $ty {
            type Scalar = $ty;
            type Mask = bool;
            type I32 = i32;
        }
    )*};
}
scalars!(
    bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64
);

/// What `N` of a type are as one value: a vector or a matrix.
const fn several(part: Option<Type>, n: usize) -> Option<Type> {
    if n < 2 || n > 4 {
        return None;
    }
    match part {
        Some(Type::Scalar(scalar)) => Some(Type::Vector(scalar, n as u8)),
        Some(Type::Vector(scalar, rows)) if scalar.is_float() => Some(Type::Matrix {
            scalar,
            columns: n as u8,
            rows,
        }),
        _ => None,
    }
}

/// The most values that an array is made of where it is read or written whole.
const MOST_PARTS: usize = 256;

/// How many values a value of a type is.
fn count<T: Data>() -> usize {
    let mut types = Vec::new();
    T::types(&mut types);
    types.len()
}

/// Of an array of so many parts: whether it can be a value. If not, that is an error where it stands.
pub(super) fn fits<T: Data>(length: usize) -> bool {
    let fits = length.saturating_mul(count::<T>()) <= MOST_PARTS;
    if !fits {
        let why = format!(
            "an array of {length} is too long for one value: take its elements, `x[i].a[j]` or `TABLE[j]`"
        );
        with(|k| k.refuse(&why));
    }
    fits
}

/// Keeps the values of an array's elements in order.
pub(super) fn keep(values: Vec<Value>) -> Ssa {
    Ssa::of(with(|k| {
        k.lists.push(values);
        Value(k.lists.len() as u32 - 1)
    }))
}

/// The elements of an array that is neither a vector nor a matrix.
pub(super) fn elements<T: Data>(array: Ssa) -> Vec<T::Repr> {
    let values = with(|k| k.lists[array.value.0 as usize].clone());
    let mut values = values.into_iter();
    let mut elements = Vec::new();
    while !values.as_slice().is_empty() {
        elements.push(T::rebuild(&mut values));
    }
    elements
}

/// An array of these elements.
pub(super) fn listed<T: Data>(elements: &[T::Repr]) -> Ssa {
    let mut values = Vec::new();
    elements
        .iter()
        .for_each(|part| T::values(part, &mut values));
    keep(values)
}

/// The places of an array's elements.
fn places(array: &Place, length: usize) -> impl Iterator<Item = Place> {
    (0..length as u32).map(|i| {
        let mut place = array.clone();
        let index = with(|k| k.builder.const_u32(i));
        place.path.push(Step::Index(index));
        place
    })
}

impl<T: Stored, const N: usize> Known for [T; N] {
    type Itself = [T; N];
}

impl<T: Stored, const N: usize> KnownSelf for [T; N] {
    type Itself = [T; N];
}

impl<T: Stored, const N: usize> Data for [T; N] {
    type Repr = Ssa;

    fn values(repr: &Ssa, into: &mut Vec<Value>) {
        match Self::VALUE {
            Some(_) => into.push(repr.value),
            None => into.extend(with(|k| k.lists[repr.value.0 as usize].clone())),
        }
    }

    fn rebuild(from: &mut dyn Iterator<Item = Value>) -> Ssa {
        match Self::VALUE {
            Some(_) => Ssa::of(from.next().expect(AS_MANY)),
            None => keep(from.take(count::<Self>()).collect()),
        }
    }

    fn types(into: &mut Vec<Type>) {
        match Self::VALUE {
            Some(ty) => into.push(ty),
            None => (0..N.min(MOST_PARTS)).for_each(|_| T::types(into)),
        }
    }
}

/// An array that is not a vector and no matrix stands where only those do.
fn is_no_vector<const N: usize>() -> Value {
    with(|k| {
        k.refuse(&format!(
            "this takes a vector of 2 to 4 or a matrix, not an array of {N}: take its elements"
        ));
        k.builder.poison(Type::F32)
    })
}

impl<T: Stored, const N: usize> Single for [T; N] {
    fn ty() -> Type {
        // What is not a vector and no matrix is refused where it is made or used as one.
        Self::VALUE.unwrap_or(Type::F32)
    }

    fn made(value: Value) -> Ssa {
        match Self::VALUE {
            Some(_) => Ssa::of(value),
            None => keep(vec![is_no_vector::<N>(); count::<Self>()]),
        }
    }

    fn value(repr: Ssa) -> Value {
        match Self::VALUE {
            Some(_) => repr.value,
            None => is_no_vector::<N>(),
        }
    }
}

impl<T: Stored, const N: usize> Stored for [T; N] {
    type At = Elements<T, N>;
    const VALUE: Option<Type> = several(T::VALUE, N);

    fn element() -> ElementType {
        match Self::VALUE {
            Some(ty) => ElementType::Value(ty),
            None => ElementType::Array(T::element().into(), N as u32),
        }
    }

    fn at(spot: SpotId) -> Elements<T, N> {
        Elements(spot, PhantomData)
    }

    fn load(place: &Place) -> Ssa {
        if Self::VALUE.is_some() {
            return load_one(place);
        }
        if !fits::<T>(N) {
            return zero::<Val<[T; N]>>().repr;
        }
        let elements: Vec<T::Repr> = places(place, N).map(|part| T::load(&part)).collect();
        listed::<T>(&elements)
    }

    fn store(place: &Place, repr: &Ssa) {
        if Self::VALUE.is_some() {
            return store_one(place, *repr);
        }
        if fits::<T>(N) {
            let parts = places(place, N).zip(elements::<T>(*repr));
            parts.for_each(|(part, element)| T::store(&part, &element));
        }
    }
}

/// The elements of an array in memory.
pub struct Elements<T, const N: usize>(pub(super) SpotId, PhantomData<T>);

impl<T, const N: usize> Clone for Elements<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Elements<T, N> {}

/// A number, a truth value, an array or a struct of those that a Rust constant or an argument gives.
pub trait Constant: Stored {
    /// Appends its scalars in order.
    #[doc(hidden)]
    fn consts(&self, into: &mut Vec<Const>);

    /// The same in the kernel.
    #[doc(hidden)]
    fn repr(&self) -> Self::Repr;
}

/// A constant of the host's as a value of the kernel.
#[doc(hidden)]
pub fn constant_value<T: Constant>(constant: &T) -> Val<T> {
    Val::from_repr(constant.repr())
}

impl<T: Constant, const N: usize> Constant for [T; N] {
    fn consts(&self, into: &mut Vec<Const>) {
        self.iter().for_each(|part| part.consts(into));
    }

    fn repr(&self) -> Ssa {
        let Some(ty) = Self::VALUE else {
            if !fits::<T>(N) {
                return zero::<Val<[T; N]>>().repr;
            }
            let parts: Vec<T::Repr> = self.iter().map(Constant::repr).collect();
            return listed::<T>(&parts);
        };
        let mut consts = Vec::new();
        self.consts(&mut consts);
        Ssa::of(with(|k| {
            let scalars: Vec<Value> = consts.iter().map(|c| k.builder.constant(*c)).collect();
            assemble(k, ty, &scalars)
        }))
    }
}

/// A scalar, or a vector of 2 to 4: what operations work on component by component.
#[diagnostic::on_unimplemented(message = "`{Self}` is neither a scalar nor a vector of 2 to 4")]
pub trait Lanes: Single + Stored + Copy {
    /// One component.
    type Scalar: Scalar;
    /// What a comparison gives: a truth value for each component.
    type Mask: Single;
    /// As many `i32`.
    type I32: Single;
}

/// A number or truth value.
#[diagnostic::on_unimplemented(
    message = "a kernel has no values of type `{Self}`",
    note = "there are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64"
)]
pub trait Scalar:
    ScalarLiteral
    + Default
    + Lanes<Scalar = Self, Mask = bool, I32 = i32>
    + Constant
    + IntoVal<Val = Val<Self>>
{
}

macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])+ $one:ident: ($($one_super:path),+), $wants:literal;
        $(#[doc = $docs:literal])+ $many:ident: ($($many_super:path),+), $wants_many:literal;
        $($ty:ty),*;
    )*) => {$(
        $(#[doc = $docs])+
        #[diagnostic::on_unimplemented(message = $wants_many)]
        pub trait $many: $($many_super +)+ {}

        $(#[doc = $doc])+
        #[diagnostic::on_unimplemented(message = $wants)]
        pub trait $one: $($one_super +)+ $many {}

        $(
            impl $one for $ty {}
            impl $many for $ty {}
        )*
        impl<T: $one> $many for [T; 2] {}
        impl<T: $one> $many for [T; 3] {}
        impl<T: $one> $many for [T; 4] {}
    )*};
}
kinds! {
    /// A number: what buffers hold, and arithmetic takes.
    Number: (Scalar, invar_runtime::Element), "this takes a number, not `{Self}`";
    /// A number or a vector of numbers.
    Numbers: (Lanes), "this takes a number or a vector of numbers, not `{Self}`";
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;

    /// A number with a sign.
    Signed: (Number), "this takes a number with a sign, not `{Self}`";
    /// A number with a sign, or a vector of those.
    SignedNumbers: (Numbers), "this takes a number with a sign or a vector of those, not `{Self}`";
    i8, i16, i32, i64, f16, bf16, f32, f64;

    /// A float.
    Float: (Signed), "this takes a float, not `{Self}`";
    /// A float or a vector of floats.
    Floats: (SignedNumbers), "this takes a float or a vector of floats, not `{Self}`";
    f16, bf16, f32, f64;

    /// An integer or a truth value: what has bits to combine.
    Bits: (Scalar), "this takes an integer or a truth value, not `{Self}`";
    /// Integers or truth values, or a vector of those.
    Bitwise: (Lanes), "this takes integers or truth values, not `{Self}`";
    bool, i8, i16, i32, i64, u8, u16, u32, u64;

    /// An integer.
    Integer: (Number, Bits), "this takes an integer, not `{Self}`";
    /// An integer or a vector of integers.
    Integers: (Numbers, Bitwise, Shift<Self>), "this takes an integer or a vector of integers, not `{Self}`";
    i8, i16, i32, i64, u8, u16, u32, u64;
}

macro_rules! vector_lanes {
    ($($n:literal),*) => {$(
        impl<T: Scalar> Lanes for [T; $n] {
            type Scalar = T;
            type Mask = [bool; $n];
            type I32 = [i32; $n];
        }
    )*};
}
vector_lanes!(2, 3, 4);

/// A number that atomic operations load, store, exchange and add to.
#[diagnostic::on_unimplemented(
    message = "there are no atomic operations on `{Self}`",
    note = "they act on i32, u32, i64, u64, f32 and f64: keep the location as one of those"
)]
pub trait AtomicNumber: Number {}

/// An integer that all atomic operations act on.
///
/// ```compile_fail,E0277
/// use invar::prelude::*;
///
/// #[kernel]
/// fn least(x: &mut [f32]) {
///     atomic_min(&mut x[0], 1.0);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "this atomic operation is for integers of 32 or 64 bits, not for `{Self}`",
    note = "of a float there are `atomic_load`, `atomic_store`, `atomic_exchange` and `atomic_add`; the others act on \
            an integer of its bits"
)]
pub trait AtomicInteger: AtomicNumber + Integer {}

macro_rules! atomics {
    ($trait:ident: $($ty:ty),*) => {
        $(impl $trait for $ty {})*
    };
}
atomics!(AtomicNumber: i32, u32, i64, u64, f32, f64);
atomics!(AtomicInteger: i32, u32, i64, u64);

/// A simdgroup matrix of 8 by 8, which the threads of a simdgroup hold together.
#[derive(Clone, Copy)]
pub struct SimdgroupMatrix<T>(PhantomData<T>);

single!(SimdgroupMatrix<T>, <T: Float>);

impl<T: Float> Single for SimdgroupMatrix<T> {
    fn ty() -> Type {
        Type::SimdgroupMatrix {
            scalar: <T as ScalarLiteral>::SCALAR,
            rows: 8,
            columns: 8,
        }
    }
}

/// An async copy under way.
#[derive(Clone, Copy)]
pub struct Event(());

single!(Event, <>);

impl Single for Event {
    fn ty() -> Type {
        Type::Event
    }
}
