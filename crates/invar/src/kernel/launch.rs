//! Running kernels, and checking them.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use invar_interp::{CheckOptions, Report, Verdict};
use invar_ir::{ConstantKey, Diagnostic, Diagnostics, Verified};
use invar_runtime::{
    Arg, CompileOptions, Device, Dispatch, Error, Grid, Program, Queue, Submission, Timestamps,
};

use super::advice::in_rust;
use super::data::Constant as Value;
use super::define::{Kernel, kept, module, reported, told};
use super::structure::Constant;
use crate::report::{self, Style};

/// The grid of a launch: a [`Grid`], whose threadgroups are as the kernel says, or a [`Dispatch`],
/// which says both.
///
/// For a grid of a kernel that does not say it, threadgroups have 256 threads: 256, 16 by 16, or 8 by 8
/// by 4, by the dimensions in which the grid has more than one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a grid",
    note = "how many threads run is `Grid::threads(n)` or `Grid::threads([w, h])`, or a `Dispatch`",
    note = "a kernel calls no other kernel: what both do is a function under `#[device_fn]`"
)]
pub trait IntoDispatch {
    /// The grid and its threadgroups, for a kernel that says so much of them.
    fn into_dispatch(self, threadgroup: Option<[u32; 3]>) -> Dispatch;
}

impl IntoDispatch for Dispatch {
    fn into_dispatch(self, _own: Option<[u32; 3]>) -> Dispatch {
        self
    }
}

impl IntoDispatch for Grid {
    fn into_dispatch(self, threadgroup: Option<[u32; 3]>) -> Dispatch {
        let (Grid::Threads(size) | Grid::Threadgroups(size)) = self;
        let usual = match size {
            [_, 1, 1] => [256, 1, 1],
            [_, _, 1] => [16, 16, 1],
            _ => [8, 8, 4],
        };
        Dispatch {
            grid: self,
            threadgroup: threadgroup.unwrap_or(usual),
        }
    }
}

/// Where a kernel is launched: a [`Device`], a [`Queue`], or a [`Prepared`] kernel.
#[diagnostic::on_unimplemented(
    message = "`{K}` cannot be launched on `{Self}`",
    note = "a kernel is launched on a `Device`, a `Queue`, or what its own `prepare` gave"
)]
pub trait LaunchOn<K> {
    /// Submits the kernel.
    ///
    /// # Errors
    /// What is wrong with the kernel, the grid or an argument, or that the device cannot run it.
    fn submit(&self, dispatch: Dispatch, args: &[Arg<'_>]) -> Result<Submission, Error>;
}

impl<K: Kernel> LaunchOn<K> for Device {
    fn submit(&self, dispatch: Dispatch, args: &[Arg<'_>]) -> Result<Submission, Error> {
        self.queue().dispatch(&program::<K>(self)?, dispatch, args)
    }
}

impl<K: Kernel> LaunchOn<K> for Queue {
    fn submit(&self, dispatch: Dispatch, args: &[Arg<'_>]) -> Result<Submission, Error> {
        self.dispatch(&program::<K>(self.device())?, dispatch, args)
    }
}

impl<K> LaunchOn<K> for Prepared<K> {
    fn submit(&self, dispatch: Dispatch, args: &[Arg<'_>]) -> Result<Submission, Error> {
        self.queue.dispatch(&self.program, dispatch, args)
    }
}

/// A kernel compiled for a device.
pub struct Prepared<K> {
    program: Program,
    queue: Queue,
    kernel: PhantomData<fn() -> K>,
}

impl<K: Kernel> Prepared<K> {
    /// Compiles the kernel, or takes what an earlier launch has compiled.
    ///
    /// # Errors
    /// What is wrong with the kernel, or that the device cannot run it.
    pub fn new(device: &Device) -> Result<Prepared<K>, Error> {
        Ok(Prepared {
            program: program::<K>(device).map_err(with_lines::<K>)?,
            queue: device.queue(),
            kernel: PhantomData,
        })
    }

    /// The same with values of function constants.
    ///
    /// # Errors
    /// As [`Prepared::new`], and for a function constant that the kernel does not have.
    pub fn with_constants(device: &Device, constants: &[Constant]) -> Result<Prepared<K>, Error> {
        let mut options = CompileOptions::default();
        for constant in constants {
            let key = ConstantKey::from(constant.name);
            options.constants.push((key, constant.value));
        }
        let program = device.compile_with(&module::<K>()?, K::NAME, &options);
        Ok(Prepared {
            program: program.map_err(with_lines::<K>)?,
            queue: device.queue(),
            kernel: PhantomData,
        })
    }
}

/// A number, vector or matrix as an argument.
///
/// # Errors
/// `invalid-argument` if it is none of those.
pub fn value<T: Value>(value: T) -> Result<Arg<'static>, Error> {
    let mut consts = Vec::new();
    value.consts(&mut consts);
    Arg::components(&consts)
}

/// How many devices' programs are kept of a kernel. A process has few devices, but may make any
/// number of checked ones.
const KEPT_PROGRAMS: usize = 8;

fn program<K: Kernel>(device: &Device) -> Result<Program, Error> {
    type Programs = Mutex<Vec<(Device, Program)>>;
    let programs = kept::<K, Programs>(Mutex::default);
    // A device is where its capabilities are.
    let same = |d: &Device| std::ptr::eq(d.capabilities(), device.capabilities());
    {
        let all = programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = all.iter().find(|(d, _)| same(d)) {
            return Ok(found.clone());
        }
    }
    let made = device.compile(&module::<K>()?, K::NAME)?;
    let mut all = programs.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= KEPT_PROGRAMS {
        all.remove(0);
    }
    all.push((device.clone(), made.clone()));
    Ok(made)
}

/// A kernel that was launched: its [`Submission`], whose failures name the author's lines. It is a future, too.
#[derive(Debug)]
pub struct Launched {
    submission: Submission,
    module: Source,
}

/// Where a kernel's lines are to be had from.
#[derive(Debug)]
enum Source {
    Kernel(fn() -> Result<Verified, Error>),
    Built(Arc<Verified>),
}

impl Launched {
    /// Of a kernel that a program has built.
    pub(crate) fn of_module(submission: Submission, module: Arc<Verified>) -> Launched {
        Launched {
            submission,
            module: Source::Built(module),
        }
    }

    /// Waits for it, and helps with it.
    ///
    /// # Errors
    /// As [`Submission::wait`]; what the checked device found comes with the author's lines.
    pub fn wait(&self) -> Result<Timestamps, Error> {
        self.told(self.submission.wait())
    }

    fn told<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(Error::Diagnostics(all)) => Err(match &self.module {
                Source::Kernel(module) => {
                    let module = module()?;
                    told(&module, &all)
                }
                Source::Built(module) => reported(&module.sources, &module.calls, &all),
            }),
            other => other,
        }
    }
}

impl Deref for Launched {
    type Target = Submission;

    fn deref(&self) -> &Submission {
        &self.submission
    }
}

impl Future for Launched {
    type Output = Result<Timestamps, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.submission).poll(context);
        polled.map(|result| self.told(result))
    }
}

