//! Parameters and arrays of a kernel, and the places in them.

use std::marker::PhantomData;
use std::ops::Deref;

use invar_ir::{Access, ConstantArray, Memory, Place, Span, Step, Value, Width};

use super::data::{Constant, Data, Elements, Scalar, Single, Stored, Val};
use super::define::{Place4, at, with};
use super::value::{Index, IntoVal};

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

macro_rules! lengths {
    ($($name:ident),*) => {$(
        impl<T: Stored> $name<T> {
            /// How many elements it has: as many as are bound.
            pub fn len(self) -> Val<u64> {
                Val::of(with(|k| k.builder.buffer_length(self.memory)))
            }
        }
    )*};
}
lengths!(Slice, SliceMut, Constants, ThreadgroupArray);

/// An array in memory.
pub trait InMemory: Copy {
    /// Its elements.
    type Element: Stored;

    /// The memory object.
    fn memory(self) -> Memory;
}

/// What `[i]` takes a part of: an array in memory, where a load out of bounds gives 0 (B1), or a vector or
/// matrix.
#[diagnostic::on_unimplemented(message = "`{Self}` is no array of the kernel")]
pub trait Indexed: Copy {
    /// An element in its place, or a component.
    type Part;

    /// The part at an index.
    fn part(self, index: Value) -> Self::Part;
}

impl<T: Stored + Single, const N: usize> Indexed for Val<[T; N]> {
    type Part = Val<T>;

    fn part(self, index: Value) -> Val<T> {
        Val::of(with(|k| k.builder.extract(self.ssa(), index)))
    }
}

impl<T: Stored, const N: usize> Indexed for Spot<[T; N]> {
    type Part = Spot<T>;

    fn part(self, index: Value) -> Spot<T> {
        self.id.step(Step::Index(index))
    }
}

/// What `[i] =` writes: a store out of bounds does nothing (B2).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    note = "a kernel writes `&mut [T]`, `threadgroup!` and `thread!` arrays"
)]
pub trait IndexedMut: Indexed {}

impl<T: Stored> IndexedMut for SliceMut<T> {}
impl<T: Stored> IndexedMut for ThreadgroupArray<T> {}
impl<T: Stored> IndexedMut for ThreadArray<T> {}
impl<T: Stored, const N: usize> IndexedMut for Spot<[T; N]> {}

/// A place in memory, by its number in the kernel being defined.
#[derive(Clone, Copy)]
pub struct SpotId(u32);

impl SpotId {
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
        let id = with(|k| {
            k.places.push(place);
            SpotId(k.places.len() as u32 - 1)
        });
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

/// `&x[i]`: a place to load from.
#[derive(Clone, Copy)]
pub struct PlaceRef<T: Stored>(pub(super) Spot<T>);

/// `&mut x[i]`: a place for atomic operations.
#[derive(Clone, Copy)]
pub struct PlaceMut<T: Stored>(pub(super) Spot<T>);

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
#[diagnostic::on_unimplemented(message = "`{Self}` is no place in memory", note = "write `&x[i]`")]
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

/// `vector[index] = part`, for a variable: nothing out of bounds (B4).
pub fn set_part<T: Stored + Single, const N: usize>(
    vector: &mut Val<[T; N]>,
    index: impl Index,
    part: Val<T>,
) {
    let (whole, index) = (vector.ssa(), index.index());
    *vector = Val::of(with(|k| k.builder.insert(whole, index, part.ssa())));
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
pub trait Read {
    /// Its type.
    type Data: Data;

    /// Its value: 0 out of bounds (B1).
    fn read(self) -> Val<Self::Data>;
}

impl<T: Stored> Read for Spot<T> {
    type Data = T;

    fn read(self) -> Val<T> {
        Val(T::load(&self.place()))
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

/// `array[index] = value`; nothing out of bounds (B2).
pub fn write<T: Stored>(to: Spot<T>, value: Val<T>) {
    T::store(&to.place(), &value.0);
}

/// `N` elements from a place on, as a vector.
pub fn load_vector<const N: usize, P: InPlace>(place: P) -> Val<[P::Element; N]>
where
    P::Element: Scalar,
{
    let place = Place {
        width: Width::Run(N.min(255) as u8),
        ..place.place()
    };
    Val(<[P::Element; N]>::load(&place))
}

/// Stores a vector's components from a place on.
pub fn store_vector<T: Scalar, const N: usize>(to: PlaceMut<T>, value: Val<[T; N]>) {
    let place = Place {
        width: Width::Run(N.min(255) as u8),
        ..to.0.place()
    };
    <[T; N]>::store(&place, &value.0);
}

/// A parameter passed by value.
pub fn scalar<T: Single>(name: &str, place: Place4) -> Val<T> {
    at(place, ());
    Val::of(with(|k| k.builder.scalar(name, T::ty())))
}

/// What a launch has to fulfil (S5).
pub fn requires(text: &str, place: Place4) {
    at(place, ());
    with(|k| k.builder.requires(text));
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
    message = "`{Self}` is no length of an array in a kernel",
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
