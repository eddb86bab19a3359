//! Compilations in the background, so that a caller that waits for one can leave: when the time allowed is over, at
//! Ctrl-C, when the dispatch is cancelled. What was left goes on, and serves the next caller.

use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use invar_ir::Rule;

use crate::Error;
use crate::background::{self, LOOK};
use crate::fork;
use crate::interrupt;
use crate::sync::lock;

/// No time limit ends a compilation sooner: it is not what the limit is for.
const LEAST: Duration = Duration::from_secs(2);

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
        let own = compilation.clone();
        background::begin(work, move |result| {
            *lock(&own.result) = Some(result);
            own.done.notify_all();
        });
        compilation
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
    #[allow(dead_code, reason = "devices that keep no code on disk do not ask")]
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
}
