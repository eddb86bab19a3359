//! A GPU as a device like the others: buffers lie in the host's memory, and each dispatch takes what it
//! reads to the GPU and brings back what it may have written.
//!
//! So a dispatch costs the way of its buffers there and back; who wants to leave them there uses
//! [`super::GpuBuffer`]. A GPU cannot be stopped: time limits do not reach it.

use invar_interp::Dispatch;
use invar_ir::ParamKind;

use super::{Gpu, GpuArg, GpuBuffer, GpuProgram};
use crate::Error;
use crate::checked::JobArg;

/// A dispatch on a GPU.
pub(crate) struct Job {
    pub(crate) gpu: Gpu,
    pub(crate) program: GpuProgram,
    pub(crate) dispatch: Dispatch,
    pub(crate) args: Vec<JobArg>,
}

impl Job {
    /// Runs it.
    pub(crate) fn run(&self) -> Result<(), Error> {
        let buffers = self
            .args
            .iter()
            .map(|arg| match arg {
                JobArg::Buffer(start, size) => {
                    let bytes = if *size == 0 {
                        &[]
                    } else {
                        // SAFETY: the work keeps the memory alive, and dispatches that write it come
                        // before or after this one.
                        unsafe { std::slice::from_raw_parts(*start, *size) }
                    };
                    self.gpu.buffer_from(bytes).map(Some)
                }
                JobArg::Scalar(_) | JobArg::ThreadgroupLength(_) => Ok(None),
            })
            .collect::<Result<Vec<Option<GpuBuffer>>, Error>>()?;
        let args: Vec<GpuArg<'_>> = self
            .args
            .iter()
            .zip(&buffers)
            .map(|(arg, buffer)| match (arg, buffer) {
                (JobArg::Scalar(components), _) => GpuArg::Scalar(components),
                (JobArg::ThreadgroupLength(length), _) => GpuArg::ThreadgroupLength(*length),
                (JobArg::Buffer(..), Some(buffer)) => GpuArg::Buffer(buffer),
                (JobArg::Buffer(..), None) => unreachable!("every buffer was taken there"),
            })
            .collect();
        self.gpu.dispatch(&self.program, self.dispatch, &args)?;
        self.gpu.wait()?;
        let params = &self.program.kernel().params;
        for ((param, arg), buffer) in params.iter().zip(&self.args).zip(&buffers) {
            if let (ParamKind::Buffer { access, .. }, JobArg::Buffer(start, size), Some(buffer)) =
                (&param.kind, arg, buffer)
                && access.can_write()
                && *size > 0
            {
                let bytes = buffer.read()?;
                // SAFETY: the work keeps the memory alive; it is writable, for that was checked of the
                // argument, and no other dispatch uses it now. It has as many bytes as were taken.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *start, *size) };
            }
        }
        Ok(())
    }
}
