//! Whether a driver has ended a loop too early.
//!
//! On a driver that does so ([`Features::ends_loops`](invar_codegen::wgsl::Features::ends_loops)) each
//! dispatch of a kernel with loops has [`ITERATION_GUARD`] of its own, in memory that its batch has alone. When the
//! batch has ended the host looks, and a dispatch whose first word is not 0 has failed.
//!
//! Invariant: memory is used again only when it holds what it held at first.

use std::sync::Arc;

use invar_codegen::wgsl::ITERATION_GUARD;

use super::bind_groups::BindingId;
use super::mapping::Mapping;
use crate::task::Task;

/// Dispatches of a batch.
pub(crate) const BATCH: usize = 64;

/// The bytes of a dispatch.
pub(crate) const ITERATION_GUARD_BYTES: u64 = ITERATION_GUARD.len() as u64 * 4;
/// Dispatches of a batch, at most: of queues, and of others. Should there be more, they share the last place
/// and fail together.
pub(super) const PLACES: usize = 2 * BATCH;

/// Memory for the dispatches of a batch.
pub(crate) struct IterationGuard {
    pub(crate) memory: wgpu::Buffer,
    pub(crate) binding: BindingId,
    pub(super) read: wgpu::Buffer,
    /// Bytes from one place to the next.
    pub(super) stride: u64,
}

/// What is watched of a batch.
pub(crate) struct Watch {
    pub(crate) guard: IterationGuard,
    pub(super) dispatches: Vec<Watched>,
}

/// A dispatch whose iterations are watched.
pub(super) struct Watched {
    pub(super) kernel: Arc<str>,
    /// Who fails with it; where no dispatch does, the next caller that asks the GPU is told.
    pub(super) task: Option<Arc<Task>>,
}

impl Watch {
    /// Begins to watch a dispatch; gives the place of its bytes.
    pub(crate) fn place(&mut self, kernel: &Arc<str>, task: Option<&Arc<Task>>) -> u32 {
        self.dispatches.push(Watched {
            kernel: kernel.clone(),
            task: task.cloned(),
        });
        place_of(self.dispatches.len() - 1) as u32 * self.guard.stride as u32
    }

    /// Whether a dispatch is not a task.
    pub(crate) fn has_unowned(&self) -> bool {
        self.dispatches.iter().any(|watched| watched.task.is_none())
    }

    /// Brings what the dispatches said to where it can be read.
    pub(crate) fn bring(&self, encoder: &mut wgpu::CommandEncoder) {
        let IterationGuard { memory, read, .. } = &self.guard;
        encoder.copy_buffer_to_buffer(memory, 0, read, 0, read.size());
    }

    /// Asks for what they said, when they were submitted.
    pub(crate) fn ask(&self) -> Mapping {
        Mapping::ask(&self.guard.read, self.guard.read.size())
    }
}

pub(super) fn place_of(dispatch: usize) -> usize {
    dispatch.min(PLACES - 1)
}
