//! Parameters and arrays of a kernel, and the places in them.

use std::marker::PhantomData;

use invar_ir::{Memory, Place, ScalarLiteral};

use super::define::{Place4, at, with};
use super::value::{Index, IntoVal, Number, Scalar, Val, type_of};

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

            /// How many elements it has: of a buffer as many as are bound.
            pub fn len(self) -> Val<u64> {
                Val::of(with(|k| k.builder.buffer_length(self.memory)))
            }
        }

        impl<T: Number> IntoVal for $name<T> {
            type Val = Self;

            fn into_val(self) -> Self {
                self
            }
        }

        impl<T: Number> Indexed for $name<T> {
            type Element = T;

            fn memory(self) -> Memory {
                self.memory
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
    /// `threadgroup!([T; N])`: an array that the threads of a threadgroup share, of zeros at first (I2).
    ThreadgroupArray;
    /// `thread!([T; N])`: an array of the thread's own, of zeros at first (I3).
    ThreadArray;
}

/// What `[i]` reads: a load out of bounds gives 0 (B1).
#[diagnostic::on_unimplemented(message = "`{Self}` is no array of the kernel")]
pub trait Indexed: Copy {
    /// Its elements.
    type Element: Number;

    /// The memory object.
    fn memory(self) -> Memory;
}

/// What `[i] =` writes: a store out of bounds does nothing (B2).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    note = "a kernel writes `&mut [T]`, `threadgroup!` and `thread!` arrays"
)]
pub trait IndexedMut: Indexed {}

impl<T: Number> IndexedMut for SliceMut<T> {}
impl<T: Number> IndexedMut for ThreadgroupArray<T> {}
impl<T: Number> IndexedMut for ThreadArray<T> {}

/// `&x[i]`: a place to load from.
#[derive(Clone, Copy)]
pub struct PlaceRef<T>(pub(super) PlaceMut<T>);

/// `&mut x[i]`: a place for atomic operations.
pub struct PlaceMut<T> {
    pub(super) memory: Memory,
    pub(super) index: invar_ir::Value,
    element: PhantomData<T>,
}

impl<T> Clone for PlaceMut<T> {
    fn clone(&self) -> PlaceMut<T> {
        *self
    }
}

impl<T> Copy for PlaceMut<T> {}

impl<T> PlaceMut<T> {
    pub(super) fn place(self) -> Place {
        Place::element(self.memory, self.index)
    }
}

impl<T: Number> IntoVal for PlaceMut<T> {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

impl<T: Number> IntoVal for PlaceRef<T> {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

/// `&array[index]`.
pub fn place<A: Indexed>(array: A, index: impl Index) -> PlaceRef<A::Element> {
    PlaceRef(PlaceMut {
        memory: array.memory(),
        index: index.index(),
        element: PhantomData,
    })
}

/// `&mut array[index]`.
pub fn place_mut<A: IndexedMut>(array: A, index: impl Index) -> PlaceMut<A::Element> {
    place(array, index).0
}

/// `array[index]`: 0 out of bounds (B1).
pub fn load<A: Indexed>(array: A, index: impl Index) -> Val<A::Element> {
    let place = place(array, index).0;
    Val::of(with(|k| {
        k.uses(place.memory, true, false);
        k.builder.load(place.place())
    }))
}

/// The value of a place that is being changed.
pub fn current<T: Number>(place: PlaceMut<T>) -> Val<T> {
    Val::of(with(|k| {
        k.uses(place.memory, true, false);
        k.builder.load(place.place())
    }))
}

/// `array[index] = value`; nothing out of bounds (B2).
pub fn store<T: Number>(place: PlaceMut<T>, value: Val<T>) {
    with(|k| {
        k.uses(place.memory, false, true);
        k.builder.store(place.place(), value.value);
    });
}

/// A parameter passed by value.
pub fn scalar<T: Scalar>(name: &str, place: Place4) -> Val<T> {
    at(place, ());
    Val::of(with(|k| k.builder.scalar(name, type_of::<T>())))
}

/// A parameter `&[T]`.
pub fn slice<T: Number>(name: &str, place: Place4) -> Slice<T> {
    at(place, ());
    let scalar = <T as ScalarLiteral>::SCALAR;
    Slice::of(with(|k| {
        k.builder.buffer(name, invar_ir::Access::Read, scalar)
    }))
}

/// A parameter `&mut [T]`.
pub fn slice_mut<T: Number>(name: &str, place: Place4) -> SliceMut<T> {
    SliceMut::of(slice::<T>(name, place).memory)
}

/// A parameter `&Constants<T>`.
pub fn constants<T: Number>(name: &str, place: Place4) -> Constants<T> {
    at(place, ());
    let scalar = <T as ScalarLiteral>::SCALAR;
    Constants::of(with(|k| k.builder.constant_buffer(name, scalar)))
}

/// `threadgroup!([T; N])`.
pub fn threadgroup_array<T: Number>(name: &str, length: u32, place: Place4) -> ThreadgroupArray<T> {
    at(place, ());
    let scalar = <T as ScalarLiteral>::SCALAR;
    ThreadgroupArray::of(with(|k| k.builder.alloc_threadgroup(name, scalar, length)))
}

/// `thread!([T; N])`.
pub fn thread_array<T: Number>(name: &str, length: u32, place: Place4) -> ThreadArray<T> {
    at(place, ());
    let scalar = <T as ScalarLiteral>::SCALAR;
    ThreadArray::of(with(|k| k.builder.alloc_thread(name, scalar, length)))
}
