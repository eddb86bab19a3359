//! What is done without Python's lock: launches, compilations and checks, during which other threads run Python.
//!
//! Invariants: a thread that Python's main thread looks for Ctrl-C in does so at least every few hundredths of a second;
//! and once the interpreter ends, no other thread comes back to it (its state is being taken down): they stay
//! where they are until the process is gone, as CPython's own do from 3.14 on.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use invar_interp::Observer;
use invar_interp::observe::ObjectInfo;
use pyo3::prelude::*;

/// How often a thread that waits looks for Ctrl-C.
pub const LOOK: Duration = Duration::from_millis(20);

/// The thread that ends the interpreter, once one does.
static LEAVER: OnceLock<ThreadId> = OnceLock::new();

/// Stops a thread that would come back to an interpreter that ends.
fn stay() {
    while LEAVER
        .get()
        .is_some_and(|leaver| *leaver != thread::current().id())
    {
        thread::park();
    }
}

/// Does something without Python's lock.
pub fn away<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        stay();
        let result = f();
        stay();
        result
    })
}

/// Looks for Ctrl-C, from a thread without Python's lock.
fn signals() -> PyResult<()> {
    stay();
    let signals = Python::attach(|py| py.check_signals());
    stay();
    signals
}

/// The same, and leaves compilations and waits at Ctrl-C.
///
/// # Errors
/// Ctrl-C, as the exception that Python makes of it.
pub fn interruptible<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> PyResult<R> {
    away(py, || {
        let interrupted = RefCell::new(None);
        let asked = || signals().map_err(|e| interrupted.replace(Some(e))).is_err();
        let result = invar_runtime::interruptible(&asked, f);
        interrupted.into_inner().map_or(Ok(result), Err)
    })
}

/// Looks for Ctrl-C while the reference machine runs.
pub struct Signals {
    next: Instant,
    /// Ctrl-C, once it came.
    pub interrupted: Option<PyErr>,
}

impl Signals {
    /// From now on.
    pub fn new() -> Signals {
        Signals {
            next: Instant::now() + LOOK,
            interrupted: None,
        }
    }
}

impl Observer for Signals {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn progress(&mut self, _done: u64, _total: u64) -> ControlFlow<()> {
        if self.interrupted.is_some() {
            return ControlFlow::Break(());
        }
        let now = Instant::now();
        if now < self.next {
            return ControlFlow::Continue(());
        }
        self.next = now + LOOK;
        match signals() {
            Ok(()) => ControlFlow::Continue(()),
            Err(interrupted) => {
                self.interrupted = Some(interrupted);
                ControlFlow::Break(())
            }
        }
    }
}

/// For the end of the interpreter, which then frees the arrays of launches: waits at most so many seconds for those
/// under way, or until Ctrl-C, and stops what has not ended then.
#[pyfunction]
pub fn leave(py: Python<'_>, seconds: f64) {
    let _ = LEAVER.set(thread::current().id());
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    // Who wants to leave sooner leaves: the launches have ended either way.
    let _interrupted = interruptible(py, || invar_runtime::finish(patience));
}

/// Why compiled kernels are not kept on disk, if the folder for them cannot be trusted.
#[pyfunction]
pub fn cache_refusal() -> Option<String> {
    invar_runtime::cache_refusal()
}
