//! Runs dispatches on the threads of the host, in the order that O3 demands.
//!
//! One executor serves every host device of the process, since buffers may be shared between them. A
//! dispatch waits for each unfinished one that touches a common byte which one of the two may write.
//! Ready dispatches go to a pool of worker threads, which starts with the first that needs one; a
//! thread that waits for a dispatch helps with it. A dispatch whose device keeps it in order does not wait
//! for others of that device: the thread that submits it records it, and it is complete when the device has
//! ended.
//! At most `INVAR_THREADS` threads (else as many as the machine has) compute at a time.
//!
//! Workers are never joined: a process may end with work in flight. A child of `fork` gets an
//! executor of its own, since it has none of its parent's threads.
//!
//! Deliberately absent: priorities, and any hurry by spinning, which would take cores from others.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::background::ends_now;
use crate::environment;
use crate::faults::{Fault, Faults};
use crate::fork;
use crate::interrupt;
use crate::placement::Workers;
use crate::sync::lock;
use crate::task::{CANCELLED, DEADLINE, Outcome, Phase, Task};
use crate::uses::Use;

/// Submission waits while so many dispatches are unfinished.
const IN_FLIGHT: usize = 1024;
/// Of a worker: they compile too, as deep as a process's first thread could.
const STACK_BYTES: usize = 8 << 20;
/// How many finished tasks are kept for reuse.
const SPARE: usize = 256;

#[derive(Default)]
struct State {
    /// Uses of unfinished tasks.
    uses: Vec<(Use, Arc<Task>)>,
    unfinished: usize,
    /// Threads that wait until fewer are unfinished.
    waiting_for_room: usize,
    /// Tasks with threadgroups that may be claimed.
    ready: VecDeque<Arc<Task>>,
    spare: Vec<Arc<Task>>,
    /// Threads that compute.
    running: usize,
    /// Worker threads, and how many of them sleep.
    workers: usize,
    idle: usize,
    placement: Workers,
}

#[derive(Default)]
struct Watch {
    deadlines: Vec<(Instant, Arc<Task>)>,
    /// How many were unfinished when the list was last tidied.
    unfinished: usize,
    /// When the watching thread wakes up next; `None` while it sleeps without end.
    next: Option<Instant>,
    started: bool,
}

pub(crate) struct Executor {
    process: u32,
    limit: usize,
    state: Mutex<State>,
    /// There is something ready and a thread may compute.
    wake: Condvar,
    /// A task finished while submissions wait.
    room: Condvar,
    faults: Faults,
    watch: Mutex<Watch>,
    watcher: Condvar,
}

/// How a dispatch is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The caller goes on; small work of known length is done at once on its thread.
    Asynchronous {
        /// Whether the work is that small.
        small: bool,
    },
    /// The caller waits next.
    Synchronous {
        /// Whether it is too small to be divided.
        small: bool,
    },
}

/// How many threads compute at a time.
pub(crate) fn thread_limit() -> usize {
    static LIMIT: AtomicU32 = AtomicU32::new(0);
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let all = std::thread::available_parallelism().map_or(1, usize::from);
            let limit = environment::threads().map_or(all, |n| n.min(all.max(256)));
            LIMIT.store(limit as u32, Ordering::Relaxed);
            limit
        }
        limit => limit as usize,
    }
}

static CURRENT: AtomicPtr<Executor> = AtomicPtr::new(std::ptr::null_mut());

/// The executor of this process or of its parent, if there is one.
fn current() -> Option<&'static Executor> {
    // SAFETY: whatever is stored there lives forever.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The process's executor.
