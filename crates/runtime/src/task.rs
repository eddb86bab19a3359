//! One dispatch, or one access of the host, on its way through the executor.
//!
//! A task's threadgroups are divided among *slots*, one for each thread that may take part. A
//! participant takes runs of threadgroups from the front of its slot, and when that is empty the back
//! half of another's. The thread that finishes the last threadgroup completes the task.
//!
//! Invariant: the work is written before the task is published, read only by a participant that has
//! claimed threadgroups and not yet given them back as finished, and taken out by the one that
//! completes it. Hence no lock guards it.

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use invar_interp::Report;
use invar_ir::Rule;

use crate::Error;
use crate::faults::Fault;
use crate::fork;
use crate::pending::QueueState;
use crate::sync::lock;
use crate::uses::Use;

/// What a device does in a dispatch. Its lists are kept from one use to the next.
pub(crate) trait Job: Any + Send + Sync {
    /// Runs `count` threadgroups from number `first` on.
    ///
    /// # Errors
    /// What went wrong; not that the task was asked to stop, which it knows.
    fn run(&self, task: &Arc<Task>, first: u64, count: u64) -> Result<(), Error>;

    /// Lets go of what it holds.
    fn release(&mut self);
}

/// The place of a job, which serves the dispatches of one kind of device after another.
#[derive(Default)]
pub(crate) struct JobSlot(Option<Box<dyn Job>>);

impl JobSlot {
    /// An empty one.
    pub(crate) const EMPTY: JobSlot = JobSlot(None);

    /// The job, one of a kind of device's.
    pub(crate) fn of<J: Job + Default>(&mut self) -> &mut J {
        let is_such = |job: &mut Box<dyn Job>| (&mut **job as &mut dyn Any).is::<J>();
        if !self.0.as_mut().is_some_and(is_such) {
            self.0 = Some(Box::<J>::default());
        }
        let job = self.0.as_deref_mut().map(|job| job as &mut dyn Any);
        match job.and_then(<dyn Any>::downcast_mut) {
            Some(job) => job,
            None => unreachable!("it is one of that kind"),
        }
    }

    /// Lets go of what the job holds.
    pub(crate) fn release(&mut self) {
        if let Some(job) = &mut self.0 {
            job.release();
        }
    }
}

/// What a task does. An access of the host, which has no threadgroups, does it by itself.
#[derive(Default)]
pub(crate) struct Work {
    /// Keeps the memory of the arguments alive (F2).
    pub(crate) memories: Vec<Arc<dyn Send + Sync>>,
    pub(crate) job: JobSlot,
}

impl Work {
    fn release(&mut self) {
        self.memories.clear();
        self.job.release();
    }
}

/// A device that keeps dispatches in the order in which they were given to it, and tells when they have ended:
/// none of them has to wait for another.
pub(crate) trait InOrder: Any + Send + Sync {
    /// Somebody waits for what was given to it.
    fn hurry(&self);

    /// Completes what is asked to stop.
    fn let_go(&self);

    /// Whether both are the same device's.
    fn is(&self, other: &dyn InOrder) -> bool;
}

/// When things happened to a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// It was submitted.
    pub submitted: Instant,
    /// Its first threadgroup began; dispatches that went to a GPU together begin and end together.
    pub started: Instant,
    /// Its last threadgroup ended. On a device with a clock of its own ([`crate::Capabilities::own_clock`])
    /// both are by that clock; elsewhere this is when the host saw the end.
    pub finished: Instant,
}

impl Timestamps {
    /// How long it ran, without the time it waited for others.
    pub fn duration(&self) -> Duration {
        self.finished.saturating_duration_since(self.started)
    }
}

/// How a task ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) fault: Option<Arc<Fault>>,
    /// Failures of earlier dispatches whose memory it used, not yet reported when it ended.
    pub(crate) inherited: Vec<Arc<Fault>>,
    pub(crate) report: Option<Arc<Report>>,
    pub(crate) times: Timestamps,
}

