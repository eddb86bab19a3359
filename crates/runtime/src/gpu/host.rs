//! A GPU as a device like the others.
//!
//! A buffer of the device stays on the GPU ([`Resident`](super::Resident)); memory of the host, and a part
//! of a buffer, is taken there by each dispatch, which brings back what it may have written. A dispatch that
//! takes nothing there goes in line ([`line`](super::line)) behind the others; one that does, or whose time
//! is limited, has a thread that waits for it. A GPU cannot be stopped: a dispatch that is cancelled or over
//! its time goes on there, and nothing of it comes back.

use std::sync::Arc;

use invar_ir::ParamKind;

use super::{Gpu, GpuArg, GpuBuffer, GpuProgram, Pieces};
use crate::argument::Components;
use crate::memory::Memory;
use crate::task::Task;
use crate::{Arg, Error};

/// A dispatch on a GPU; its list is kept from one use to the next.
#[derive(Default)]
pub(crate) struct Call {
    program: Option<GpuProgram>,
    pieces: Pieces,
    args: Vec<HostArg>,
}

/// An argument of it.
#[expect(
    clippy::large_enum_variant,
    reason = "a matrix fits without an allocation for each dispatch"
)]
enum HostArg {
    /// A part of a buffer: where it begins, its size in bytes, and the memory that it lies in.
    Buffer(*mut u8, usize, Arc<Memory>),
    Scalar(Components),
    ThreadgroupLength(u64),
}

// SAFETY: the addresses are of memory that the argument keeps alive, used in the order of dispatches.
unsafe impl Send for HostArg {}
// SAFETY: as above.
unsafe impl Sync for HostArg {}

impl HostArg {
    fn of(arg: &Arg<'_>) -> HostArg {
        match arg {
            Arg::Buffer(part) => {
                let memory = part.buffer().memory().clone();
                HostArg::Buffer(part.start(), part.size_bytes(), memory)
            }
            Arg::Scalar(components) => HostArg::Scalar(*components),
            Arg::ThreadgroupLength(length) => HostArg::ThreadgroupLength(*length),
        }
    }

    /// The memory, where it is the whole buffer of a GPU.
    fn resident(&self) -> Option<&super::Resident> {
        match self {
            HostArg::Buffer(_, size, memory) if *size == memory.size() => memory.on_gpu(),
            HostArg::Buffer(..) | HostArg::Scalar(_) | HostArg::ThreadgroupLength(_) => None,
        }
    }

    /// The buffer on the GPU that it is, if it is one.
    fn buffer(&self, gpu: &Gpu) -> Result<Option<Arc<GpuBuffer>>, Error> {
        let HostArg::Buffer(start, size, memory) = self else {
            return Ok(None);
        };
        let bytes = || match size {
            0 => &[],
            // SAFETY: the argument keeps the memory alive, and dispatches that write it come before or
            // after this one.
            _ => unsafe { std::slice::from_raw_parts(*start, *size) },
        };
        if let Some(resident) = self.resident() {
            return resident.on_gpu(bytes()).map(Some);
        }
        // SAFETY: the dispatch has its place in the order.
        unsafe { memory.to_host() }?;
        gpu.buffer_from(bytes())
            .map(|buffer| Some(Arc::new(buffer)))
    }

    /// Brings back what a dispatch wrote.
    fn bring_back(&self, buffer: &GpuBuffer) -> Result<(), Error> {
        if let (HostArg::Buffer(start, size @ 1.., memory), None) = (self, self.resident()) {
            // SAFETY: the argument keeps the memory alive; it is writable, for that was checked of the
            // argument, and no other dispatch uses it now.
            buffer.read_into(unsafe { std::slice::from_raw_parts_mut(*start, *size) })?;
            memory.changed_on_host();
        }
        Ok(())
    }
}

impl Call {
    /// Fills it in for a dispatch whose arguments fit.
    pub(crate) fn fill(&mut self, program: &GpuProgram, pieces: Pieces, args: &[Arg<'_>]) {
        self.program = Some(program.clone());
        self.pieces = pieces;
        self.args.clear();
        self.args.extend(args.iter().map(HostArg::of));
    }

    /// Lets go of what it holds.
    pub(crate) fn release(&mut self) {
        self.program = None;
        self.pieces = Pieces::default();
        self.args.clear();
    }

    /// The GPU, if all that it uses stays there.
    pub(crate) fn stays_on(&self) -> Option<&Gpu> {
        let stays = |arg: &HostArg| match arg {
            HostArg::Buffer(_, 0, _) | HostArg::Scalar(_) | HostArg::ThreadgroupLength(_) => true,
            HostArg::Buffer(..) => arg.resident().is_some(),
        };
        let program = self.program.as_ref()?;
        self.args.iter().all(stays).then_some(&program.0.gpu)
    }

    /// Runs it, unless the task is asked to stop before it has ended. Of a task in line this only records
    /// it.
    pub(crate) fn run(&self, task: &Arc<Task>) -> Result<(), Error> {
        let Some(program) = &self.program else {
            return Ok(());
        };
        let gpu = &program.0.gpu;
        if !gpu.wait_for_turn(task)? {
            return Ok(());
        }
        let buffers = self.args.iter().map(|arg| arg.buffer(gpu));
        let buffers = buffers.collect::<Result<Vec<Option<Arc<GpuBuffer>>>, Error>>()?;
        let args: Vec<GpuArg<'_>> = self
            .args
            .iter()
            .zip(&buffers)
            .map(|(arg, buffer)| match (arg, buffer) {
                (HostArg::Scalar(components), _) => GpuArg::Scalar(components.as_slice()),
                (HostArg::ThreadgroupLength(length), _) => GpuArg::ThreadgroupLength(*length),
                (HostArg::Buffer(..), Some(buffer)) => GpuArg::Buffer(buffer),
                (HostArg::Buffer(..), None) => unreachable!("every buffer was taken there"),
            })
            .collect();
        let in_line = task.line().is_some();
        let ended = if in_line {
            gpu.dispatch_in_line(program, &self.pieces, &args, task)
                .map(|()| false)
        } else {
            gpu.run_and_wait(program, &self.pieces, &args, task)
        };
        let written = || {
            let params = program.kernel().params.iter();
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
        if ended? {
            for (arg, buffer) in written() {
                arg.bring_back(buffer)?;
            }
        }
        Ok(())
    }
}
