//! Buffers of devices: of bytes, of numbers, and arrays that are lent to dispatches for a while.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range, RangeBounds};

use half::{bf16, f16};
use invar_ir::{Rule, Scalar};

use crate::bytes::{BufferSlice, ByteBuffer, within};
use crate::executor::executor;
use crate::memory::Memory;
use crate::sync::lock;
use crate::{Arg, Device, Error};

/// What a [`Buffer`] holds: a number, an array of numbers for vectors and matrices, or a struct of those.
///
/// # Safety
/// Any bytes make a value, and a value is numbers and nothing else, as they lie in memory (L3): there
/// are not bytes between them. If there is a `SCALAR`, all are of that type.
#[diagnostic::on_unimplemented(
    message = "buffers do not hold `{Self}`",
    note = "they hold numbers, `u8` for truth values, arrays of numbers, and structs of those; a type parameter of a \
            kernel says so by `T: Number`"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// What it is made of; none for numbers of several types.
    const SCALAR: Option<Scalar>;
}

macro_rules! elements {
    ($($ty:ty => $scalar:ident),*) => {
        $(
            // SAFETY: a primitive number of that type and size; any bits are a value.
            unsafe impl Element for $ty {
                const SCALAR: Option<Scalar> = Some(Scalar::$scalar);
            }
        )*
    };
}
elements!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64
);

// SAFETY: an array is its elements one after another.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const SCALAR: Option<Scalar> = T::SCALAR;
}

impl ByteBuffer {
    /// Zeros (I1).
    ///
    /// # Errors
    /// `out-of-memory`.
    pub fn zeroed(device: &Device, size_bytes: usize) -> Result<ByteBuffer, Error> {
        let limit = device.capabilities().buffer_bytes;
        if size_bytes as u64 > limit {
            return Err(Error::new(
                Rule::OutOfMemory,
                format!(
                    "a buffer of {size_bytes} bytes is larger than the {limit} that device `{}` allows",
                    device.capabilities().name
                ),
            ));
        }
        let memory = Memory::zeroed(size_bytes)?;
        let there = device.backend().resident();
        Ok(ByteBuffer::of(memory.with_resident(there)))
    }

    /// A buffer in memory that someone else owns, used in place.
    ///
    /// # Safety
    /// The memory must be valid for reads of `size_bytes` bytes, and for writes if `writable`, until
    /// this buffer is dropped and every dispatch that uses it has ended ([`ByteBuffer::wait`]
    /// waits for that). Meanwhile it may not be written by other means, and where a dispatch writes it
    /// it may not be read before that has ended (F2).
    pub unsafe fn from_raw(
        device: &Device,
        start: *mut u8,
        size_bytes: usize,
        writable: bool,
    ) -> Result<ByteBuffer, Error> {
        if start.is_null() && size_bytes > 0 {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "memory lent to device `{}` begins at a null pointer",
                    device.capabilities().name
                ),
            ));
        }
        // SAFETY: the caller vouches for it.
        let memory = unsafe { Memory::lent(start, size_bytes, writable) };
        Ok(ByteBuffer::of(memory))
    }
}

impl Device {
    /// A buffer with the elements of a slice: [`Buffer::from_slice`].
    ///
    /// # Errors
    /// As there.
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, Error> {
        Buffer::from_slice(self, data)
    }

    /// A buffer of zeros (I1): [`Buffer::zeroed`].
    ///
    /// # Errors
    /// As there.
    pub fn buffer_zeroed<T: Element>(&self, length: usize) -> Result<Buffer<T>, Error> {
        Buffer::zeroed(self, length)
    }
}

/// A buffer of numbers.
///
/// ```
/// use invar_runtime::{Buffer, Device};
///
/// let device = Device::checked();
/// let mut x = Buffer::<f32>::zeroed(&device, 3)?;
/// x.write(1, &[2.5])?;
/// assert_eq!(x.read()?, [0.0, 2.5, 0.0]);
/// x.as_mut_slice()?[0] = 1.0;
/// assert_eq!(x.as_slice()?, [1.0, 2.5, 0.0]);
/// # Ok::<(), invar_runtime::Error>(())
/// ```
pub struct Buffer<T> {
    bytes: ByteBuffer,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Zeros (I1).
    ///
    /// # Errors
    /// `out-of-memory`.
    pub fn zeroed(device: &Device, length: usize) -> Result<Buffer<T>, Error> {
        let size = length.checked_mul(size_of::<T>()).ok_or_else(|| {
            Error::new(
                Rule::OutOfMemory,
                format!("{length} elements have more bytes than there are addresses"),
            )
        })?;
        Ok(Buffer::new(ByteBuffer::zeroed(device, size)?))
    }

