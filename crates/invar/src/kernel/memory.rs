//! Parameters and arrays of a kernel, and the places in them.

use std::marker::PhantomData;
use std::ops::Deref;

use invar_ir::{Access, ConstantArray, ElementType, Memory, Place, Span, Step, Value, Width};

use super::data::{Constant, Data, Elements, Scalar, Single, Stored, Val, elements, listed};
use super::define::{Place4, at, with};
use super::value::{Index, IntoVal, vector};
use crate::PixelFormat;

macro_rules! arrays {
    ($($(#[doc = $doc:literal])+ $name:ident;)*) => {$(
        $(#[doc = $doc])+
        pub struct $name<T> {
            memory: Memory,
            element: PhantomData<T>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> $name<T> {
            fn of(memory: Memory) -> Self {
                $name { memory, element: PhantomData }
            }
        }

        impl<T: Stored> IntoVal for $name<T> {
            type Val = Self;

            fn into_val(self) -> Self {
                self
            }
        }

        impl<T: Stored> InMemory for $name<T> {
            type Element = T;

            fn memory(self) -> Memory {
                self.memory
            }
        }

        impl<T: Stored> Indexed for $name<T> {
            type Part = Spot<T>;

            fn part(self, index: Value) -> Spot<T> {
                Spot::of(Place::element(self.memory, index))
            }
        }
    )*};
}
arrays! {
    /// `&[T]`: a buffer in device memory that the kernel reads.
    Slice;
    /// `&mut [T]`: a buffer in device memory that the kernel reads and writes.
    SliceMut;
    /// `&Constants<T>`: a buffer in constant memory.
    Constants;
    /// `threadgroup!([T; N])`: an array that the threads of a threadgroup share, of zeros at first (I2); as a
    /// parameter `&mut ThreadgroupArray<T>` one whose length the launch gives.
    ThreadgroupArray;
    /// `thread!([T; N])`: an array of the thread's own, of zeros at first (I3).
    ThreadArray;
    /// `constant!(TABLE)`: a Rust constant as an array in constant memory.
    ConstantTable;
    /// `imageblock!(T)`: an element for each position of the threadgroup, of zeros at first (I2), of which
    /// `block[block.element(x, y)]` is one. `imageblock!(Pixel, colour: Rgba8Unorm)` stores a field in a pixel format.
    Imageblock;
}

macro_rules! swaps {
    ($($name:ident),*) => {$(
        impl<T: Stored> $name<T> {
            /// Exchanges two elements.
            pub fn swap(self, a: impl Index, b: impl Index) {
                let (a, b) = (part_mut(self, a), part_mut(self, b));
                let (old_a, old_b) = (read(a), read(b));
                write(a, old_b);
                write(b, old_a);
            }
        }
    )*};
}
swaps!(SliceMut, ThreadgroupArray, ThreadArray);

/// How many elements a memory object has.
fn length_of(memory: Memory) -> Value {
    with(|k| {
        let length = match memory {
            Memory::Param(_) => return k.builder.buffer_length(memory),
            Memory::Alloc(number) => k.builder.kernel().allocs[number as usize].length,
            Memory::Constant(number) => k.builder.module().constants[number as usize].length,
        };
        k.builder.constant(u64::from(length).into())
    })
}

macro_rules! lengths {
    ($($name:ident),*) => {$(
        impl<T: Stored> $name<T> {
            /// How many elements it has: of a buffer as many as are bound.
            pub fn len(self) -> Val<u64> {
                Val::of(length_of(self.memory))
            }

            /// Whether it has no elements.
            pub fn is_empty(self) -> Val<bool> {
                let length = length_of(self.memory);
                Val::of(with(|k| {
                    let none = k.builder.constant(0u64.into());
                    k.builder.eq(length, none)
                }))
            }
        }
    )*};
}
lengths!(
    Slice,
    SliceMut,
    Constants,
    ThreadgroupArray,
    ThreadArray,
    ConstantTable
);

/// What a device function takes for `&[T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `&[{T}]` of the kernel",
    note = "for `&[T]` stands a buffer, an array that `threadgroup!` or `thread!` makes, or `&TABLE`, all of elements `T`"
)]
pub trait AsSlice<T>: Copy {
    /// The same array, to be read.
    fn as_slice(self) -> Slice<T>;
}

/// What a device function takes for `&mut [T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `&mut [{T}]` of the kernel",
    note = "for `&mut [T]` stands a buffer that is `&mut`, or an array that `threadgroup!` or `thread!` makes, of \
            elements `T`"
)]
pub trait AsSliceMut<T>: Copy {
    /// The same array, to be read and written.
    fn as_slice_mut(self) -> SliceMut<T>;
}