impl Outcome {
    /// Tells who asks how it ended what went wrong: with itself, or else with an earlier dispatch whose memory
    /// it used, not yet reported. What was told once stays so.
    pub(crate) fn tell(&mut self) -> Option<Error> {
        if let Some(fault) = &self.fault {
            return Some(fault.tell());
        }
        let mut inherited = std::mem::take(&mut self.inherited).into_iter();
        let error = inherited.find_map(|fault| fault.tell_other())?;
        self.fault = Some(Fault::new(error.clone()));
        Some(error)
    }
}

/// Why a task was asked to stop.
pub(crate) const RUNNING: u8 = 0;
pub(crate) const DEADLINE: u8 = 1;
pub(crate) const CANCELLED: u8 = 2;

/// Where a task stands.
pub(crate) enum Phase {
    /// It waits for others, or for a thread.
    Waiting,
    /// An access of the host may go on.
    Ready,
    Finished(Outcome),
}

/// What a task waits for and who waits for it; the executor's lock is held when this is touched.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) pending: usize,
    pub(crate) dependents: Vec<Arc<Task>>,
    pub(crate) joined: usize,
    /// The memory that it uses.
    pub(crate) uses: Vec<Use>,
    /// Failures that come with that memory, once it is known how it ended itself.
    pub(crate) inherited: Option<Vec<Arc<Fault>>>,
    pub(crate) started: Option<Instant>,
    /// When it ended, where a device has told.
    pub(crate) finished: Option<Instant>,
}

/// A range of unit numbers not yet claimed: first in the low half, end in the high half.
#[repr(align(64))]
#[derive(Default)]
struct Slot(AtomicU64);

fn pack(first: u32, end: u32) -> u64 {
    u64::from(first) | u64::from(end) << 32
}

fn unpack(range: u64) -> (u32, u32) {
    (range as u32, (range >> 32) as u32)
}

/// The most units that are claimed at once, so that a request to stop is soon seen.
const CLAIM: u32 = 4096;

/// When a dispatch's time stood still.
#[derive(Default)]
struct Pauses {
    /// Participants that pause now, and since when one has.
    now: u32,
    since: Option<Instant>,
    /// How long the pauses before took.
    before: Duration,
}

/// A pause of one participant, as long as it lives.
pub(crate) struct Pause<'a>(&'a Task);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut pauses = lock(&self.0.pauses);
        pauses.now -= 1;
        if pauses.now == 0
            && let Some(since) = pauses.since.take()
        {
            pauses.before += since.elapsed();
        }
    }
}

pub(crate) struct Task {
    /// The process whose threads run it.
    process: u32,
    pub(crate) stop: AtomicU32,
    pauses: Mutex<Pauses>,
    reason: AtomicU8,
    /// The first error of any participant; completes with the task.
    failure: Mutex<Option<Arc<Fault>>>,
    report: Mutex<Option<Arc<Report>>>,
    /// The device that keeps it in order, if it is such a dispatch.
    pub(crate) in_order: Option<Arc<dyn InOrder>>,
    /// Who has still to be done with a dispatch that a device keeps in order before it is complete: the thread that recorded it, and
    /// the one that sees it end. 0 for all others, and before it was recorded.
    on_the_way: AtomicU8,
    /// It was recorded: what the same device gets after it needs not wait.
    pub(crate) recorded: AtomicBool,
    outstanding: AtomicU64,
    slots: Box<[Slot]>,
    unit: u64,
    count: u64,
    work: UnsafeCell<Work>,
    pub(crate) links: Mutex<Links>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) queue: Option<Arc<QueueState>>,
    pub(crate) submitted: Instant,
    pub(crate) finished: AtomicBool,
    pub(crate) phase: Mutex<Phase>,
    changed: Condvar,
    /// Threads that wait for a change: with none of them there is none to wake, which would be a system
    /// call. Changed while the phase is locked.
    waiting: AtomicU32,
}