pub(crate) fn executor() -> &'static Executor {
    let process = fork::process();
    loop {
        let before = current();
        if let Some(executor) = before
            && executor.process == process
        {
            return executor;
        }
        fork::around(hold, let_go);
        let fresh = Box::into_raw(Box::new(Executor {
            process,
            limit: thread_limit(),
            state: Mutex::default(),
            wake: Condvar::new(),
            room: Condvar::new(),
            faults: before.map_or_else(Faults::default, Executor::left_behind),
            watch: Mutex::default(),
            watcher: Condvar::new(),
        }));
        let before = before.map_or(std::ptr::null_mut(), |e| std::ptr::from_ref(e).cast_mut());
        if CURRENT
            .compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: it was made above and is not shared yet.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

thread_local! {
    /// What a thread holds while it forks.
    static HELD: RefCell<Option<MutexGuard<'static, State>>> = const { RefCell::new(None) };
}

/// Keeps the state as it is, so that a child of `fork` finds it whole.
fn hold() {
    let state = current().map(|executor| lock(&executor.state));
    // A thread that is ending has nothing to hold it in; then the child may find the state locked.
    let _ = HELD.try_with(|held| *held.borrow_mut() = state);
}

/// Lets go of it, in the parent and in the child.
fn let_go() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = None);
}

