//! Compilations, each on a thread of its own, so that a caller that waits for one can leave: when the time allowed is
//! over, at Ctrl-C, when the dispatch is cancelled. LLVM cannot be interrupted. What was left goes on, and serves
//! the next caller.
//!
//! A process may end with compilations under way; then it ends without taking down what they use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use invar_ir::Rule;
use invar_ir::room::{COMPILER_BYTES, with_room};

use crate::Error;
use crate::error::failed;
use crate::fork;
use crate::interrupt;
use crate::sync::lock;

/// How often a thread that waits looks whether it may go on waiting.
const LOOK: Duration = Duration::from_millis(20);
/// No time limit ends a compilation sooner: it is not what the limit is for.
const LEAST: Duration = Duration::from_secs(2);

/// How many compilations are under way.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Something that is being compiled, or was.
pub(crate) struct Compilation<T> {
    process: u32,
    result: Mutex<Option<Result<T, Error>>>,
    done: Condvar,
}

/// How long somebody waits for one.
pub(crate) struct Patience<'a> {
    /// What it is of, for messages.
    pub(crate) kernel: &'a str,
    /// The time that a dispatch may take.
    pub(crate) limit: Option<Duration>,
    /// Whether it is still wanted.
    pub(crate) is_wanted: &'a dyn Fn() -> bool,
}

impl<T: Clone + Send + 'static> Compilation<T> {
    /// Begins one.
    pub(crate) fn begin(
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Arc<Compilation<T>> {
        let compilation = Arc::new(Compilation {
            process: fork::process(),
            result: Mutex::new(None),
            done: Condvar::new(),
        });
        let work = Arc::new(Mutex::new(Some(work)));
        let (own, there) = (compilation.clone(), work.clone());
        end_without_destructors();
        UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        let builder = std::thread::Builder::new()
            .name("invar-compiler".to_string())
            .stack_size(2 * COMPILER_BYTES);
        let started = builder.spawn(move || own.run(&there));
        if started.is_err() {
            // Where no thread can be had, the caller cannot leave.
            with_room(COMPILER_BYTES, || compilation.run(&work));
        }
        compilation
    }

    fn run(&self, work: &Mutex<Option<impl FnOnce() -> Result<T, Error>>>) {
        let Some(work) = lock(work).take() else {
            return;
        };
        let result = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(failed("compiler", &*panic)));
        *lock(&self.result) = Some(result);
        self.done.notify_all();
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a thread of this process ends it, or has.
    pub(crate) fn is_here(&self) -> bool {
        if self.process == fork::process() {
            return true;
        }
        // Its thread may have held this when the process was forked.
        match self.result.try_lock() {
            Ok(result) => result.is_some(),
            Err(TryLockError::Poisoned(result)) => result.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Whether it has ended without success.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.result).as_ref().is_some_and(Result::is_err)
    }

    /// Its result, once there is one.
    ///
    /// # Errors
    /// Its own; `deadline-exceeded` or `cancelled` for who does not wait for it any longer.
    pub(crate) fn wait(&self, patience: &Patience<'_>) -> Result<T, Error> {
        // Nearly always: a launch of what is compiled comes here.
        if let Some(result) = &*lock(&self.result) {
            return result.clone();
        }
        let until = patience
            .limit
            .and_then(|limit| Instant::now().checked_add(limit.max(LEAST)));
        let mut result = lock(&self.result);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            if let Some(until) = until
                && Instant::now() >= until
            {
                let limit = patience.limit.unwrap_or_default().max(LEAST);
                return Err(Error::new(
                    Rule::DeadlineExceeded,
                    format!(
                        "kernel `{}` was not compiled within {} s: allow more time, or make it smaller; it goes \
                         on being compiled, for the next that asks",
                        patience.kernel,
                        limit.as_secs_f64()
                    ),
                ));
            }
            let left = until.map_or(LOOK, |until| {
                until.saturating_duration_since(Instant::now())
            });
            let waited = self.done.wait_timeout(result, left.min(LOOK));
            result = waited.unwrap_or_else(PoisonError::into_inner).0;
            if result.is_some() {
                continue;
            }
            // The callback may take its time.
            drop(result);
            if interrupt::is_asked() || !(patience.is_wanted)() {
                return Err(Error::new(
                    Rule::Cancelled,
                    format!(
                        "the wait for kernel `{}` to be compiled was given up",
                        patience.kernel
                    ),
                ));
            }
            result = lock(&self.result);
        }
    }
}

/// Lets the process end at once where compilations are under way: they use what LLVM takes down at the end.
fn end_without_destructors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            use std::ffi::{c_int, c_void};

            unsafe extern "C" {
                fn on_exit(f: extern "C" fn(c_int, *mut c_void), about: *mut c_void) -> c_int;
                fn fflush(file: *mut c_void) -> c_int;
                fn _exit(status: c_int) -> !;
            }
            extern "C" fn leave(status: c_int, _: *mut c_void) {
                if UNDER_WAY.load(Ordering::Acquire) > 0 {
                    // SAFETY: without a file it writes out all of them; and then the process is gone.
                    unsafe {
                        fflush(std::ptr::null_mut());
                        _exit(status)
                    }
                }
            }
            // SAFETY: the function unwinds not. Where there is no memory to note it, the process ends as others do.
            let _ = unsafe { on_exit(leave, std::ptr::null_mut()) };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(limit: Option<Duration>, is_wanted: &dyn Fn() -> bool) -> Patience<'_> {
        Patience {
            kernel: "k",
            limit,
            is_wanted,
        }
    }

    /// Ends when it is told to.
    fn slow(gate: &Arc<Mutex<()>>) -> Arc<Compilation<u32>> {
        let gate = gate.clone();
        Compilation::begin(move || {
            drop(lock(&gate));
            Ok(7)
        })
    }

    #[test]
    fn who_waits_may_leave_and_come_back() {
        let gate = Arc::new(Mutex::new(()));
        let closed = lock(&gate);
        let compilation = slow(&gate);
        let limit = Some(Duration::from_millis(1));
        let start = Instant::now();
        let error = compilation.wait(&patience(limit, &|| true)).unwrap_err();
        assert_eq!(error.rule(), Some(Rule::DeadlineExceeded));
        assert!(start.elapsed() >= LEAST, "a limit is for dispatches");
        let error = compilation.wait(&patience(None, &|| false)).unwrap_err();
        assert_eq!(error.rule(), Some(Rule::Cancelled));
        let asked =
            interrupt::interruptible(&|| true, || compilation.wait(&patience(None, &|| true)));
        assert_eq!(asked.unwrap_err().rule(), Some(Rule::Cancelled));
        drop(closed);
        assert_eq!(compilation.wait(&patience(None, &|| true)), Ok(7));
        assert_eq!(compilation.wait(&patience(limit, &|| false)), Ok(7));
    }

    #[test]
    fn a_panic_is_an_error() {
        let broken: Arc<Compilation<u32>> = Compilation::begin(|| panic!("no such register"));
        let error = broken.wait(&patience(None, &|| true)).unwrap_err();
        assert!(error.to_string().contains("no such register"), "{error}");
    }
}