macro_rules! slices {
    ($trait:ident $method:ident $slice:ident: $($name:ident),*) => {$(
        impl<T> $trait<T> for $name<T> {
            fn $method(self) -> $slice<T> {
                $slice::of(self.memory)
            }
        }
    )*};
}
slices!(AsSlice as_slice Slice:
    Slice, SliceMut, Constants, ThreadgroupArray, ThreadArray, ConstantTable);
slices!(AsSliceMut as_slice_mut SliceMut: SliceMut, ThreadgroupArray, ThreadArray);

/// An array in memory.
pub trait InMemory: Copy {
    /// Its elements.
    type Element: Stored;

    /// The memory object.
    fn memory(self) -> Memory;
}

/// What `[i]` takes a part of: an array in memory, where a load out of bounds gives 0 (B1), or a vector or
/// matrix.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an array of the kernel")]
pub trait Indexed: Copy {
    /// An element in its place, or a component.
    type Part;

    /// The part at an index.
    fn part(self, index: Value) -> Self::Part;
}

/// Which element of so many an index is, where that is known.
fn known(index: Value, length: usize) -> Option<usize> {
    let known = with(|k| k.known(index))?;
    let known = usize::try_from(known.bits).ok()?;
    (known < length).then_some(known)
}

/// An array of the thread's own with these elements, for one that is asked for by an index.
fn own_array<T: Stored>(elements: &[T::Repr]) -> Memory {
    let (element, length) = (T::element(), elements.len() as u32);
    let own = with(|k| k.builder.alloc_thread("", element, length));
    for (i, part) in (0..length).zip(elements) {
        let index = with(|k| k.builder.const_u32(i));
        T::store(&Place::element(own, index), part);
    }
    own
}

impl<T: Stored, const N: usize> Indexed for Val<[T; N]> {
    type Part = Val<T>;

    fn part(self, index: Value) -> Val<T> {
        if <[T; N]>::VALUE.is_some() {
            let whole = self.ssa();
            let part = with(|k| k.builder.extract(whole, index));
            return Val::from_repr(T::rebuild(&mut std::iter::once(part)));
        }
        let elements = elements::<T>(self.repr);
        match known(index, N) {
            Some(known) => Val::from_repr(elements[known]),
            None => Val::from_repr(T::load(&Place::element(own_array::<T>(&elements), index))),
        }
    }
}

impl<T: Stored, const N: usize> Indexed for Spot<[T; N]> {
    type Part = Spot<T>;

    fn part(self, index: Value) -> Spot<T> {
        self.id.step(Step::Index(index))
    }
}

/// What lies in a place: an element, or a row of them.
pub trait InRow: Copy {
    /// That of this place.
    #[doc(hidden)]
    fn lying(place: Place) -> Self;
}

impl<T: Stored> InRow for Spot<T> {
    fn lying(place: Place) -> Spot<T> {
        Spot::of(place)
    }
}

/// `threadgroup!([[T; M]; N])` or `thread!` of it, of whose inner lengths one is of a const generic, and no part
/// of a type in Rust; `P` is what `[i]` gives.
#[derive(Clone, Copy)]
pub struct Nested<P> {
    memory: Memory,
    part: PhantomData<P>,
}

/// A row of such an array.
#[derive(Clone, Copy)]
pub struct Rows<P> {
    id: SpotId,
    part: PhantomData<P>,
}

impl<P: InRow> InRow for Rows<P> {
    fn lying(place: Place) -> Rows<P> {
        Rows {
            id: SpotId::of(place),
            part: PhantomData,
        }
    }
}

impl<P: InRow> IntoVal for Nested<P> {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

impl<P: InRow> Indexed for Nested<P> {
    type Part = P;

    fn part(self, index: Value) -> P {
        P::lying(Place::element(self.memory, index))
    }
}

impl<P: InRow> Indexed for Rows<P> {
    type Part = P;

