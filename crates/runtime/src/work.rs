//! What a task does: threadgroups of a compiled kernel, or a run of the reference machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use invar_ir::Rule;

use crate::Error;
use crate::checked::Job;
use crate::memory::Memory;
#[cfg(feature = "cpu")]
use crate::native::Call;
#[cfg(feature = "gpu")]
use crate::room::COMPILER_BYTES;
use crate::room::{PASSES_BYTES, with_room};
use crate::task::Task;

/// A task's work. Its lists are kept from one use to the next.
#[derive(Default)]
pub(crate) struct Work {
    /// Keeps the memory of the arguments alive (F2).
    pub(crate) memories: Vec<Arc<Memory>>,
    pub(crate) kind: Kind,
    /// What to call, if it is native.
    #[cfg(feature = "cpu")]
    pub(crate) call: Call,
    /// What to run on a GPU, if it is for one.
    #[cfg(feature = "gpu")]
    pub(crate) gpu: crate::gpu::host::Call,
}

/// Which kind of work.
#[derive(Default)]
pub(crate) enum Kind {
    /// None: the host accesses a buffer itself.
    #[default]
    Host,
    /// A run of the reference machine, as one threadgroup.
    Checked(Box<Job>),
    /// Compiled code: [`Work::call`].
    #[cfg(feature = "cpu")]
    Native,
    /// A dispatch on a GPU, as one threadgroup: [`Work::gpu`].
    #[cfg(feature = "gpu")]
    Gpu,
}

impl Work {
    /// Runs `count` threadgroups from number `first` on.
    #[cfg_attr(
        not(feature = "cpu"),
        expect(unused_variables, reason = "the reference machine runs them all")
    )]
    pub(crate) fn run(&self, task: &Arc<Task>, first: u64, count: u64) -> Result<(), Error> {
        match &self.kind {
            Kind::Host => Ok(()),
            Kind::Checked(job) => catch_unwind(AssertUnwindSafe(|| {
                with_room(PASSES_BYTES, || job.run(task))
            }))
            .unwrap_or_else(|panic| Err(failed("reference machine", &*panic))),
            #[cfg(feature = "cpu")]
            Kind::Native => self.call.run(task, first, count),
            #[cfg(feature = "gpu")]
            Kind::Gpu => catch_unwind(AssertUnwindSafe(|| {
                with_room(COMPILER_BYTES / 2, || self.gpu.run(task))
            }))
            .unwrap_or_else(|panic| Err(failed("GPU device", &*panic))),
        }
    }

    /// The GPU in whose line a dispatch goes, if it need not be waited for.
    #[cfg(feature = "gpu")]
    pub(crate) fn line(&self) -> Option<&crate::gpu::Gpu> {
        match &self.kind {
            Kind::Gpu => self.gpu.stays_on(),
            Kind::Host | Kind::Checked(_) => None,
            #[cfg(feature = "cpu")]
            Kind::Native => None,
        }
    }

    /// Lets go of what it holds.
    pub(crate) fn release(&mut self) {
        self.memories.clear();
        self.kind = Kind::Host;
        #[cfg(feature = "cpu")]
        self.call.release();
        #[cfg(feature = "gpu")]
        self.gpu.release();
    }
}

/// A fault of ours, as an error.
pub(crate) fn failed(part: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let what = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    fault(&format!("the {part} failed"), &what)
}

/// A fault of ours, as an error of one sentence: what happened, and the first line of the reason.
pub(crate) fn fault(what: &str, reason: &str) -> Error {
    let reason = reason.lines().map(str::trim).find(|line| !line.is_empty());
    Error::refused(
        Rule::DeviceLost,
        format!(
            "{what}, which is a fault of Invar: {}",
            reason.unwrap_or("no reason is given")
        ),
    )
}