/// What is wrong with a launch or with values of function constants, with the author's lines.
fn with_lines<K: Kernel>(error: Error) -> Error {
    match (error, module::<K>()) {
        (Error::Diagnostics(all), Ok(module)) => told(&module, &all),
        (other, _) => other,
    }
}

/// Submits a kernel; the macro's `launch` with its arguments in one list.
///
/// # Errors
/// What is wrong with the kernel or the grid.
pub fn launch<K: Kernel>(
    on: &impl LaunchOn<K>,
    grid: impl IntoDispatch,
    args: &[Arg<'_>],
) -> Result<Launched, Error> {
    let dispatch = grid.into_dispatch(K::ATTRIBUTES.threadgroup);
    Ok(Launched {
        submission: on.submit(dispatch, args).map_err(with_lines::<K>)?,
        module: Source::Kernel(module::<K>),
    })
}

/// The device that checks a kernel, silent about what the kernel says is meant.
pub fn checker<K: Kernel>() -> Device {
    let allow = K::ATTRIBUTES.allow;
    if allow.is_empty() {
        return Device::checked();
    }
    let silent = kept::<K, Device>(|| {
        Device::checked_with(CheckOptions {
            allow: allow.to_vec(),
            ..CheckOptions::default()
        })
    });
    (*silent).clone()
}

/// What a call of a kernel as a function gives: nothing. Kernels have no such value, so that one does not call
/// another.
#[derive(Clone, Copy, Debug)]
pub struct KernelThatRanOnTheHost;

/// Ends a call of a kernel as a function: with what is wrong, as a panic at the caller.
#[track_caller]
pub fn ran(checked: Result<Findings, Error>) -> KernelThatRanOnTheHost {
    match checked.and_then(Findings::into_result) {
        Ok(()) => KernelThatRanOnTheHost,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a kernel under all checkers; the macro's `check` with its arguments in one list.
///
/// # Errors
/// What keeps it from running at all.
pub fn findings<K: Kernel>(
    device: &Device,
    grid: impl IntoDispatch,
    args: &[Arg<'_>],
) -> Result<Findings, Error> {
    let submission = launch::<K>(device, grid, args)?;
    let report = match submission.report() {
        Some(report) => report,
        // Without a report something else is wrong, or there was nothing to run.
        None => {
            submission.wait()?;
            Arc::new(Report {
                diagnostics: Vec::new(),
                allowed: Vec::new(),
                verdict: Verdict::Pass,
                schedules: invar_interp::Schedules::All,
                seeds: 0,
                simdgroup_size: None,
                outputs: Vec::new(),
                steps: 0,
                printed: Default::default(),
            })
        }
    };
    Ok(Findings {
        report,
        module: module::<K>()?,
    })
}

/// What the checkers found in a run of a kernel. As text it shows the author's lines.
#[must_use]
pub struct Findings {
    report: Arc<Report>,
    module: Verified,
}

impl Findings {
    /// The findings, errors first.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.report.diagnostics
    }

    /// The whole report: the verdict, and how far it reaches.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whether nothing was found that fails a check.
    pub fn passed(&self) -> bool {
        self.report.verdict == Verdict::Pass
    }

    /// Nothing, if the check passed.
    ///
    /// # Errors
    /// The findings, as a report with the author's lines.
    pub fn into_result(self) -> Result<(), Error> {
        if self.passed() {
            return Ok(());
        }
        let all = Diagnostics(self.report.diagnostics.clone());
        Err(told(&self.module, &all))
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = in_rust(&self.module, &self.report.diagnostics);
        f.write_str(&report::render_for(&self.module, &all, Style::Plain))?;
        let found = match all.len() {
            1 => "1 finding".to_string(),
            count => format!("{count} findings"),
        };
        writeln!(f, "{found}; {}", self.report.reach())
    }
}