    fn part(self, index: Value) -> P {
        let mut place = self.id.place();
        place.path.push(Step::Index(index));
        P::lying(place)
    }
}

impl<P: InRow> IndexedMut for Nested<P> {}
impl<P: InRow> IndexedMut for Rows<P> {}

/// What `[i] =` writes: a store out of bounds does nothing (B2).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    note = "a kernel writes `&mut [T]`, `threadgroup!` and `thread!` arrays"
)]
pub trait IndexedMut: Indexed {}

impl<T: Stored> IndexedMut for SliceMut<T> {}
impl<T: Stored> IndexedMut for ThreadgroupArray<T> {}
impl<T: Stored> IndexedMut for ThreadArray<T> {}
impl<T: Stored> IndexedMut for Imageblock<T> {}
impl<T: Stored, const N: usize> IndexedMut for Spot<[T; N]> {}

/// A place in memory, by its number in the kernel being defined.
#[derive(Clone, Copy)]
pub struct SpotId(u32);

impl SpotId {
    fn of(place: Place) -> SpotId {
        with(|k| {
            k.places.push(place);
            SpotId(k.places.len() as u32 - 1)
        })
    }

    fn place(self) -> Place {
        with(|k| k.places[self.0 as usize].clone())
    }

    /// A part of what lies there.
    fn step<T: Stored>(self, step: Step) -> Spot<T> {
        let mut place = self.place();
        place.path.push(step);
        Spot::of(place)
    }

    /// A field of the struct that lies there.
    #[doc(hidden)]
    pub fn field<T: Stored>(self, number: u32) -> Spot<T> {
        self.step(Step::Field(number))
    }
}

/// A place in memory that holds a `T`.
pub struct Spot<T: Stored> {
    id: SpotId,
    parts: T::At,
}

impl<T: Stored> Clone for Spot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Stored> Copy for Spot<T> {}

impl<T: Stored> Deref for Spot<T> {
    type Target = T::At;

    fn deref(&self) -> &T::At {
        &self.parts
    }
}

impl<T: Stored> Spot<T> {
    fn of(place: Place) -> Spot<T> {
        let id = SpotId::of(place);
        Spot {
            id,
            parts: T::at(id),
        }
    }

    pub(super) fn place(self) -> Place {
        self.id.place()
    }
}

macro_rules! components {
    ($($n:literal: $($name:ident $number:literal)*;)*) => {$(
        impl<T: Scalar> Elements<T, $n> {$(
            /// A component where it lies.
            pub fn $name(&self) -> Spot<T> {
                let number = with(|k| k.builder.const_u32($number));
                self.0.step(Step::Index(number))
            }
        )*}
    )*};
}
components! {
    2: x 0 y 1;
    3: x 0 y 1 z 2;
    4: x 0 y 1 z 2 w 3;
}

/// The number of each component that a swizzle's name names.
pub(super) fn numbers_of(name: &str) -> impl Iterator<Item = u32> {
    let number = |name: char| "xyzw".find(name).expect("a swizzle's name") as u32;
    name.chars().map(number)
}

/// Components of a vector where they lie, in any order: `x[i].zy`.
pub struct Components<T, const M: usize> {
    parts: [SpotId; M],
    component: PhantomData<T>,
}

impl<T, const M: usize> Clone for Components<T, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const M: usize> Copy for Components<T, M> {}

impl<T: Scalar, const M: usize> Components<T, M> {
    pub(super) fn of(whole: SpotId, name: &str) -> Self {
        let mut parts = [whole; M];
        for (part, number) in parts.iter_mut().zip(numbers_of(name)) {
            let number = with(|k| k.builder.const_u32(number));
            *part = whole.step::<T>(Step::Index(number)).id;
        }
        Components {
            parts,
            component: PhantomData,
        }
    }
}

impl<T: Stored, const N: usize> Elements<T, N> {
    /// How many elements the array has.
    pub fn len(&self) -> Val<u64> {
        (N as u64).into_val()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> Val<bool> {
        (N == 0).into_val()
    }
}

impl<T: Stored, const N: usize> Val<[T; N]> {
    /// How many elements it has.
    pub fn len(self) -> Val<u64> {
        (N as u64).into_val()
    }

    /// Whether it has none.
    pub fn is_empty(self) -> Val<bool> {
        (N == 0).into_val()
    }
}

/// What `let [x, y, z] = v;` takes apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have {N} components",
    note = "of a vector the pattern names all, `let [x, y, _] = v;`; a tuple is taken apart by `let (a, b) = t;`"
)]
pub trait ComponentsOf<const N: usize>: Copy {
    /// What has them: the type itself.
    type Whole;