    /// A copy of a slice.
    ///
    /// # Errors
    /// `out-of-memory`.
    pub fn from_slice(device: &Device, data: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::zeroed(device, data.len())?;
        buffer.write(0, data)?;
        Ok(buffer)
    }

    /// A buffer in memory that someone else owns, used in place.
    ///
    /// # Safety
    /// As [`ByteBuffer::from_raw`].
    ///
    /// # Errors
    /// `invalid-argument` if the address does not suit the elements.
    pub unsafe fn from_raw(
        device: &Device,
        start: *mut T,
        length: usize,
        writable: bool,
    ) -> Result<Buffer<T>, Error> {
        if !start.is_aligned() {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "memory lent for elements of `{}` begins at an address that is not a multiple of {}",
                    std::any::type_name::<T>(),
                    align_of::<T>()
                ),
            ));
        }
        let size = length.saturating_mul(size_of::<T>());
        // SAFETY: the caller vouches for it.
        unsafe { ByteBuffer::from_raw(device, start.cast(), size, writable) }.map(Buffer::new)
    }

    fn new(mut bytes: ByteBuffer) -> Buffer<T> {
        bytes.holds = T::SCALAR;
        Buffer {
            bytes,
            elements: PhantomData,
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match size_of::<T>() {
            0 => 0,
            size => self.bytes.size_bytes() / size,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same without the type.
    pub fn bytes(&self) -> &ByteBuffer {
        &self.bytes
    }

    /// A part of it, as an argument of a dispatch.
    ///
    /// # Panics
    /// If the range does not lie within the buffer, as for a slice.
    pub fn slice(&self, elements: impl RangeBounds<usize>) -> BufferSlice<'_> {
        let range = within(elements, self.len());
        let size = size_of::<T>();
        self.bytes.slice(range.start * size..range.end * size)
    }

    /// Its contents, as the dispatches submitted so far leave them.
    ///
    /// # Errors
    /// The device was lost; a dispatch that may have written it failed without a report.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut out: Vec<T> = Vec::with_capacity(self.len());
        let start = out.as_mut_ptr().cast::<u8>();
        let size = self.len() * size_of::<T>();
        // SAFETY: the vector has room for so many bytes; they are zeroed before they are seen as
        // bytes, and any bytes make elements.
        unsafe {
            start.write_bytes(0, size);
            self.bytes
                .read_bytes(0, std::slice::from_raw_parts_mut(start, size))?;
            out.set_len(self.len());
        }
        Ok(out)
    }

    /// Copies elements from it, beginning with element `at`, as the dispatches submitted so far leave
    /// them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not have so many.
    pub fn read_into(&self, at: usize, into: &mut [T]) -> Result<(), Error> {
        // SAFETY: elements are plain bytes, and any bytes make elements.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(into.as_mut_ptr().cast::<u8>(), size_of_val(into))
        };
        self.bytes
            .read_bytes(at.saturating_mul(size_of::<T>()), bytes)
    }

    /// Copies elements to it, beginning with element `at`; dispatches submitted afterwards see them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not have so many, or its memory is read-only.
    pub fn write(&self, at: usize, from: &[T]) -> Result<(), Error> {
        // SAFETY: elements are plain bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<u8>(), size_of_val(from)) };
        self.bytes
            .write_bytes(at.saturating_mul(size_of::<T>()), bytes)
    }

    /// Its contents in place, once every dispatch that uses it has ended.
    ///
    /// # Errors
    /// The device was lost; a dispatch that may have written it failed without a report.
    pub fn as_slice(&mut self) -> Result<&[T], Error> {
        executor().wait_for_host(self.bytes.addresses())?;
        // SAFETY: no dispatch uses it now.
        unsafe { self.bytes.memory().to_host() }?;
        let start = self.bytes.memory().start().cast::<T>();
        // SAFETY: the memory holds so many elements, is aligned for them, and no dispatch uses it
        // now nor can one be submitted while this buffer is borrowed exclusively.
        Ok(unsafe { std::slice::from_raw_parts(start, self.len()) })
    }

    /// Its contents in place, once every dispatch that uses it has ended.
    ///
    /// # Errors
    /// `invalid-argument` if its memory is read-only.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        if !self.bytes.memory().writable() {
            return Err(Error::new(
                Rule::InvalidArgument,
                "the buffer's memory was lent for reading only",
            ));
        }
        executor().wait_for_host(self.bytes.addresses())?;
        // SAFETY: no dispatch uses it now.
        unsafe { self.bytes.memory().to_host() }?;
        self.bytes.memory().changed_on_host();
        let start = self.bytes.memory().start().cast::<T>();
        // SAFETY: as in `as_slice`, and the memory is writable.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.len()) })
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a Buffer<T>) -> Arg<'a> {
        Arg::from(buffer.bytes())
    }
}

