//! The checked device: the reference machine under all its checkers.
//!
//! A dispatch fails if the checkers find an error in it; what it stored is in its buffers all the
//! same (F3). It always has a time limit.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use invar_interp::{Arg, CheckOptions, Dispatch, Observer, Options, Verdict, check_observed};
use invar_ir::verify::MAX_THREAD_BYTES;
use invar_ir::{Diagnostics, Order, ParamKind, Rule, Scalar, Type, Verified};

use crate::task::Task;
use crate::{Capabilities, Error};

/// What the checked device can do.
pub(crate) fn capabilities(options: &CheckOptions) -> Capabilities {
    let floats = Scalar::ALL.into_iter().filter(|s| s.is_float());
    let matrix = |scalar| Type::SimdgroupMatrix {
        scalar,
        rows: 8,
        columns: 8,
    };
    let run = &options.run;
    Capabilities {
        name: "checked".to_string(),
        family: "reference".to_string(),
        description: "the reference machine with its checkers".to_string(),
        host_threads: 1,
        simdgroup_size: run.simdgroup_size.unwrap_or(32),
        simdgroup_sizes: vec![4, 8, 16, 32, 64, 128],
        threadgroup_memory_bytes: run.threadgroup_memory_bytes,
        thread_memory_bytes: MAX_THREAD_BYTES,
        threads_per_threadgroup: run.threads_per_threadgroup,
        buffer_bytes: isize::MAX as u64,
        constant_buffer_bytes: isize::MAX as u64,
        constant_offset_bytes: 1,
        types: Scalar::ALL.to_vec(),
        ieee_float: floats.clone().collect(),
        atomics: ATOMICS.to_vec(),
        memory_orders: Order::ALL.to_vec(),
        simdgroup_matrices: floats.map(matrix).collect(),
        async_copy: true,
        threadgroup_progress: true,
        own_clock: false,
    }
}

/// Types that atomics act on, on every device that has all of them.
pub(crate) const ATOMICS: [Scalar; 6] = [
    Scalar::I32,
    Scalar::U32,
    Scalar::I64,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
];

/// A dispatch on the reference machine.
pub(crate) struct Job {
    pub(crate) module: Arc<Verified>,
    pub(crate) kernel: Arc<str>,
    pub(crate) dispatch: Dispatch,
    pub(crate) options: CheckOptions,
    pub(crate) args: Vec<JobArg>,
}

/// An argument of it.
pub(crate) enum JobArg {
    /// Where the buffer's memory begins, and how many bytes it has.
    Buffer(*mut u8, usize),
    Scalar(Vec<invar_ir::Const>),
    ThreadgroupLength(u64),
}

impl JobArg {
    /// What an argument is for a run elsewhere.
    pub(crate) fn of(arg: &crate::Arg<'_>) -> JobArg {
        match arg {
            crate::Arg::Buffer(part) => JobArg::Buffer(part.start(), part.size_bytes()),
            crate::Arg::Scalar(components) => JobArg::Scalar(components.as_slice().to_vec()),
            crate::Arg::ThreadgroupLength(length) => JobArg::ThreadgroupLength(*length),
        }
    }
}

// SAFETY: the addresses are of memory that the work keeps alive, used in the order of dispatches.
unsafe impl Send for JobArg {}
// SAFETY: as above.
unsafe impl Sync for JobArg {}

/// Ends the run when it is asked to stop.
struct StopFlag<'a>(&'a AtomicU32);

impl Observer for StopFlag<'_> {
    fn wants(&self, _object: &invar_interp::observe::ObjectInfo) -> bool {
        false
    }

    fn progress(&mut self, _done: u64, _total: u64) -> ControlFlow<()> {
        match self.0.load(Ordering::Acquire) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

impl Job {
    /// Runs it, and leaves the report with the task.
    pub(crate) fn run(&self, task: &Task) -> Result<(), Error> {
        let args: Vec<Arg> = self
            .args
            .iter()
            .map(|arg| match arg {
                JobArg::Buffer(start, size) => {
                    // SAFETY: the work keeps the memory alive, and dispatches that write it come
                    // before or after this one.
                    Arg::ReadBuffer(unsafe { std::slice::from_raw_parts(*start, *size) })
                }
                JobArg::Scalar(components) => Arg::Scalar(components.clone()),
                JobArg::ThreadgroupLength(length) => Arg::ThreadgroupLength(*length),
            })
            .collect();
        let mut stop = StopFlag(&task.stop);
        let checked = check_observed(
            &self.module,
            &self.kernel,
            &self.dispatch,
            &args,
            &self.options,
            &mut [&mut stop],
        );
        let mut report = match checked {
            Ok(report) => report,
            // The task knows why it was asked to stop.
            Err(Diagnostics(all)) if all.iter().all(|d| d.rule == Rule::Cancelled) => return Ok(()),
            Err(errors) => return Err(errors.into()),
        };
        let outputs = std::mem::take(&mut report.outputs);
        let kernel = self.module.kernel(&self.kernel);
        let params = kernel.into_iter().flat_map(|k| &k.params);
        for ((param, arg), output) in params.zip(&self.args).zip(outputs) {
            if let (ParamKind::Buffer { access, .. }, JobArg::Buffer(start, size)) =
                (&param.kind, arg)
                && access.can_write()
            {
                let size = output.len().min(*size);
                // SAFETY: the work keeps the memory alive; it is writable, for that was checked of
                // the argument, and no other dispatch uses it now.
                unsafe { std::ptr::copy_nonoverlapping(output.as_ptr(), *start, size) };
            }
        }
        let failed = report.verdict == Verdict::Fail;
        let found = report.diagnostics.clone();
        task.note(Arc::new(report));
        if failed {
            return Err(Error::Diagnostics(Diagnostics(found)));
        }
        Ok(())
    }
}

/// The options of a device that the user did not configure.
pub(crate) fn options(time_limit: Option<std::time::Duration>) -> CheckOptions {
    CheckOptions {
        run: Options {
            time_limit: Some(time_limit.unwrap_or(std::time::Duration::from_secs(600))),
            ..Options::default()
        },
        ..CheckOptions::default()
    }
}