    /// The same value.
    fn whole(self) -> Self::Whole;
}

impl<T: Stored, const N: usize> ComponentsOf<N> for Val<[T; N]> {
    type Whole = Self;

    fn whole(self) -> Self {
        self
    }
}

/// What is taken apart.
pub fn components<const N: usize, V: ComponentsOf<N>>(v: V) -> V::Whole {
    v.whole()
}

/// `&x[i]`: a place to load from.
pub struct PlaceRef<T: Stored>(pub(super) Spot<T>);

impl<T: Stored> Clone for PlaceRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Stored> Copy for PlaceRef<T> {}

/// `&mut x[i]`: a place for atomic operations.
pub struct PlaceMut<T: Stored>(pub(super) Spot<T>);

impl<T: Stored> Clone for PlaceMut<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Stored> Copy for PlaceMut<T> {}

impl<T: Stored> IntoVal for PlaceMut<T> {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

impl<T: Stored> IntoVal for PlaceRef<T> {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

/// A place that is read: `&x[i]`, or `&mut x[i]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a place in memory",
    note = "write `&x[i]`"
)]
pub trait InPlace: Copy {
    /// What lies there.
    type Element: Stored;

    /// The place.
    fn place(self) -> Place;
}

impl<T: Stored> InPlace for PlaceRef<T> {
    type Element = T;

    fn place(self) -> Place {
        self.0.place()
    }
}

impl<T: Stored> InPlace for PlaceMut<T> {
    type Element = T;

    fn place(self) -> Place {
        self.0.place()
    }
}

/// `array[index]`, to be read or for its parts.
pub fn part<A: Indexed>(array: A, index: impl Index) -> A::Part {
    array.part(index.index())
}

/// `array[index]`, to be written.
pub fn part_mut<A: IndexedMut>(array: A, index: impl Index) -> A::Part {
    array.part(index.index())
}

/// `array[index] = part`, for a variable that is a vector, a matrix or an array: nothing out of bounds (B4).
pub fn set_part<T: Stored, const N: usize>(
    array: &mut Val<[T; N]>,
    index: impl Index,
    part: Val<T>,
) {
    let index = index.index();
    if <[T; N]>::VALUE.is_some() {
        let whole = array.ssa();
        let mut parts = Vec::new();
        T::values(&part.repr, &mut parts);
        *array = Val::of(with(|k| k.builder.insert(whole, index, parts[0])));
        return;
    }
    let mut elements = elements::<T>(array.repr);
    match known(index, N) {
        Some(known) => elements[known] = part.repr,
        None => {
            let own = own_array::<T>(&elements);
            T::store(&Place::element(own, index), &part.repr);
            for (i, element) in (0u32..).zip(&mut elements) {
                let index = with(|k| k.builder.const_u32(i));
                *element = T::load(&Place::element(own, index));
            }
        }
    }
    *array = Val::from_repr(listed::<T>(&elements));
}

/// `&array[index]`.
pub fn place<T: Stored>(spot: Spot<T>) -> PlaceRef<T> {
    PlaceRef(spot)
}

/// `&mut array[index]`.
pub fn place_mut<T: Stored>(spot: Spot<T>) -> PlaceMut<T> {
    PlaceMut(spot)
}

/// What an expression with `[i]` gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of the kernel",
    label = "this is a row of an array",
    note = "of rows whose length is of a const generic take the elements: `x[i][j]`"
)]
pub trait Read {
    /// Its type.
    type Data: Data;

    /// Its value: 0 out of bounds (B1).
    fn read(self) -> Val<Self::Data>;
}

impl<T: Stored> Read for Spot<T> {
    type Data = T;

    fn read(self) -> Val<T> {
        Val::from_repr(T::load(&self.place()))
    }
}

impl<T: Scalar, const M: usize> Read for Components<T, M>
where
    [T; M]: Single,
{
    type Data = [T; M];

    fn read(self) -> Val<[T; M]> {
        vector(self.parts.map(|part| Spot::<T>::of(part.place()).read()))
    }
}

impl<T: Data> Read for Val<T> {
    type Data = T;

    fn read(self) -> Val<T> {
        self
    }
}

/// The value of a place, or of a part of a vector: 0 out of bounds (B1).
pub fn read<R: Read>(from: R) -> Val<R::Data> {
    from.read()
}

