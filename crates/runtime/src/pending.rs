//! What a queue knows of its dispatches: how many have not ended, and the first that failed.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use crate::Error;
use crate::faults::Fault;
use crate::fork;
use crate::sync::lock;

/// What a queue's unfinished dispatches tell it.
pub(crate) struct QueueState {
    /// The process whose threads do.
    process: u32,
    inner: Mutex<Pending>,
    all_done: Condvar,
    /// The same in a child of `fork`.
    in_child: OnceLock<Arc<QueueState>>,
}

#[derive(Default)]
struct Pending {
    unfinished: usize,
    waiting: usize,
    /// The first failure, and whether a dispatch of the queue's own failed or used what another left.
    failed: Option<(Arc<Fault>, FailureOrigin)>,
    /// Who awaits one of the queue's dispatches; each looks for itself whether it was that one.
    wakers: Vec<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureOrigin {
    Own,
    Inherited,
}

impl Pending {
    /// Tells the first failure; one of another queue's dispatch unless somebody knows.
    fn tell(&mut self) -> Option<Error> {
        let (fault, origin) = self.failed.take()?;
        match origin {
            FailureOrigin::Own => Some(fault.tell()),
            FailureOrigin::Inherited => fault.tell_other(),
        }
    }
}

impl QueueState {
    /// Of a queue to which nothing was submitted.
    pub(crate) fn idle() -> Arc<QueueState> {
        QueueState::new(Pending::default())
    }

    fn new(inner: Pending) -> Arc<QueueState> {
        Arc::new(QueueState {
            process: fork::process(),
            inner: Mutex::new(inner),
            all_done: Condvar::new(),
            in_child: OnceLock::new(),
        })
    }

    /// What a child of `fork` begins with: what was under way never ends there.
    fn after_fork(&self) -> Arc<QueueState> {
        // A thread of the parent held it to tell something.
        let under_way = self
            .inner
            .try_lock()
            .map_or(true, |inner| inner.unfinished > 0);
        let fault = || Fault::left_behind("a dispatch of this queue");
        QueueState::new(Pending {
            failed: under_way.then(|| (fault(), FailureOrigin::Own)),
            ..Pending::default()
        })
    }

    /// The same in this process: what dispatches of it tell.
    pub(crate) fn here(self: &Arc<QueueState>) -> &Arc<QueueState> {
        let process = fork::process();
        let mut state = self;
        while state.process != process {
            state = state.in_child.get_or_init(|| state.after_fork());
        }
        state
    }

    /// A dispatch was submitted.
    pub(crate) fn began(&self) {
        lock(&self.inner).unfinished += 1;
    }

    /// Waits for all, and gives the first failure of those that ended since this was last asked.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let mut inner = lock(&self.inner);
        inner.waiting += 1;
        while inner.unfinished > 0 {
            inner = self
                .all_done
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inner.waiting -= 1;
        inner.tell().map_or(Ok(()), Err)
    }

    /// A dispatch has ended, perhaps with a failure, or after one that it inherited.
    pub(crate) fn finished(&self, own: Option<Arc<Fault>>, inherited: Option<Arc<Fault>>) {
        let mut inner = lock(&self.inner);
        inner.unfinished -= 1;
        let own = own.map(|fault| (fault, FailureOrigin::Own));
        let new = own.or_else(|| inherited.map(|fault| (fault, FailureOrigin::Inherited)));
        let known = |(fault, origin): &(Arc<Fault>, FailureOrigin)| {
            *origin == FailureOrigin::Inherited && fault.is_told()
        };
        if inner.failed.as_ref().is_none_or(known) {
            inner.failed = new;
        }
        if inner.unfinished == 0 && inner.waiting > 0 {
            self.all_done.notify_all();
        }
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Has this woken when a dispatch ends.
    pub(crate) fn wake(&self, waker: &Waker) {
        let mut inner = lock(&self.inner);
        if !inner.wakers.iter().any(|w| w.will_wake(waker)) {
            inner.wakers.push(waker.clone());
        }
    }
}
