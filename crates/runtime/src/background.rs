//! Work that cannot be interrupted, on a thread of its own, so that who waits for it can leave: compiling with LLVM,
//! proving. What was left goes on.
//!
//! A process may end with such work under way; then it ends without taking down what the work uses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use invar_ir::Rule;
use invar_ir::room::{COMPILER_BYTES, with_room};

use crate::Error;
use crate::error::failed;
use crate::interrupt;
use crate::sync::lock;

/// How often a thread that waits looks whether it may go on waiting.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// How much work is under way.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Does something on a thread of its own, or on the caller's where no thread can be had: then the caller cannot
/// leave. A panic of it is an error for `end`, which is called when it is done.
pub(crate) fn begin<T>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    end: impl FnOnce(Result<T, Error>) + Send + 'static,
) {
    fn run<T>(work: impl FnOnce() -> Result<T, Error>, end: impl FnOnce(Result<T, Error>)) {
        let result = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(failed("compiler", &*panic)));
        end(result);
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
    let here = Arc::new(Mutex::new(Some((work, end))));
    let there = here.clone();
    end_without_destructors();
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
    let builder = std::thread::Builder::new()
        .name("invar-compiler".to_string())
        .stack_size(2 * COMPILER_BYTES);
    let started = builder.spawn(move || {
        let taken = lock(&there).take();
        if let Some((work, end)) = taken {
            run(work, end);
        }
    });
    if started.is_err() {
        let taken = lock(&here).take();
        if let Some((work, end)) = taken {
            with_room(COMPILER_BYTES, || run(work, end));
        }
    }
}

/// Does something long with a kernel that cannot be interrupted, such as writing its machine code, so that the caller
/// can leave it within [`crate::interruptible`]. What was left goes on, and the process may end then.
///
/// ```
/// use invar_runtime::{interruptible, leavable};
///
/// assert_eq!(interruptible(&|| false, || leavable("k", || Ok(6 * 7)))?, 42);
/// # Ok::<(), invar_runtime::Error>(())
/// ```
///
/// # Errors
/// Those of the work; `cancelled` where it was left.
pub fn leavable<T: Send + 'static>(
    kernel: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = mpsc::channel();
    begin(work, move |result| {
        // Nobody listens where the wait was given up.
        let _ = sender.send(result);
    });
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if interrupt::is_asked() => {
                return Err(Error::new(
                    Rule::Cancelled,
                    format!("the wait for kernel `{kernel}` was given up"),
                ));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("its end sends"),
        }
    }
}

/// Lets the process end at once where work is under way: it uses what LLVM takes down at the end.
fn end_without_destructors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(ends_now);
}

/// To be called by a program that is about to end, where work may be under way that was left: the process then ends
/// without taking down what that uses, also what LLVM made only in the course of it.
///
/// ```
/// invar_runtime::ends_now();
/// ```
pub fn ends_now() {
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
        // What is noted last is done first.
        // SAFETY: the function unwinds not. Where there is no memory to note it, the process ends as others do.
        let _ = unsafe { on_exit(leave, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_may_leave() {
        let gate = Arc::new(Mutex::new(()));
        let closed = lock(&gate);
        let inner = gate.clone();
        let asked = interrupt::interruptible(&|| true, || {
            leavable("k", move || {
                drop(lock(&inner));
                Ok(7)
            })
        });
        assert_eq!(asked.unwrap_err().rule(), Some(Rule::Cancelled));
        drop(closed);
        assert_eq!(leavable("k", || Ok(7)), Ok(7));
    }

    /// In a process of its own, which ends while work goes on that has something taken down at the end.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_work_has_made_is_not_taken_down_under_it() {
        const ENDS: &str = "INVAR_TEST_ENDS";
        if std::env::var_os(ENDS).is_some() {
            unsafe extern "C" {
                fn atexit(f: extern "C" fn()) -> std::ffi::c_int;
            }
            extern "C" fn take_down() {
                std::process::abort();
            }
            let (sender, receiver) = mpsc::channel();
            let work = move || -> Result<(), Error> {
                // SAFETY: the function unwinds not.
                let noted = unsafe { atexit(take_down) };
                let _ = sender.send(noted);
                loop {
                    std::thread::park();
                }
            };
            begin(work, |_| ());
            assert_eq!(receiver.recv(), Ok(0));
            ends_now();
            std::process::exit(0);
        }
        let own = std::env::current_exe().expect("this program");
        let mut child = std::process::Command::new(own);
        let test = "background::tests::what_work_has_made_is_not_taken_down_under_it";
        let status = child.args([test, "--exact"]).env(ENDS, "1").status();
        let status = status.expect("it starts");
        assert!(status.success(), "{status}");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = leavable("k", || -> Result<u32, Error> { panic!("no such register") });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no such register"), "{error}");
    }
}
