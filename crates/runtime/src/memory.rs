//! Memory of the host that devices work on: owned and zeroed, or lent.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::NonNull;

use invar_ir::Rule;

use crate::Error;
use crate::executor::executor;
use crate::pages::Pages;

/// Where owned memory begins is a multiple of this, so that vectors of any machine fit.
const ALIGN: usize = 64;

/// Where memory without bytes is: a slice needs an address that suits its elements, though it has none.
fn nowhere() -> NonNull<u8> {
    #[repr(align(64))]
    struct Aligned;
    const { assert!(align_of::<Aligned>() == ALIGN) };
    NonNull::<Aligned>::dangling().cast()
}

/// What is given back when a buffer ends.
enum Block {
    Allocated(NonNull<u8>, Layout),
    Mapped { _pages: Pages },
}

/// A buffer's memory on a device that has one of its own. The caller is in the order of dispatches and
/// host accesses (O3).
pub(crate) trait Resident: Any + Send + Sync {
    /// How its device is called.
    fn device_name(&self) -> &str;

    /// Brings to the host what only the device has.
    ///
    /// # Safety
    /// The memory at `host` is as large as the buffer; it is not written now, and not read by a caller that has
    /// not called this since a dispatch changed the buffer.
    ///
    /// # Errors
    /// A failure of the device.
    unsafe fn to_host(&self, host: *mut u8, size: usize) -> Result<(), Error>;

    /// The host has changed its memory, which had everything.
    fn changed_on_host(&self);
}

/// A range of bytes of the host.
pub(crate) struct Memory {
    start: NonNull<u8>,
    size: usize,
    /// The allocation to give back, if it is ours.
    owned: Option<Block>,
    writable: bool,
    /// The same on a device that has memory of its own, if the buffer is of such a one.
    resident: Option<Box<dyn Resident>>,
}

// SAFETY: it is only an address; who may access the bytes when is decided by the executor's order of
// dispatches and host accesses (O3), on whatever threads these run.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeros (I1). Large blocks come from the system untouched, so they cost no memory before they
    /// are used.
    pub(crate) fn zeroed(size: usize) -> Result<Memory, Error> {
        let missing = || {
            Error::new(
                Rule::OutOfMemory,
                format!("there is no memory for a buffer of {size} bytes"),
            )
        };
        let memory = |start, owned| Memory {
            start,
            size,
            owned,
            writable: true,
            resident: None,
        };
        if size == 0 {
            return Ok(memory(nowhere(), None));
        }
        if let Some((_pages, start)) = Pages::zeroed(size) {
            return Ok(memory(start, Some(Block::Mapped { _pages })));
        }
        // A request for more than the usual alignment would be zeroed byte by byte, so the
        // start is aligned here.
        let total = size.checked_add(ALIGN).ok_or_else(missing)?;
        let layout = Layout::from_size_align(total, 1).map_err(|_| missing())?;
        // SAFETY: the layout's size is not 0.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(missing)?;
        let skip = block.as_ptr().align_offset(ALIGN);
        // SAFETY: the block has `ALIGN` bytes more than `size`, and `skip` is less than `ALIGN`.
        let start = unsafe { block.add(skip) };
        Ok(memory(start, Some(Block::Allocated(block, layout))))
    }

    /// Memory of someone else.
    ///
    /// # Safety
    /// It must be valid for reads, and for writes if `writable`, until no buffer and no dispatch uses
    /// it; others must not touch it meanwhile, except to read it while nothing writes it.
    pub(crate) unsafe fn lent(start: *mut u8, size: usize, writable: bool) -> Memory {
        Memory {
            start: NonNull::new(start).unwrap_or_else(nowhere),
            size,
            owned: None,
            writable,
            resident: None,
        }
    }

    /// The same, with memory on a device that is zeros too.
    pub(crate) fn with_resident(mut self, resident: Option<Box<dyn Resident>>) -> Memory {
        self.resident = resident;
        self
    }

    /// The same on a device that has memory of its own, if the buffer is of such a one.
    pub(crate) fn resident(&self) -> Option<&dyn Resident> {
        self.resident.as_deref()
    }

    /// Brings here what only a device has, before the host reads it.
    ///
    /// # Safety
    /// For an access of the host or a dispatch in its order (O3).
    ///
    /// # Errors
    /// A failure of the device.
    pub(crate) unsafe fn to_host(&self) -> Result<(), Error> {
        if let Some(resident) = &self.resident {
            // SAFETY: the memory has that size; nothing else accesses what a dispatch has changed.
            unsafe { resident.to_host(self.start(), self.size) }?;
        }
        Ok(())
    }

    /// Notes that the host has changed it, after [`Memory::to_host`].
    pub(crate) fn changed_on_host(&self) {
        if let Some(resident) = &self.resident {
            resident.changed_on_host();
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn writable(&self) -> bool {
        self.writable
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.owned.is_some() {
            let start = self.start.as_ptr() as usize;
            executor().forget(&(start..start + self.size));
        }
        if let Some(Block::Allocated(block, layout)) = self.owned {
            // SAFETY: allocated in `zeroed` with this layout, and nothing uses it any more.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }
}
