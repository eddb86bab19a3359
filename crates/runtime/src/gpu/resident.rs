//! Buffers of a GPU device: they stay on the GPU between dispatches, and come to the host when it looks.
//!
//! Such a buffer has memory on both sides. A dispatch takes it there if the host has changed it, and the
//! host takes it back if a dispatch has. What is only zeros is never moved.
//!
//! Invariant: the caller is in the order of dispatches and host accesses (O3), so of two calls at
//! the same time none follows a change that the other makes.

use std::sync::{Arc, Mutex};

use super::buffer::GpuBuffer;
use super::handle::Gpu;
use crate::Error;
use crate::memory;
use crate::sync::lock;

/// Where the contents of a buffer are.
pub(crate) struct Resident {
    gpu: Gpu,
    state: Mutex<State>,
}

struct State {
    /// Made when a dispatch first needs it.
    there: Option<Arc<GpuBuffer>>,
    dirty: Dirty,
}

/// Which side was written since the other was brought up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dirty {
    Neither,
    Host,
    Gpu,
}

impl Resident {
    /// Zeros on both sides.
    pub(crate) fn zeroed(gpu: &Gpu) -> Resident {
        Resident {
            gpu: gpu.clone(),
            state: Mutex::new(State {
                there: None,
                dirty: Dirty::Neither,
            }),
        }
    }

    pub(crate) fn is_on(&self, gpu: &Gpu) -> bool {
        self.gpu.is(gpu)
    }

    /// The buffer on the GPU, with what the host has.
    pub(crate) fn on_gpu(&self, host: &[u8]) -> Result<Arc<GpuBuffer>, Error> {
        let mut state = lock(&self.state);
        let there = match &state.there {
            Some(there) => there.clone(),
            None => Arc::new(self.gpu.buffer(host.len() as u64)?),
        };
        state.there = Some(there.clone());
        if state.dirty == Dirty::Host {
            there.write(host)?;
            state.dirty = Dirty::Neither;
        }
        Ok(there)
    }

    /// A dispatch may have changed the buffer on the GPU.
    pub(crate) fn changed_on_gpu(&self) {
        lock(&self.state).dirty = Dirty::Gpu;
    }
}

impl memory::Resident for Resident {
    fn device_name(&self) -> &str {
        &self.gpu.capabilities().name
    }

    fn changed_on_host(&self) {
        lock(&self.state).dirty = Dirty::Host;
    }

    unsafe fn to_host(&self, host: *mut u8, size: usize) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if let (Dirty::Gpu, Some(there)) = (state.dirty, &state.there)
            && size > 0
        {
            // SAFETY: the caller vouches for it.
            there.read_into(unsafe { std::slice::from_raw_parts_mut(host, size) })?;
            state.dirty = Dirty::Neither;
        }
        Ok(())
    }
}