impl<T: Element> From<Buffer<T>> for ByteBuffer {
    /// The same memory, as elements of no type in particular.
    fn from(buffer: Buffer<T>) -> ByteBuffer {
        let mut bytes = buffer.bytes;
        bytes.holds = None;
        bytes
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer of {} {}", self.len(), std::any::type_name::<T>())
    }
}

/// Where a thread's own arrays are lent to dispatches. See [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    lent: std::sync::Mutex<Vec<Range<usize>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A buffer in borrowed memory, for the length of a scope.
#[derive(Debug)]
pub struct ScopedBuffer<'scope, T: Element> {
    buffer: Buffer<T>,
    scope: PhantomData<&'scope ()>,
}

impl<T: Element> Deref for ScopedBuffer<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<'a, T: Element> From<&'a ScopedBuffer<'_, T>> for Arg<'a> {
    fn from(scoped: &'a ScopedBuffer<'_, T>) -> Arg<'a> {
        Arg::from(&scoped.buffer)
    }
}

/// Lends arrays to dispatches without copying them: when the scope ends, every dispatch that uses
/// them has ended (F2). Why one has failed is told by its submission: wait for it in the scope, for behind it
/// arrays are read as they are.
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_runtime::{Arg, Device, Dispatch, scope};
///
/// let source = "
///     kernel @double(%x: device read_write f32) {
///         %i = thread_position_in_grid x
///         %v = load %x[%i]
///         %twice = add %v, %v
///         store %x[%i], %twice
///     }";
/// let device = Device::checked();
/// let program = device.compile(&verify(text::parse("double.inv", source)?)?, "double")?;
/// let mut numbers = [1.0f32, 2.0, 3.0];
/// scope(|scope| {
///     let x = scope.lend(&device, &mut numbers)?;
///     device.queue().run(&program, Dispatch::linear(3, 32), &[Arg::from(&x)])?;
///     Ok::<(), invar_runtime::Error>(())
/// })?;
/// assert_eq!(numbers, [2.0, 4.0, 6.0]);
/// # Ok::<(), invar_runtime::Error>(())
/// ```
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    struct WaitAtEnd<'a>(&'a std::sync::Mutex<Vec<Range<usize>>>);
    impl Drop for WaitAtEnd<'_> {
        fn drop(&mut self) {
            for range in lock(self.0).drain(..) {
                executor().wait_for_range(range);
            }
        }
    }
    let scope = Scope {
        lent: std::sync::Mutex::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    let _wait = WaitAtEnd(&scope.lent);
    f(&scope)
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Lends an array that kernels may write.
    ///
    /// # Errors
    /// `invalid-argument`, never for an array of elements that Rust aligns.
    pub fn lend<T: Element>(
        &'scope self,
        device: &Device,
        data: &'env mut [T],
    ) -> Result<ScopedBuffer<'scope, T>, Error> {
        self.enter(device, data.as_mut_ptr(), data.len(), true)
    }

    /// Lends an array that kernels only read; the same may be lent several times.
    ///
    /// # Errors
    /// As [`Scope::lend`].
    pub fn lend_read<T: Element>(
        &'scope self,
        device: &Device,
        data: &'env [T],
    ) -> Result<ScopedBuffer<'scope, T>, Error> {
        self.enter(device, data.as_ptr().cast_mut(), data.len(), false)
    }

    fn enter<T: Element>(
        &'scope self,
        device: &Device,
        start: *mut T,
        length: usize,
        writable: bool,
    ) -> Result<ScopedBuffer<'scope, T>, Error> {
        // SAFETY: the array is borrowed for longer than the scope, which waits at its end for every
        // dispatch that uses it, also when it panics; the buffer does not leave the scope.
        let buffer = unsafe { Buffer::from_raw(device, start, length, writable) }?;
        lock(&self.lent).push(buffer.bytes.addresses());
        Ok(ScopedBuffer {
            buffer,
            scope: PhantomData,
        })
    }
}