/// What `=` writes in memory: a place, or components of a vector that lies there.
pub trait Write: Copy {
    /// The type of its value.
    type Data: Data;

    /// Writes it; nothing out of bounds (B2).
    fn write(self, value: Val<Self::Data>);
}

impl<T: Stored> Write for Spot<T> {
    type Data = T;

    fn write(self, value: Val<T>) {
        T::store(&self.place(), &value.repr);
    }
}

impl<T: Scalar, const M: usize> Write for Components<T, M>
where
    [T; M]: Single,
{
    type Data = [T; M];

    fn write(self, value: Val<[T; M]>) {
        for (part, number) in self.parts.into_iter().zip(0..) {
            let index = with(|k| k.builder.const_u32(number));
            let component: Val<T> = Indexed::part(value, index);
            T::store(&part.place(), &component.repr);
        }
    }
}

/// `array[index] = value`; nothing out of bounds (B2).
pub fn write<W: Write>(to: W, value: Val<W::Data>) {
    to.write(value);
}

/// `N` elements from a place on, as a vector: 2 to 4.
///
/// ```compile_fail,E0080
/// use invar::prelude::*;
///
/// #[kernel]
/// fn of_five(x: &[f32], y: &mut [f32]) {
///     y[0] = load_vector::<5, _>(&x[0])[0];
/// }
///
/// let _ = of_five::to_inv();
/// ```
pub fn load_vector<const N: usize, P: InPlace>(place: P) -> Val<[P::Element; N]>
where
    P::Element: Scalar,
{
    const { assert!(2 <= N && N <= 4, "a vector has 2 to 4 components") };
    let place = Place {
        width: Width::Run(N as u8),
        ..place.place()
    };
    Val::from_repr(<[P::Element; N]>::load(&place))
}

/// Stores a vector's components from a place on.
pub fn store_vector<T: Scalar, const N: usize>(to: PlaceMut<T>, value: Val<[T; N]>) {
    const { assert!(2 <= N && N <= 4, "a vector has 2 to 4 components") };
    let place = Place {
        width: Width::Run(N as u8),
        ..to.0.place()
    };
    <[T; N]>::store(&place, &value.repr);
}

/// A parameter passed by value.
pub fn scalar<T: Single>(name: &str, place: Place4) -> Val<T> {
    at(place, ());
    Val::of(with(|k| k.builder.scalar(name, T::ty())))
}

/// A parameter `&[T]`.
pub fn slice<T: Stored>(name: &str, place: Place4) -> Slice<T> {
    at(place, ());
    let element = T::element();
    Slice::of(with(|k| k.builder.buffer(name, Access::Read, element)))
}

/// A parameter `&mut [T]`.
pub fn slice_mut<T: Stored>(name: &str, place: Place4) -> SliceMut<T> {
    SliceMut::of(slice::<T>(name, place).memory)
}

/// A parameter `&Constants<T>`.
pub fn constants<T: Stored>(name: &str, place: Place4) -> Constants<T> {
    at(place, ());
    let element = T::element();
    Constants::of(with(|k| k.builder.constant_buffer(name, element)))
}

/// A parameter `&mut ThreadgroupArray<T>`, whose length the launch gives.
pub fn threadgroup_param<T: Stored>(name: &str, place: Place4) -> ThreadgroupArray<T> {
    at(place, ());
    let element = T::element();
    ThreadgroupArray::of(with(|k| k.builder.threadgroup_param(name, element)))
}

/// How many elements an array of the kernel has: a Rust constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a length of an array in a kernel",
    note = "a length is a Rust constant, `u32` or `usize`; of a parameter `&mut ThreadgroupArray<T>` the launch gives it"
)]
pub trait Length {
    /// The number; none that is too large, or less than 0.
    fn length(self) -> Option<u32>;
}

macro_rules! lengths_of {
    ($($ty:ty),*) => {$(
        impl Length for $ty {
            fn length(self) -> Option<u32> {
                u32::try_from(self).ok()
            }
        }
    )*};
}
// Literals without a type are `i32`.
lengths_of!(i32, u32, usize);

/// The length of an array, or an error where it stands.
fn length(length: impl Length) -> u32 {
    length.length().unwrap_or_else(|| {
        with(|k| k.refuse("an array of a kernel has between 1 and 4294967295 elements"));
        1
    })
}

