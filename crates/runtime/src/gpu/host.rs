//! A GPU as a device like the others.
//!
//! A buffer of the device stays on the GPU ([`Resident`](super::Resident)); memory of the host, and a part
//! of a buffer, is taken there by each dispatch, which brings back what it may have written. A dispatch that
//! takes nothing there goes in line ([`line`](super::line)) behind the others; one that does, or whose time
//! is limited, has a thread that waits for it. A GPU cannot be stopped: a dispatch that is cancelled or over
//! its time goes on there, and nothing of it comes back.

use std::sync::Arc;

use invar_interp::Dispatch;
use invar_ir::ParamKind;

use super::{Gpu, GpuArg, GpuBuffer, GpuProgram};
use crate::checked::JobArg;
use crate::memory::Memory;
use crate::task::Task;
use crate::{Arg, Error};

/// A dispatch on a GPU.
pub(crate) struct Job {
    pub(crate) gpu: Gpu,
    pub(crate) program: GpuProgram,
    pub(crate) dispatch: Dispatch,
    pub(crate) args: Vec<HostArg>,
}

/// An argument of it, and the memory that it is, or is a part of.
pub(crate) struct HostArg {
    arg: JobArg,
    memory: Option<Arc<Memory>>,
}

impl HostArg {
    pub(crate) fn of(arg: &Arg<'_>) -> HostArg {
        let memory = match arg {
            Arg::Buffer(part) => Some(part.buffer().memory().clone()),
            Arg::Scalar(_) | Arg::ThreadgroupLength(_) => None,
        };
        HostArg {
            arg: JobArg::of(arg),
            memory,
        }
    }

    /// The memory, where it is the whole buffer of a GPU.
    fn resident(&self) -> Option<&super::Resident> {
        let memory = self.memory.as_ref()?;
        match self.arg {
            JobArg::Buffer(_, size) if size == memory.size() => memory.on_gpu(),
            JobArg::Buffer(..) | JobArg::Scalar(_) | JobArg::ThreadgroupLength(_) => None,
        }
    }

    /// The buffer on the GPU that it is, if it is one.
    fn buffer(&self, gpu: &Gpu) -> Result<Option<Arc<GpuBuffer>>, Error> {
        let JobArg::Buffer(start, size) = self.arg else {
            return Ok(None);
        };
        let bytes = || match size {
            0 => &[],
            // SAFETY: the work keeps the memory alive, and dispatches that write it come before or after
            // this one.
            _ => unsafe { std::slice::from_raw_parts(start, size) },
        };
        if let Some(resident) = self.resident() {
            return resident.on_gpu(bytes()).map(Some);
        }
        if let Some(memory) = &self.memory {
            // SAFETY: the dispatch has its place in the order.
            unsafe { memory.to_host() }?;
        }
        gpu.buffer_from(bytes())
            .map(|buffer| Some(Arc::new(buffer)))
    }

    /// Brings back what a dispatch wrote.
    fn bring_back(&self, buffer: &GpuBuffer) -> Result<(), Error> {
        if let (JobArg::Buffer(start, size @ 1..), None) = (&self.arg, self.resident()) {
            // SAFETY: the work keeps the memory alive; it is writable, for that was checked of the
            // argument, and no other dispatch uses it now.
            buffer.read_into(unsafe { std::slice::from_raw_parts_mut(*start, *size) })?;
            if let Some(memory) = &self.memory {
                memory.changed_on_host();
            }
        }
        Ok(())
    }
}

impl Job {
    /// Whether all that it uses stays on the GPU.
    pub(crate) fn stays_there(&self) -> bool {
        self.args.iter().all(|arg| match arg.arg {
            JobArg::Buffer(_, 0) | JobArg::Scalar(_) | JobArg::ThreadgroupLength(_) => true,
            JobArg::Buffer(..) => arg.resident().is_some(),
        })
    }

    /// Runs it, unless the task is asked to stop before it has ended. Of a task in line this only records
    /// it.
    pub(crate) fn run(&self, task: &Arc<Task>) -> Result<(), Error> {
        let buffers = self.args.iter().map(|arg| arg.buffer(&self.gpu));
        let buffers = buffers.collect::<Result<Vec<Option<Arc<GpuBuffer>>>, Error>>()?;
        let args: Vec<GpuArg<'_>> = self
            .args
            .iter()
            .zip(&buffers)
            .map(|(arg, buffer)| match (&arg.arg, buffer) {
                (JobArg::Scalar(components), _) => GpuArg::Scalar(components),
                (JobArg::ThreadgroupLength(length), _) => GpuArg::ThreadgroupLength(*length),
                (JobArg::Buffer(..), Some(buffer)) => GpuArg::Buffer(buffer),
                (JobArg::Buffer(..), None) => unreachable!("every buffer was taken there"),
            })
            .collect();
        let in_line = task.line().is_some();
        if in_line {
            self.gpu
                .dispatch_in_line(&self.program, self.dispatch, &args, task)?;
        } else {
            self.gpu.dispatch(&self.program, self.dispatch, &args)?;
        }
        let written = || {
            let params = self.program.kernel().params.iter();
            params
                .zip(&self.args)
                .zip(&buffers)
                .filter_map(|((param, arg), buffer)| match &param.kind {
                    ParamKind::Buffer { access, .. } if access.can_write() => {
                        Some((arg, buffer.as_deref()?))
                    }
                    ParamKind::Buffer { .. }
                    | ParamKind::Constant { .. }
                    | ParamKind::Scalar { .. }
                    | ParamKind::Threadgroup { .. } => None,
                })
        };
        for (arg, _) in written() {
            if let Some(resident) = arg.resident() {
                resident.changed_on_gpu();
            }
        }
        if in_line {
            return Ok(());
        }
        let stop = || task.is_asked_to_stop();
        if !self.gpu.wait_unless(stop)? {
            // The task knows why.
            return Ok(());
        }
        for (arg, buffer) in written() {
            arg.bring_back(buffer)?;
        }
        Ok(())
    }
}
