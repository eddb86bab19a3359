//! A kernel compiled for dispatches of one shape.

use std::sync::Arc;

use super::bind_groups::BindingId;
use super::code::{Binding, Code};

/// A pipeline.
pub(crate) struct Variant {
    pub(crate) code: Code,
    /// The kernel's name.
    pub(crate) kernel: Arc<str>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    pub(crate) binding: BindingId,
    /// Buffers of program-scope constants, in the order of their bindings.
    pub(crate) contents: Vec<wgpu::Buffer>,
}

impl Variant {
    /// Whether its accesses are guarded.
    pub(crate) fn has_guards(&self) -> bool {
        self.code.has_guards()
    }

    /// Whether it says when the driver has ended a loop too early.
    pub(crate) fn is_watched(&self) -> bool {
        self.bindings.contains(&Binding::IterationGuard)
    }
}
