//! The checked device: the reference machine under all its checkers.
//!
//! A dispatch fails if the checkers find an error in it; what it stored is in its buffers all the
//! same (F3). It always has a time limit.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use invar_interp::{Arg, CheckOptions, Dispatch, Observer, Options, Verdict, check_observed};
use invar_ir::once::Once;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::verify::MAX_THREAD_BYTES;
use invar_ir::{Diagnostics, Order, ParamKind, Rule, Scalar, Type, Verified};
use invar_texture::TextureShape;

use crate::backend::{Backend, Call, CompileOptions, Executable, Ready, Source};
use crate::capabilities::ALL_ATOMICS;
use crate::device::Kind;
use crate::environment;
use crate::error::failed;
use crate::fork;
use crate::task::{JobSlot, Task};
use crate::{Capabilities, Device, Error, task};

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
        name: NAME.to_string(),
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
        atomics: ALL_ATOMICS.to_vec(),
        memory_orders: Order::ALL.to_vec(),
        simdgroup_matrices: floats.map(matrix).collect(),
        async_copy: true,
        threadgroup_progress: true,
        own_clock: false,
    }
}

/// The kind of it.
pub(crate) struct Reference;

impl Kind for Reference {
    fn name(&self) -> &'static str {
        NAME
    }

    fn all(&self) -> Vec<Device> {
        vec![Device::checked()]
    }

    fn named(&self, name: &str) -> Option<Result<Device, Error>> {
        (name == NAME).then(|| Ok(Device::checked()))
    }

    fn listed(&self) -> Result<Vec<String>, &'static str> {
        Ok(vec![format!("`{NAME}`")])
    }
}

const NAME: &str = "checked";

impl Device {
    /// The reference machine with all its checkers. A dispatch fails if they find an error;
    /// [`crate::Submission::findings`] tells everything they found.
    pub fn checked() -> Device {
        static DEVICE: Once<Device> = Once::new();
        fork::watch();
        DEVICE
            .get_or_make(|| Device::checked_with(options(environment::time_limit())))
            .clone()
    }

    /// The same, checking in a certain way: with a seed, a simdgroup size, rules that are allowed,
    /// limits. Without a time limit it takes 600 s; function constants are a program's
    /// ([`CompileOptions::constants`]), and those given here are not looked at.
    pub fn checked_with(mut options: CheckOptions) -> Device {
        options.run.constants.clear();
        if options.run.time_limit.is_none() {
            options.run.time_limit = self::options(environment::time_limit()).run.time_limit;
        }
        Device::of(Checked {
            capabilities: capabilities(&options),
            options,
        })
    }
}

/// The reference machine, and how it checks.
struct Checked {
    capabilities: Capabilities,
    options: CheckOptions,
}

impl Backend for Checked {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn compile(
        &self,
        source: &Source,
        _options: &CompileOptions,
    ) -> Result<Box<dyn Executable>, Error> {
        Ok(Box::new(Program {
            source: source.clone(),
            options: self.options.clone(),
        }))
    }

    fn has_textures(&self) -> bool {
        true
    }

    fn has_imageblocks(&self) -> bool {
        true
    }

    fn keeps_lines(&self) -> bool {
        true
    }
}

/// A kernel for the reference machine, which compiles it anew for each dispatch.
struct Program {
    source: Source,
    options: CheckOptions,
}

impl Executable for Program {
    fn prepare(&self, call: &Call<'_>, job: &mut JobSlot) -> Result<Ready, Error> {
        let mut options = self.options.clone();
        options.run.time_limit = call.time_limit.or(options.run.time_limit);
        job.of::<Job>().0 = Some(Run {
            module: self.source.module.clone(),
            kernel: self.source.kernel().name.clone(),
            dispatch: call.dispatch,
            options,
            args: call.args.iter().map(JobArg::of).collect(),
        });
        Ok(Ready {
            // It runs them all.
            parts: call.threadgroups().min(1),
            small: false,
            // It watches its own, and says where it was when that was over.
            time_limit: None,
            in_order: None,
        })
    }
}

/// A dispatch on the reference machine.
#[derive(Default)]
struct Job(Option<Run>);

impl task::Job for Job {
    fn run(&self, task: &Arc<Task>, _first: u64, _count: u64) -> Result<(), Error> {
        let Some(run) = &self.0 else {
            return Ok(());
        };
        catch_unwind(AssertUnwindSafe(|| {
            with_room(PASSES_BYTES, || run.run(task))
        }))
        .unwrap_or_else(|panic| Err(failed("reference machine", &*panic)))
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

/// What it runs.
struct Run {
    module: Arc<Verified>,
    kernel: Arc<str>,
    dispatch: Dispatch,
    options: CheckOptions,
    args: Vec<JobArg>,
}

/// An argument of it.
enum JobArg {
    /// Where the buffer's memory begins, how many bytes it has, and of what shape it is, if it is a texture.
    Buffer(*mut u8, usize, Option<TextureShape>),
    Scalar(Vec<invar_ir::Const>),
    ThreadgroupLength(u64),
}

impl JobArg {
    /// What an argument is for a run elsewhere.
    fn of(arg: &crate::Arg<'_>) -> JobArg {
        match arg {
            crate::Arg::Buffer(slice) => {
                JobArg::Buffer(slice.start(), slice.size_bytes(), slice.texture())
            }
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

impl Run {
    /// Runs it, and leaves the report with the task.
    fn run(&self, task: &Task) -> Result<(), Error> {
        let args: Vec<Arg> = self
            .args
            .iter()
            .map(|arg| match arg {
                JobArg::Buffer(start, size, texture) => {
                    // SAFETY: the work keeps the memory alive, and dispatches that write it come
                    // before or after this one.
                    let bytes = unsafe { std::slice::from_raw_parts(*start, *size) };
                    match texture {
                        Some(shape) => Arg::Texture(*shape, Box::new(Arg::ReadBuffer(bytes))),
                        None => Arg::ReadBuffer(bytes),
                    }
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
            let access = match &param.kind {
                ParamKind::Buffer { access, .. } => *access,
                ParamKind::Texture(texture) => texture.access.memory(),
                ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Sampler => continue,
            };
            if let JobArg::Buffer(start, size, _) = arg
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
fn options(time_limit: Option<std::time::Duration>) -> CheckOptions {
    CheckOptions {
        run: Options {
            time_limit: Some(time_limit.unwrap_or(std::time::Duration::from_secs(600))),
            ..Options::default()
        },
        ..CheckOptions::default()
    }
}