/// `threadgroup!([T; N])`.
pub fn threadgroup_array<T: Stored>(
    name: &str,
    count: impl Length,
    place: Place4,
) -> ThreadgroupArray<T> {
    at(place, ());
    let (element, count) = (T::element(), length(count));
    ThreadgroupArray::of(with(|k| k.builder.alloc_threadgroup(name, element, count)))
}

/// `thread!([T; N])`.
pub fn thread_array<T: Stored>(name: &str, count: impl Length, place: Place4) -> ThreadArray<T> {
    at(place, ());
    let (element, count) = (T::element(), length(count));
    ThreadArray::of(with(|k| k.builder.alloc_thread(name, element, count)))
}

/// `imageblock!(T)`, with the pixel formats that fields are stored in.
pub fn imageblock<T: Stored>(
    name: &str,
    formats: &[(&str, PixelFormat)],
    place: Place4,
) -> Imageblock<T> {
    at(place, ());
    let element = T::element();
    Imageblock::of(with(|k| k.builder.imageblock_of(name, element, formats)))
}

impl<T: Stored> Imageblock<T> {
    /// The number of the element at a column and a row; outside of the imageblock one that no element has.
    pub fn element(self, x: impl Index, y: impl Index) -> Val<u32> {
        let at = [x.index(), y.index()];
        Val::of(with(|k| k.builder.imageblock_element(self.memory, at)))
    }

    /// How many columns it has: those of the threadgroup.
    pub fn width(self) -> Val<u32> {
        Val::of(with(|k| k.builder.imageblock_width(self.memory)))
    }

    /// How many rows it has.
    pub fn height(self) -> Val<u32> {
        Val::of(with(|k| k.builder.imageblock_height(self.memory)))
    }

    /// How many samples a position has: 1.
    pub fn samples(self) -> Val<u32> {
        Val::of(with(|k| k.builder.imageblock_samples(self.memory)))
    }
}

/// One of the lengths of an array of arrays.
pub fn row_length(count: impl Length) -> u32 {
    length(count)
}

/// What a row of rows holds: these lengths are of the inner arrays, outermost first.
fn rows<T: Stored>(lengths: &[u32]) -> ElementType {
    let inner = lengths.iter().rev();
    inner.fold(T::element(), |of, length| {
        ElementType::Array(of.into(), *length)
    })
}

/// `threadgroup!([[T; M]; N])` with lengths of const generics, outermost first.
pub fn threadgroup_rows<T: Stored, P: InRow>(
    name: &str,
    lengths: &[u32],
    place: Place4,
) -> Nested<P> {
    at(place, ());
    let element = rows::<T>(&lengths[1..]);
    Nested {
        memory: with(|k| k.builder.alloc_threadgroup(name, element, lengths[0])),
        part: PhantomData,
    }
}

/// `thread!([[T; M]; N])` with lengths of const generics, outermost first.
pub fn thread_rows<T: Stored, P: InRow>(name: &str, lengths: &[u32], place: Place4) -> Nested<P> {
    at(place, ());
    let element = rows::<T>(&lengths[1..]);
    Nested {
        memory: with(|k| k.builder.alloc_thread(name, element, lengths[0])),
        part: PhantomData,
    }
}

/// `constant!(TABLE)`, or `TABLE` in `TABLE[i]`.
pub fn constant_table<T: Constant, const N: usize>(
    name: &str,
    table: [T; N],
    place: Place4,
) -> ConstantTable<T> {
    at(place, ());
    let element = T::element();
    let mut values = Vec::new();
    table.iter().for_each(|part| part.consts(&mut values));
    ConstantTable::of(with(|k| {
        let span: Span = k.builder.span();
        let all = &mut k.builder.module_mut().constants;
        let same = |c: &ConstantArray| c.element == element && c.values == values;
        if let Some(known) = all.iter().position(same) {
            return Memory::Constant(known as u32);
        }
        let taken = |name: &str| all.iter().any(|c| &*c.name == name);
        let numbered = (1..).map(|n| format!("{name}.{n}"));
        let name = std::iter::once(name.to_string())
            .chain(numbered)
            .find(|name| !taken(name))
            .unwrap_or_default();
        all.push(ConstantArray {
            name: name.into(),
            element,
            length: N as u32,
            values,
            span,
        });
        Memory::Constant(all.len() as u32 - 1)
    }))
}