/// Waits until no dispatch of this process is under way, at most so long; stops those that are then
/// (`cancelled`), and waits until they have ended. For a process that ends and takes the memory of dispatches
/// with it.
///
/// ```
/// invar_runtime::finish(std::time::Duration::from_secs(1));
/// ```
pub fn finish(patience: Duration) {
    ends_now();
    let executor = executor();
    let until = Instant::now().checked_add(patience);
    let under_way = || -> Vec<Arc<Task>> {
        let state = lock(&executor.state);
        state.uses.iter().map(|(_, task)| task.clone()).collect()
    };
    for task in under_way() {
        while !interrupt::is_asked() {
            let left = until.map_or(LOOK, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || task.wait(Instant::now().checked_add(left.min(LOOK))) {
                break;
            }
        }
    }
    // What is stopped ends soon; nothing that goes wrong then may keep the process.
    let until = Instant::now() + MOST_TO_STOP;
    loop {
        let tasks = under_way();
        for task in &tasks {
            task.ask_to_stop(CANCELLED);
            if let Some(device) = task.in_order() {
                device.let_go();
            }
        }
        match tasks.first() {
            Some(task) if Instant::now() < until => {
                task.wait(Instant::now().checked_add(LOOK));
            }
            Some(_) | None => return,
        }
    }
}

/// How often a thread that waits for all looks whether it may go on waiting.
const LOOK: Duration = Duration::from_millis(20);
/// How long dispatches that were asked to stop may take for it when the process ends.
const MOST_TO_STOP: Duration = Duration::from_secs(10);

impl Executor {
    /// What a child of `fork` knows of its parent's dispatches under way: what they write is in no state that
    /// the child could wait for.
    fn left_behind(&self) -> Faults {
        let faults = Faults::default();
        let Ok(state) = self.state.try_lock() else {
            return faults;
        };
        let written = state.uses.iter().filter(|(u, _)| u.writes);
        for (written, task) in written.filter(|(_, task)| !task.has_ended()) {
            let what = match task.queue {
                Some(_) => "a dispatch that writes this memory",
                None => "an access of the host that writes this memory",
            };
            let fault = Fault::left_behind(what);
            faults.enter(&written.addresses, &fault);
        }
        faults
    }

    /// A task of `count` threadgroups that is not shared.
    fn fresh(&self, state: &mut State) -> Arc<Task> {
        match state
            .spare
            .iter_mut()
            .rposition(|task| Arc::get_mut(task).is_some())
        {
            Some(free) => state.spare.swap_remove(free),
            None => Arc::new(Task::new(self.limit, self.process)),
        }
    }

    /// Submits work of `count` threadgroups that uses these addresses. `fill` writes the work.
    pub(crate) fn submit(
        &'static self,
        count: u64,
        uses: impl Iterator<Item = Use>,
        mode: Mode,
        fill: impl FnOnce(&mut Task, u64),
    ) -> Arc<Task> {
        let mut state = lock(&self.state);
        while state.unfinished >= IN_FLIGHT {
            state.waiting_for_room += 1;
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting_for_room -= 1;
        }
        let mut task = self.fresh(&mut state);
        match Arc::get_mut(&mut task) {
            Some(task) => fill(task, count),
            None => unreachable!("a fresh task has one owner"),
        }
        state.unfinished += 1;
        let pending = enter(&mut state, &task, uses);
        if pending > 0 {
            return task;
        }
        let host = count == 0;
        if host {
            task.turn(Phase::Ready);
            return task;
        }
        if task.is_in_order() {
            let index = self.join(&mut state, &task);
            drop(state);
            self.take_part(&task, index);
            self.leave();
            return task;
        }
        match mode {
            Mode::Asynchronous { small: true } | Mode::Synchronous { small: true }
                if state.running < self.limit =>
            {
                let index = self.join(&mut state, &task);
                drop(state);
                self.take_part(&task, index);
                self.leave();
            }
            Mode::Asynchronous { .. } => {
                let width = task.width();
                state.ready.push_back(task.clone());
                self.call_workers(&mut state, width);
            }
            Mode::Synchronous { .. } => {
                let width = task.width();
                state.ready.push_back(task.clone());
                if state.running == 0 {
                    state.placement.keep_off_caller();
                }
                // The caller is one of them, unless all threads compute already.
                let others = if state.running < self.limit {
                    width - 1
                } else {
                    width
                };
                self.call_workers(&mut state, others);
            }
        }
        task
    }

    /// Waits until there is room for one more dispatch, for who may want to leave meanwhile.
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        while interrupt::is_possible() {
            let mut state = lock(&self.state);
            if state.unfinished < IN_FLIGHT {
                break;
            }
            state.waiting_for_room += 1;
            let waited = self.room.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting_for_room -= 1;
            drop(state);
            if interrupt::is_asked() {
                return Err(interrupt::left());
            }
        }
        Ok(())
    }

    /// Makes `wanted` workers look for something to do, starting them where needed.
    fn call_workers(&'static self, state: &mut State, wanted: usize) {
        let wanted = wanted.min(self.limit.saturating_sub(state.running));
        for i in 0..wanted {
            if i < state.idle {
                self.wake.notify_one();
            } else if state.workers < self.limit {
                let builder = std::thread::Builder::new()
                    .name("invar-worker".to_string())
                    .stack_size(STACK_BYTES);
                // Where no thread can be had, those that wait do the work.
                if builder.spawn(move || self.work()).is_err() {
                    return;
                }
                state.workers += 1;
            }
        }
    }

    /// Enters a ready task as one of its participants.
    fn join(&'static self, state: &mut State, task: &Arc<Task>) -> usize {
        state.running += 1;
        let mut links = lock(&task.links);
        let index = links.joined;
        links.joined += 1;
        if links.started.is_none() {
            let now = Instant::now();
            links.started = Some(now);
            // A deadline that no clock reaches is none.
            if let Some(deadline) = task.time_limit.and_then(|limit| now.checked_add(limit)) {
                self.watch(deadline, task);
            }
        }
        index
    }

    /// The first ready task that another thread may join.
    fn next(&'static self, state: &mut State) -> Option<(Arc<Task>, usize)> {
        if state.running >= self.limit {
            return None;
        }
        let task = state.ready.front()?.clone();
        let index = self.join(state, &task);
        if index + 1 >= task.width() {
            state.ready.pop_front();
        }
        Some((task, index))
    }

    fn take_part(&'static self, task: &Arc<Task>, index: usize) {
        let done = task.participate(index);
        let mut state = lock(&self.state);
        // Nothing is left to claim.
        state.ready.retain(|t| !Arc::ptr_eq(t, task));
        drop(state);
        if !done {
            return;
        }
        if !task.is_on_the_way() {
            self.complete(task);
            return;
        }
        self.let_follow(task);
        if task.arrived() {
            self.complete(task);
        }
    }

    /// A dispatch was recorded by a device that keeps it in order: what comes after it there needs not wait for its
    /// end.
    fn let_follow(&'static self, task: &Arc<Task>) {
        let mut state = lock(&self.state);
        task.recorded.store(true, Ordering::Release);
        let mut links = lock(&task.links);
        let mut called = 0;
        links.dependents.retain(|dependent| {
            if !task.precedes(dependent) {
                return true;
            }
            let mut links = lock(&dependent.links);
            links.pending -= 1;
            if links.pending == 0 {
                called += 1;
                state.ready.push_back(dependent.clone());
            }
            false
        });
        drop(links);
        self.call_workers(&mut state, called);
    }

    /// Gives back the right to compute.
    fn leave(&'static self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        if !state.ready.is_empty() {
            self.call_workers(&mut state, 1);
        }
    }

    /// What a worker thread does, forever.
    fn work(&'static self) {
        let mut state = lock(&self.state);
        state.placement.enter();
        loop {
            match self.next(&mut state) {
                Some((task, index)) => {
                    drop(state);
                    self.take_part(&task, index);
                    drop(task);
                    self.leave();
                    state = lock(&self.state);
                }
                None => {
                    state.idle += 1;
                    state = self
                        .wake
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
    }

    /// All of a task is done: lets on what waited for it.
    pub(crate) fn complete(&'static self, task: &Arc<Task>) {
        // SAFETY: the caller finished the last of its threadgroups.
        let outcome = unsafe { self.end(task) };
        let mut state = lock(&self.state);
        self.let_on(&mut state, task);
        // Before the task is seen to be finished, so that a caller that waits for each dispatch
        // finds it among the spare ones.
        if state.spare.len() < SPARE {
            state.spare.push(task.clone());
        }
        self.make_room(state, 1);
        tell(task, outcome);
    }

    /// All of several tasks is done: as [`Executor::complete`] for each, but threads that submit others are
    /// in the way only twice.
    #[allow(
        dead_code,
        reason = "the device that needs it may be left out of the build"
    )]
    pub(crate) fn complete_all(&'static self, mut tasks: Vec<Arc<Task>>) {
        if tasks.is_empty() {
            return;
        }
        // SAFETY: the caller finished the last of their threadgroups.
        let outcomes: Vec<Outcome> = tasks.iter().map(|task| unsafe { self.end(task) }).collect();
        let mut state = lock(&self.state);
        for task in &tasks {
            self.let_on(&mut state, task);
        }
        self.make_room(state, tasks.len());
        for (task, outcome) in tasks.iter().zip(outcomes) {
            tell(task, outcome);
        }
        let mut state = lock(&self.state);
        let free = SPARE.saturating_sub(state.spare.len());
        tasks.truncate(free);
        state.spare.append(&mut tasks);
    }

    /// Ends a task: what it held is let go of, and what came of it given.
    ///
    /// # Safety
    /// Only once for a task, when all its threadgroups are finished.
    unsafe fn end(&self, task: &Task) -> Outcome {
        self.note_end(task);
        let outcome = task.outcome();
        // SAFETY: as the caller vouches.
        unsafe { task.release_work() };
        outcome
    }

    /// Notes how a task ended for its memory: before what comes after it there, and once.
    pub(crate) fn note_end(&self, task: &Task) {
        let fault = task.fault();
        let mut links = lock(&task.links);
        if links.inherited.is_none() {
            links.inherited = Some(self.faults.ended(&links.uses, fault.as_ref()));
        }
    }

    /// What is said of memory is for its owner, who has given it back.
    pub(crate) fn forget(&self, addresses: &Range<usize>) {
        self.faults.forget(addresses);
    }

    /// Lets on what waited for a task that has ended.
    fn let_on(&'static self, state: &mut State, task: &Arc<Task>) {
        state.uses.retain(|(_, t)| !Arc::ptr_eq(t, task));
        let mut dependents = std::mem::take(&mut lock(&task.links).dependents);
        let mut called = 0;
        for dependent in dependents.drain(..) {
            let mut links = lock(&dependent.links);
            links.pending -= 1;
            if links.pending > 0 {
                continue;
            }
            drop(links);
            if dependent.width() == 0 {
                dependent.turn(Phase::Ready);
            } else {
                called += dependent.width();
                state.ready.push_back(dependent);
            }
        }
        // The list's memory serves the next task.
        lock(&task.links).dependents = dependents;
        self.call_workers(state, called);
    }

    /// So many tasks have ended: lets on who waits to submit others.
    fn make_room(&self, mut state: MutexGuard<'_, State>, count: usize) {
        state.unfinished -= count;
        let waiting = state.waiting_for_room > 0;
        drop(state);
        if waiting {
            self.room.notify_all();
        }
    }

    /// Waits for a task, helping with it.
    pub(crate) fn wait(&'static self, task: &Arc<Task>) {
        if task.has_ended() {
            return;
        }
        if let Some(device) = task.in_order()
            && task.is_on_the_way()
        {
            device.hurry();
            task.wait(None);
            return;
        }
        let mut state = lock(&self.state);
        let ready = state.ready.iter().any(|t| Arc::ptr_eq(t, task));
        if ready && state.running < self.limit && lock(&task.links).joined < self.limit {
            let index = self.join(&mut state, task);
            drop(state);
            self.take_part(task, index);
            self.leave();
        } else {
            drop(state);
        }
        task.wait(None);
    }

    /// Asks a task to end. One that has not begun ends at once, on this thread: what it waits for goes on without it.
    pub(crate) fn cancel(&'static self, task: &Arc<Task>) {
        task.ask_to_stop(CANCELLED);
        // Others of its device may rely on its place among them.
        if task.is_in_order() {
            return;
        }
        let mut state = lock(&self.state);
        if std::mem::take(&mut lock(&task.links).pending) > 0 {
            for (_, other) in state.uses.iter().filter(|(_, t)| !Arc::ptr_eq(t, task)) {
                let dependents = &mut lock(&other.links).dependents;
                dependents.retain(|dependent| !Arc::ptr_eq(dependent, task));
            }
            state.ready.push_back(task.clone());
        }
        let ready = state.ready.iter().any(|t| Arc::ptr_eq(t, task));
        if ready && lock(&task.links).joined < self.limit {
            // Nothing is computed, so it counts for no thread that computes.
            let index = self.join(&mut state, task);
            drop(state);
            self.take_part(task, index);
            self.leave();
        }
    }

    /// Waits for every unfinished task that touches an address of the range, for an access of the host.
    ///
    /// # Errors
    /// What went wrong with one of them, or with an earlier one, not yet reported.
    pub(crate) fn wait_for_host(&'static self, addresses: Range<usize>) -> Result<(), Error> {
        self.wait_while_wanted(&addresses)?;
        self.wait_for_range(addresses.clone());
        self.faults.tell(&addresses)
    }

    /// Waits for every unfinished task that touches an address of the range, for who may want to leave meanwhile.
    fn wait_while_wanted(&'static self, addresses: &Range<usize>) -> Result<(), Error> {
        while interrupt::is_possible() {
            let Some(task) = self.user_of(addresses) else {
                break;
            };
            self.wait_or_leave(&task)?;
        }
        Ok(())
    }

    /// Waits for a task, for a caller that may want to leave meanwhile; for any other returns at once.
    pub(crate) fn wait_or_leave(&self, task: &Task) -> Result<(), Error> {
        if !interrupt::is_possible() {
            return Ok(());
        }
        if let Some(device) = task.in_order() {
            device.hurry();
        }
        while !task.wait(Instant::now().checked_add(LOOK)) {
            if interrupt::is_asked() {
                return Err(interrupt::left());
            }
        }
        Ok(())
    }

    /// An unfinished task that touches an address of the range.
    fn user_of(&self, addresses: &Range<usize>) -> Option<Arc<Task>> {
        let all = Use {
            addresses: addresses.clone(),
            writes: true,
        };
        let state = lock(&self.state);
        let found = state.uses.iter().find(|(u, _)| u.conflicts(&all));
        found.map(|(_, task)| task.clone())
    }

    /// Waits for every unfinished task that touches an address of the range.
    pub(crate) fn wait_for_range(&'static self, addresses: Range<usize>) {
        while let Some(task) = self.user_of(&addresses) {
            self.wait(&task);
        }
    }

    /// Lets the host access a range, in the order of dispatches.
    ///
    /// # Errors
    /// What went wrong with the access, or with an earlier dispatch that wrote there, not yet reported.
    pub(crate) fn host_access(
        &'static self,
        access: Use,
        f: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        struct Done(&'static Executor, Arc<Task>);
        impl Drop for Done {
            fn drop(&mut self) {
                self.0.complete(&self.1);
            }
        }
        if access.addresses.is_empty() {
            return f();
        }
        let mode = Mode::Synchronous { small: true };
        let addresses = access.addresses.clone();
        self.wait_while_wanted(&addresses)?;
        let task = self.submit(0, std::iter::once(access), mode, |task, count| {
            task.reset(count);
        });
        task.wait_ready();
        let _done = Done(self, task);
        self.faults.tell(&addresses)?;
        f()
    }

    /// Stops a task at an instant.
    fn watch(&'static self, deadline: Instant, task: &Arc<Task>) {
        let mut watch = lock(&self.watch);
        if watch.deadlines.len() >= 64.max(2 * watch.unfinished) {
            let unfinished = |t: &Arc<Task>| !t.finished.load(Ordering::Acquire);
            watch.deadlines.retain(|(_, task)| unfinished(task));
            watch.unfinished = watch.deadlines.len();
        }
        watch.deadlines.push((deadline, task.clone()));
        if !watch.started {
            let builder = std::thread::Builder::new().name("invar-deadlines".to_string());
            watch.started = builder.spawn(move || self.watch_deadlines()).is_ok();
        }
        if watch.next.is_none_or(|next| deadline < next) {
            self.watcher.notify_one();
        }
    }

    fn watch_deadlines(&self) {
        let mut watch = lock(&self.watch);
        loop {
            let now = Instant::now();
            let mut next: Option<Instant> = None;
            watch.deadlines.retain(|(deadline, task)| {
                if task.finished.load(Ordering::Acquire) {
                    return false;
                }
                let due = task.put_off(*deadline, now);
                if due <= now {
                    task.ask_to_stop(DEADLINE);
                    return false;
                }
                next = Some(next.map_or(due, |next| next.min(due)));
                true
            });
            watch.next = next;
            watch = match watch.next {
                None => self
                    .watcher
                    .wait(watch)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    self.watcher
                        .wait_timeout(watch, next.saturating_duration_since(now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }
}

/// Tells who waits for a task that it has ended.
fn tell(task: &Task, outcome: Outcome) {
    let failed = outcome.fault.clone();
    let inherited = outcome.inherited.first().cloned();
    task.turn(Phase::Finished(outcome));
    if let Some(queue) = &task.queue {
        queue.finished(failed, inherited);
    }
}

/// Enters a task's uses and gives how many others it waits for.
fn enter(state: &mut State, task: &Arc<Task>, uses: impl Iterator<Item = Use>) -> usize {
    let mut kept = std::mem::take(&mut lock(&task.links).uses);
    kept.extend(uses.filter(|new| !new.addresses.is_empty()));
    for new in &kept {
        state.uses.retain(|(old, other)| {
            if Arc::ptr_eq(other, task) {
                return true;
            }
            if other.precedes(task) {
                // Their device orders them, and ends them in that order: who waits for this one's use of the
                // same memory has waited for the other's.
                let covered = old.addresses == new.addresses && (new.writes || !old.writes);
                return !covered;
            }
            if old.conflicts(new) {
                let mut links = lock(&other.links);
                // Several uses of one task may conflict with several of the other.
                if links
                    .dependents
                    .last()
                    .is_none_or(|t| !Arc::ptr_eq(t, task))
                {
                    links.dependents.push(task.clone());
                    drop(links);
                    lock(&task.links).pending += 1;
                }
            }
            true
        });
        state.uses.push((new.clone(), task.clone()));
    }
    let mut links = lock(&task.links);
    links.uses = kept;
    links.pending
}
