//! Buffers without a type: memory that kernels read and write, owned by the host (F1).
//!
//! Invariant: the host touches a buffer's memory only in the order of dispatches, so a read sees what
//! every dispatch submitted before it has written, and a dispatch submitted after a write sees that
//! (O3, F2). A buffer that is borrowed exclusively is in no dispatch that has yet to be submitted.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use invar_ir::{Rule, Scalar};
use invar_texture::TextureShape;

use crate::executor::executor;
use crate::memory::Memory;
use crate::uses::Use;
use crate::{Arg, Error};

/// A buffer of bytes, for elements whose type is not known here: structs, or what another language
/// passes.
pub struct ByteBuffer {
    memory: Arc<Memory>,
    pub(crate) holds: Option<Scalar>,
}

/// A part of a buffer, as an argument.
#[derive(Clone, Copy)]
pub struct BufferSlice<'a> {
    buffer: &'a ByteBuffer,
    start: usize,
    size: usize,
    /// What lies there, if it is a texture.
    texture: Option<TextureShape>,
}

impl BufferSlice<'_> {
    pub(crate) fn buffer(&self) -> &ByteBuffer {
        self.buffer
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size
    }

    pub(crate) fn start(&self) -> *mut u8 {
        // The slice lies within the memory, so the address does not wrap.
        self.buffer.memory.start().wrapping_add(self.start)
    }

    /// The format and size of the texture that lies there, if one does.
    pub(crate) fn texture(&self) -> Option<TextureShape> {
        self.texture
    }

    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.start() as usize;
        start..start + self.size
    }
}

impl fmt::Debug for BufferSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}..{}", self.start, self.start + self.size)
    }
}

impl ByteBuffer {
    /// All of some memory.
    pub(crate) fn of(memory: Memory) -> ByteBuffer {
        ByteBuffer {
            memory: Arc::new(memory),
            holds: None,
        }
    }

    /// Its size.
    pub fn size_bytes(&self) -> usize {
        self.memory.size()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn holds(&self) -> Option<Scalar> {
        self.holds
    }

    /// A part of it, as an argument of a dispatch.
    ///
    /// # Panics
    /// If the range does not lie within the buffer, as for a slice.
    pub fn slice(&self, bytes: impl RangeBounds<usize>) -> BufferSlice<'_> {
        let range = within(bytes, self.size_bytes());
        BufferSlice {
            buffer: self,
            start: range.start,
            size: range.len(),
            texture: None,
        }
    }

    /// All of it as a texture of that shape: an argument, which is refused if there are more bytes or fewer than
    /// the texture has.
    pub fn as_texture(&self, shape: TextureShape) -> Arg<'_> {
        Arg::Buffer(BufferSlice {
            texture: Some(shape),
            ..self.slice(..)
        })
    }

    /// A part of it as a texture of that shape, which it has room for.
    pub(crate) fn part_as_texture(&self, start: usize, shape: TextureShape) -> Arg<'_> {
        let end = start + shape.size_bytes() as usize;
        Arg::Buffer(BufferSlice {
            texture: Some(shape),
            ..self.slice(start..end)
        })
    }

    /// Waits until every dispatch submitted so far that uses it has ended.
    pub fn wait(&self) {
        executor().wait_for_range(self.addresses());
    }

    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.memory.start() as usize;
        start..start + self.memory.size()
    }

    /// Copies bytes from it, as the dispatches submitted so far leave them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not hold so many at that place; a failure of its device; a dispatch that may
    /// have written it failed without a report.
    pub fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Error> {
        let addresses = self.range(at, into.len())?;
        let start = self.memory.start().wrapping_add(at);
        let access = Use {
            addresses,
            writes: false,
        };
        executor().host_access(access, || {
            // SAFETY: this is an access of the host in its order.
            unsafe { self.memory.to_host() }?;
            // SAFETY: the range lies within the memory, which no dispatch writes now; `into` is
            // borrowed exclusively, so it lies elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(start, into.as_mut_ptr(), into.len()) };
            Ok(())
        })
    }

    /// Copies bytes to it; dispatches submitted afterwards see them.
    ///
    /// # Errors
    /// `invalid-argument` if it does not hold so many at that place, or its memory is read-only; a
    /// failure of its device; a dispatch that may have written it failed without a report, once.
    pub fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Error> {
        let addresses = self.range(at, from.len())?;
        if !self.memory.writable() {
            return Err(Error::new(
                Rule::InvalidArgument,
                "the buffer's memory was lent for reading only",
            ));
        }
        let start = self.memory.start().wrapping_add(at);
        let access = Use {
            addresses,
            writes: true,
        };
        executor().host_access(access, || {
            if from.len() < self.size_bytes() {
                // SAFETY: this is an access of the host in its order.
                unsafe { self.memory.to_host() }?;
            }
            // SAFETY: the range lies within the memory, which is writable and which nothing else
            // uses now; it may be where `from` lies only if the lender broke the promise.
            unsafe { std::ptr::copy(from.as_ptr(), start, from.len()) };
            self.memory.changed_on_host();
            Ok(())
        })
    }

    fn range(&self, at: usize, length: usize) -> Result<Range<usize>, Error> {
        let size = self.size_bytes();
        if at.checked_add(length).is_none_or(|end| end > size) {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!("{length} bytes from byte {at} do not lie within a buffer of {size} bytes"),
            ));
        }
        let start = self.memory.start() as usize + at;
        Ok(start..start + length)
    }
}

impl fmt::Debug for ByteBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer of {} bytes", self.size_bytes())
    }
}

/// A range as of a slice of that length.
pub(crate) fn within(range: impl RangeBounds<usize>, length: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(n) => *n,
        Bound::Excluded(n) => n.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(n) => n.saturating_add(1),
        Bound::Excluded(n) => *n,
        Bound::Unbounded => length,
    };
    assert!(
        start <= end && end <= length,
        "the range {start}..{end} does not lie within a buffer of {length}"
    );
    start..end
}
