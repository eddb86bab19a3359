//! Where worker threads run: not on the processor of a thread that computes with them.
//!
//! Linux may wake a worker on its caller's own processor, where the two share it for some milliseconds
//! until the scheduler moves one. Virtual machines meet this most: a processor that slept for long looks
//! taken. A kernel of 6 ms then takes 12. So before a caller wakes workers to compute with it, they are
//! kept off its processor; they may run on every other one that they could run on before.
//!
//! Deliberately absent: a fixed processor for each worker, which would make it wait for other
//! processes that happen to run there. Elsewhere than on Linux nothing is done.

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The worker threads of an executor.
    #[derive(Default)]
    pub(crate) struct Workers {
        /// Each thread, and where it may run.
        threads: Vec<(Pid, CpuSet)>,
        /// The processor that they are kept off.
        kept_off: Option<usize>,
    }

    impl Workers {
        /// The calling thread is one of them.
        pub(crate) fn enter(&mut self) {
            if let Ok(allowed) = sched_getaffinity(None) {
                self.threads.push((gettid(), allowed));
                self.kept_off = None;
            }
        }

        /// Keeps them off the processor of the calling thread. It costs a system call for each worker
        /// where that is another processor than the last time.
        pub(crate) fn keep_off_caller(&mut self) {
            let here = sched_getcpu();
            if self.kept_off == Some(here) {
                return;
            }
            self.kept_off = Some(here);
            for (thread, allowed) in &self.threads {
                let mut others = *allowed;
                others.unset(here);
                if others.count() > 0 {
                    // A refusal leaves the worker where it could run before.
                    let _ = sched_setaffinity(Some(*thread), &others);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// The worker threads of an executor.
    #[derive(Default)]
    pub(crate) struct Workers;

    impl Workers {
        pub(crate) fn enter(&mut self) {}

        pub(crate) fn keep_off_caller(&mut self) {}
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Workers;
#[cfg(target_os = "linux")]
pub(crate) use linux::Workers;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc::channel;

    use rustix::thread::{gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::Workers;

    #[test]
    fn workers_may_run_everywhere_but_where_the_caller_is() {
        let allowed = sched_getaffinity(None).expect("the affinity of this thread");
        let (say, hear) = channel();
        let (end, ended) = channel::<()>();
        let worker = std::thread::spawn(move || {
            let mut workers = Workers::default();
            workers.enter();
            say.send((workers, gettid())).expect("the test waits");
            let _ = ended.recv();
        });
        let (mut workers, id) = hear.recv().expect("the worker says so");
        // The caller stays where it is while it is looked at.
        let mut here = allowed;
        here.clear();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).expect("a thread may stay on its processor");
        let mut others = allowed;
        others.unset(sched_getcpu());
        workers.keep_off_caller();
        let expected = if others.count() > 0 { others } else { allowed };
        assert_eq!(sched_getaffinity(Some(id)), Ok(expected));
        sched_setaffinity(None, &allowed).expect("as it was");
        drop(end);
        worker.join().expect("the worker ends");
    }
}
