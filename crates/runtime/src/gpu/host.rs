//! A GPU as a device like the others.
//!
//! A buffer of the device stays on the GPU ([`Resident`](super::Resident)); memory of the host, and a part
//! of a buffer, is taken there by each dispatch, which brings back what it may have written. A dispatch that
//! takes nothing there goes into the submission queue ([`submission_queue`](super::submission_queue)) behind the
//! others; one that does, or whose time is limited, has a thread that waits for it. A GPU cannot be stopped: a dispatch that is cancelled or over
//! its time goes on there, and nothing of it comes back.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use invar_ir::ParamKind;
use invar_ir::room::{COMPILER_BYTES, with_room};

use super::buffer::{GpuArg, GpuBuffer};
use super::handle::Gpu;
use super::program::GpuProgram;
use super::recording::Pieces;
use super::resident::Resident;
use crate::argument::Components;
use crate::backend::{Backend, Call, CompileOptions, Executable, Ready, Source};
use crate::error::failed;
use crate::memory::{self, Memory};
use crate::proof::KnownArgument;
use crate::task::{self, InOrder, JobSlot, Task};
use crate::{Arg, Capabilities, Error};

impl Backend for Gpu {
    fn capabilities(&self) -> &Capabilities {
        Gpu::capabilities(self)
    }

    fn compile(
        &self,
        source: &Source,
        options: &CompileOptions,
    ) -> Result<Box<dyn Executable>, Error> {
        let program = Gpu::compile(self, &source.module, &source.kernel().name, options)?;
        Ok(Box::new(Program {
            program,
            in_order: Arc::new(self.clone()),
        }))
    }

    fn takes_proofs(&self) -> bool {
        true
    }

    fn resident(&self) -> Option<Box<dyn memory::Resident>> {
        Some(Box::new(Resident::zeroed(self)))
    }

    fn owns(&self, memory: &dyn memory::Resident) -> bool {
        resident(memory).is_some_and(|memory| memory.is_on(self))
    }
}

/// A buffer's memory, if it is on a GPU.
fn resident(memory: &dyn memory::Resident) -> Option<&Resident> {
    (memory as &dyn Any).downcast_ref()
}

impl InOrder for Gpu {
    fn hurry(&self) {
        Gpu::hurry(self);
    }

    fn let_go(&self) {
        Gpu::let_go(self);
    }

    fn is(&self, other: &dyn InOrder) -> bool {
        let other: Option<&Gpu> = (other as &dyn Any).downcast_ref();
        other.is_some_and(|other| Gpu::is(self, other))
    }
}

/// A kernel for a GPU, and what keeps its dispatches in order.
struct Program {
    program: GpuProgram,
    in_order: Arc<dyn InOrder>,
}

impl Executable for Program {
    fn prepare(&self, call: &Call<'_>, job: &mut JobSlot) -> Result<Ready, Error> {
        let argument = |i: usize| call.args.get(i).map(KnownArgument::from);
        let gpu = &self.program.0.gpu;
        let pieces = gpu.prepare(&self.program, call.grid, argument, call.time_limit)?;
        let job = job.of::<Job>();
        job.fill(&self.program, pieces, call.args);
        // The time that others before it in the queue take would count as its own.
        let in_order = call.time_limit.is_none() && job.stays();
        Ok(Ready {
            // It runs them all.
            parts: call.threadgroups().min(1),
            small: false,
            time_limit: call.time_limit,
            in_order: in_order.then(|| self.in_order.clone()),
        })
    }
}

/// A dispatch on a GPU; its list is kept from one use to the next.
#[derive(Default)]
struct Job {
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
    fn resident(&self) -> Option<&Resident> {
        match self {
            HostArg::Buffer(_, size, memory) if *size == memory.size() => {
                memory.resident().and_then(resident)
            }
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

impl Job {
    /// Fills it in for a dispatch whose arguments fit.
    fn fill(&mut self, program: &GpuProgram, pieces: Pieces, args: &[Arg<'_>]) {
        self.program = Some(program.clone());
        self.pieces = pieces;
        self.args.clear();
        self.args.extend(args.iter().map(HostArg::of));
    }

    /// Whether all that it uses stays on the GPU.
    fn stays(&self) -> bool {
        self.args.iter().all(|arg| match arg {
            HostArg::Buffer(_, 0, _) | HostArg::Scalar(_) | HostArg::ThreadgroupLength(_) => true,
            HostArg::Buffer(..) => arg.resident().is_some(),
        })
    }

    /// Runs it, unless the task is asked to stop before it has ended. Of a task in the submission queue this only
    /// records it.
    fn run_all(&self, task: &Arc<Task>) -> Result<(), Error> {
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
        let in_order = task.is_in_order();
        let ended = if in_order {
            gpu.dispatch_in_order(program, &self.pieces, &args, task)
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
                    | ParamKind::Threadgroup { .. }
                    | ParamKind::Texture(_)
                    | ParamKind::Sampler => None,
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

impl task::Job for Job {
    fn run(&self, task: &Arc<Task>, _first: u64, _count: u64) -> Result<(), Error> {
        catch_unwind(AssertUnwindSafe(|| {
            with_room(COMPILER_BYTES, || self.run_all(task))
        }))
        .unwrap_or_else(|panic| Err(failed("GPU device", &*panic)))
    }

    fn release(&mut self) {
        self.program = None;
        self.pieces = Pieces::default();
        self.args.clear();
    }
}