// SAFETY: the work is accessed as the module's invariant says; everything else is synchronised.
unsafe impl Send for Task {}
// SAFETY: as above.
unsafe impl Sync for Task {}

impl Task {
    pub(crate) fn new(participants: usize, process: u32) -> Task {
        Task {
            process,
            stop: AtomicU32::new(0),
            pauses: Mutex::default(),
            reason: AtomicU8::new(RUNNING),
            failure: Mutex::new(None),
            report: Mutex::new(None),
            in_order: None,
            on_the_way: AtomicU8::new(0),
            recorded: AtomicBool::new(false),
            outstanding: AtomicU64::new(0),
            slots: (0..participants).map(|_| Slot::default()).collect(),
            unit: 1,
            count: 0,
            work: UnsafeCell::new(Work::default()),
            links: Mutex::default(),
            time_limit: None,
            queue: None,
            submitted: Instant::now(),
            finished: AtomicBool::new(false),
            phase: Mutex::new(Phase::Waiting),
            changed: Condvar::new(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Makes a fresh task of it, of `count` threadgroups, and gives its work to be filled in.
    pub(crate) fn reset(&mut self, count: u64) -> &mut Work {
        *self.stop.get_mut() = 0;
        *self
            .pauses
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner) = Pauses::default();
        *self.reason.get_mut() = RUNNING;
        *self
            .failure
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner) = None;
        *self
            .report
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner) = None;
        self.in_order = None;
        *self.on_the_way.get_mut() = 0;
        *self.recorded.get_mut() = false;
        // Slots number units, at most 2^31 of them.
        self.unit = count.div_ceil(1 << 31).max(1);
        self.count = count;
        let units = count.div_ceil(self.unit) as u32;
        *self.outstanding.get_mut() = units.into();
        let share = u64::from(units);
        let slots = self.slots.len() as u64;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            let edge = |i: u64| (share * i / slots) as u32;
            *slot.0.get_mut() = pack(edge(i as u64), edge(i as u64 + 1));
        }
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        links.pending = 0;
        links.dependents.clear();
        links.joined = 0;
        links.uses.clear();
        links.inherited = None;
        links.started = None;
        links.finished = None;
        self.time_limit = None;
        self.queue = None;
        self.submitted = Instant::now();
        *self.finished.get_mut() = false;
        *self.phase.get_mut().unwrap_or_else(PoisonError::into_inner) = Phase::Waiting;
        self.work.get_mut()
    }

    /// How many threads could take part.
    pub(crate) fn width(&self) -> usize {
        self.count.div_ceil(self.unit).min(self.slots.len() as u64) as usize
    }

    /// Asks it to stop, for a reason; the first reason stays.
    pub(crate) fn ask_to_stop(&self, reason: u8) {
        let _ = self
            .reason
            .compare_exchange(RUNNING, reason, Ordering::Relaxed, Ordering::Relaxed);
        self.stop.store(1, Ordering::Release);
    }

    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire) != 0
    }

    /// Whether threads of this process run it. In a child of `fork` its locks may be held by threads that the
    /// child has not.
    pub(crate) fn is_here(&self) -> bool {
        self.process == fork::process()
    }

    /// How it ended before this process was forked, if it had.
    pub(crate) fn outcome_before_fork(&self) -> Option<Outcome> {
        match self.phase.try_lock().as_deref() {
            Ok(Phase::Finished(outcome)) => Some(outcome.clone()),
            Ok(Phase::Waiting | Phase::Ready) | Err(_) => None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// When its time is over that would have been at `deadline`; while it stands still, when to ask again.
    pub(crate) fn put_off(&self, deadline: Instant, now: Instant) -> Instant {
        const AGAIN: Duration = Duration::from_millis(1);
        let pauses = lock(&self.pauses);
        let paused = pauses
            .since
            .map(|since| now.saturating_duration_since(since));
        let all = pauses.before + paused.unwrap_or_default();
        // A deadline as late as that is none.
        let due = deadline.checked_add(all).unwrap_or(deadline);
        paused.map_or(due, |_| due.max(now + AGAIN))
    }

    /// Ends it for what went wrong.
    pub(crate) fn give_up(&self, error: Error) {
        self.fail(error);
        self.stop.store(1, Ordering::Release);
    }

    /// Notes what went wrong, if it is the first.
    pub(crate) fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert_with(|| Fault::new(error));
    }

    /// The device that keeps it in order.
    pub(crate) fn in_order(&self) -> Option<&dyn InOrder> {
        self.in_order.as_deref()
    }

    /// Whether it is a dispatch that a device keeps in order.
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order.is_some()
    }

    /// Whether a device runs it before the other, which is not yet recorded.
    pub(crate) fn precedes(&self, other: &Task) -> bool {
        match (&self.in_order, &other.in_order) {
            (Some(a), Some(b)) => a.is(&**b) && self.recorded.load(Ordering::Acquire),
            (Some(_), None) | (None, _) => false,
        }
    }

    /// Whether a device that keeps it in order has recorded it, and it has not ended.
    pub(crate) fn is_on_the_way(&self) -> bool {
        self.on_the_way.load(Ordering::Acquire) != 0
    }

    /// One is done with it; gives whether it was the last, who then completes it.
    pub(crate) fn arrived(&self) -> bool {
        self.on_the_way.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Claims units of slot `mine`, stealing if it is empty: first and count.
    fn claim(&self, mine: usize) -> Option<(u32, u32)> {
        loop {
            let own = &self.slots[mine].0;
            let mut range = own.load(Ordering::Acquire);
            loop {
                let (first, end) = unpack(range);
                if first >= end {
                    break;
                }
                let n = ((end - first) / 8).clamp(1, CLAIM);
                match own.compare_exchange_weak(
                    range,
                    pack(first + n, end),
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => return Some((first, n)),
                    Err(now) => range = now,
                }
            }
            if !self.steal(mine) {
                return None;
            }
        }
    }

    /// Moves the back half of another slot into slot `mine`, which is empty.
    fn steal(&self, mine: usize) -> bool {
        let count = self.slots.len();
        for other in (1..count).map(|i| (mine + i) % count) {
            let victim = &self.slots[other].0;
            let mut range = victim.load(Ordering::Acquire);
            loop {
                let (first, end) = unpack(range);
                if first >= end {
                    break;
                }
                let middle = first + (end - first) / 2;
                match victim.compare_exchange_weak(
                    range,
                    pack(first, middle),
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => {
                        // Only the owner fills its slot, and others leave an empty one alone.
                        self.slots[mine]
                            .0
                            .store(pack(middle, end), Ordering::Release);
                        return true;
                    }
                    Err(now) => range = now,
                }
            }
        }
        false
    }

    /// Runs threadgroups as participant `index` until none is left to claim. Gives true if the task
    /// is thereby done; the caller then completes it.
    pub(crate) fn participate(self: &Arc<Task>, index: usize) -> bool {
        let mut done = false;
        while let Some((first, n)) = self.claim(index) {
            if !self.is_asked_to_stop() {
                // SAFETY: these units are claimed and not yet finished.
                let work = unsafe { &*self.work.get() };
                let start = u64::from(first) * self.unit;
                let end = (u64::from(first) + u64::from(n)) * self.unit;
                let count = end.min(self.count) - start;
                let ran = match &work.job.0 {
                    Some(job) => job.run(self, start, count),
                    None => Ok(()),
                };
                if let Err(error) = ran {
                    self.give_up(error);
                }
            }
            // The thread that brings this to 0 has seen everything that the others stored.
            done = self.outstanding.fetch_sub(n.into(), Ordering::AcqRel) == u64::from(n);
        }
        done
    }

    /// Notes a report of the checkers.
    pub(crate) fn note(&self, report: Arc<Report>) {
        *lock(&self.report) = Some(report);
    }

    /// Takes the work out, so that what it holds can go.
    ///
    /// # Safety
    /// Only for the one that completes the task, once all its threadgroups are finished.
    pub(crate) unsafe fn release_work(&self) {
        // SAFETY: no thread has claimed units that are not finished, so none looks at the work.
        unsafe { (*self.work.get()).release() };
    }

    /// What went wrong, when all is finished.
    pub(crate) fn fault(&self) -> Option<Arc<Fault>> {
        let mut failure = lock(&self.failure);
        if failure.is_none() && self.is_asked_to_stop() {
            let stopped = match self.reason.load(Ordering::Relaxed) {
                DEADLINE => Some(Error::new(
                    Rule::DeadlineExceeded,
                    format!(
                        "the dispatch took longer than the {} s that its queue allows",
                        self.time_limit.unwrap_or_default().as_secs_f64()
                    ),
                )),
                CANCELLED => Some(Error::new(
                    Rule::Cancelled,
                    "the dispatch was cancelled; its buffers hold what was stored so far",
                )),
                _ => None,
            };
            *failure = stopped.map(Fault::new);
        }
        failure.clone()
    }

    /// What came of it, when all is finished.
    pub(crate) fn outcome(&self) -> Outcome {
        let mut links = lock(&self.links);
        let started = links.started.unwrap_or(self.submitted);
        let finished = links.finished.unwrap_or_else(Instant::now);
        let inherited = links.inherited.take().unwrap_or_default();
        drop(links);
        Outcome {
            fault: self.fault(),
            inherited,
            report: lock(&self.report).take(),
            times: Timestamps {
                submitted: self.submitted,
                started,
                finished,
            },
        }
    }

    /// It has come to another phase.
    pub(crate) fn turn(&self, to: Phase) {
        let mut phase = lock(&self.phase);
        if matches!(to, Phase::Finished(_)) {
            self.finished.store(true, Ordering::Release);
        }
        *phase = to;
        let waiting = self.waiting.load(Ordering::Relaxed) > 0;
        drop(phase);
        if waiting {
            self.changed.notify_all();
        }
    }

    /// Waits for a change of the phase, at most so long.
    fn wait_for_change<'a>(
        &'a self,
        phase: MutexGuard<'a, Phase>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, Phase> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let phase = match timeout {
            None => self
                .changed
                .wait(phase)
                .unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                self.changed
                    .wait_timeout(phase, timeout)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        phase
    }

    /// Waits for it to be finished, at most so long.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut phase = lock(&self.phase);
        while !matches!(*phase, Phase::Finished(_)) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            phase = self.wait_for_change(phase, left);
        }
        true
    }

    /// Waits until an access of the host may go on.
    pub(crate) fn wait_ready(&self) {
        let mut phase = lock(&self.phase);
        while matches!(*phase, Phase::Waiting) {
            phase = self.wait_for_change(phase, None);
        }
    }
}

/// What devices say of a dispatch on its way, beside that it failed.
#[allow(
    dead_code,
    reason = "the device that needs it may be left out of the build"
)]
impl Task {
    /// Lets its time, which its limit counts, stand still until what this gives is dropped: code is being compiled.
    pub(crate) fn pause(&self) -> Pause<'_> {
        let mut pauses = lock(&self.pauses);
        pauses.now += 1;
        pauses.since.get_or_insert_with(Instant::now);
        drop(pauses);
        Pause(self)
    }

    /// Whether it was asked to stop because its time is over.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.reason.load(Ordering::Relaxed) == DEADLINE
    }

    /// It is recorded: from now on two have to be done with it.
    pub(crate) fn set_off(&self) {
        self.on_the_way.store(2, Ordering::Release);
    }

    /// When its device ran it.
    pub(crate) fn ran(&self, started: Instant, finished: Instant) {
        let mut links = lock(&self.links);
        // The first part of its batch may have gone there before it was submitted.
        links.started = Some(started.max(self.submitted));
        links.finished = Some(finished);
    }

    /// Whether something went wrong so far.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }
}
