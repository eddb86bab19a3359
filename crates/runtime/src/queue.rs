//! Queues: dispatches are submitted to them and go on by themselves.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use invar_interp::{Dispatch, Report};
use invar_ir::Diagnostic;
use invar_ir::print::Printed;

use crate::argument::uses;
use crate::executor::{Mode, executor};
use crate::faults::Fault;
use crate::pending::QueueState;
use crate::print::Lines;
use crate::program::Program;
use crate::sync::lock;
use crate::task::{JobSlot, Outcome, Phase, Task, Timestamps};
use crate::{Arg, Device, Error, environment};

thread_local! {
    /// A place for the job of the next dispatch that this thread submits, with lists of an earlier one.
    static SPARE: Cell<JobSlot> = const { Cell::new(JobSlot::EMPTY) };
}

/// The thread's spare place for a job, while a dispatch is got ready in it.
struct Spare(JobSlot);

impl Spare {
    fn take() -> Spare {
        // A thread that is ending has none.
        Spare(SPARE.try_with(Cell::take).unwrap_or_default())
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // That of a dispatch that was not submitted holds its memory.
        self.0.release();
        let slot = std::mem::take(&mut self.0);
        let _ = SPARE.try_with(|spare| spare.set(slot));
    }
}

/// Takes dispatches, which run by themselves. Those that share a buffer which one of them writes run
/// in the order submitted, on whichever queues (O3); others may run at the same time.
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_runtime::{Arg, Buffer, Device, Dispatch};
///
/// let source = "
///     kernel @scale(%x: device read_write f32, %by: f32) {
///         %i = thread_position_in_grid x
///         %v = load %x[%i]
///         %w = mul %v, %by
///         store %x[%i], %w
///     }";
/// let device = Device::default()?;
/// let program = device.compile(&verify(text::parse("scale.inv", source)?)?, "scale")?;
/// let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0])?;
/// let queue = device.queue();
/// let grid = Dispatch::linear(3, 64);
/// queue.dispatch(&program, grid, &[Arg::from(&x), Arg::from(10.0f32)])?;
/// let second = queue.dispatch(&program, grid, &[Arg::from(&x), Arg::from(0.5f32)])?;
/// second.wait()?;
/// assert_eq!(x.read()?, [5.0, 10.0, 15.0]);
/// # Ok::<(), invar_runtime::Error>(())
/// ```
pub struct Queue {
    device: Device,
    time_limit: Option<Duration>,
    quiet: bool,
    state: Arc<QueueState>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue of {:?}", self.device)
    }
}

impl Queue {
    fn new(device: Device, time_limit: Option<Duration>) -> Queue {
        Queue {
            device,
            time_limit,
            quiet: false,
            state: QueueState::idle(),
        }
    }

    /// The same with a limit on how long each dispatch may run; then it fails with
    /// `deadline-exceeded`. `None`: no limit, but the checked device keeps its own.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Option<Duration>) -> Queue {
        self.time_limit = limit;
        self
    }

    /// The same, whose dispatches keep what they print for [`Submission::printed`] and do not show it.
    #[must_use]
    pub fn quiet(mut self) -> Queue {
        self.quiet = true;
        self
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Submits a dispatch and returns. It may already have run when this returns; one that prints has, and its
    /// lines are on standard output, or where [`crate::on_print`] gives them.
    ///
    /// # Errors
    /// What keeps it from running: a grid, threadgroup or argument that does not fit
    /// (`invalid-dispatch`, `invalid-argument`), arguments that overlap (`overlapping-buffers`). What
    /// goes wrong while it runs is told by the submission.
    pub fn dispatch(
        &self,
        program: &Program,
        dispatch: Dispatch,
        args: &[Arg],
    ) -> Result<Submission, Error> {
        self.submit(program, dispatch, args, false)
    }

    /// Runs a dispatch and waits for it: a little faster than both one after the other, since the
    /// calling thread takes part from the start.
    ///
    /// # Errors
    /// As [`Queue::dispatch`] and [`Submission::wait`].
    pub fn run(
        &self,
        program: &Program,
        dispatch: Dispatch,
        args: &[Arg],
    ) -> Result<Timestamps, Error> {
        self.submit(program, dispatch, args, true)?.wait()
    }

    /// As [`Queue::run`], and gives the ended submission.
    pub(crate) fn dispatch_and_wait(
        &self,
        program: &Program,
        dispatch: Dispatch,
        args: &[Arg],
    ) -> Result<Submission, Error> {
        let submission = self.submit(program, dispatch, args, true)?;
        submission.outcome(Outcome::tell);
        Ok(submission)
    }

    fn submit(
        &self,
        program: &Program,
        dispatch: Dispatch,
        args: &[Arg],
        synchronous: bool,
    ) -> Result<Submission, Error> {
        let submitted = Instant::now();
        let lines = Lines::of(program, self.quiet)?;
        let with_lines: Vec<Arg>;
        let args = match lines.as_ref().and_then(Lines::buffer) {
            None => args,
            Some(buffer) => {
                with_lines = args.iter().copied().chain([Arg::from(buffer)]).collect();
                &with_lines
            }
        };
        let mut job = Spare::take();
        let ready = program.prepare(&self.device, dispatch, args, self.time_limit, &mut job.0)?;
        if ready.parts == 0 {
            let state = State::Empty(submitted);
            return Ok(Submission { state, lines });
        }
        let executor = executor();
        executor.wait_for_room()?;
        let small = ready.small;
        let mode = if synchronous {
            Mode::Synchronous { small }
        } else {
            Mode::Asynchronous { small }
        };
        let state = self.state.here();
        state.began();
        let task = executor.submit(
            ready.parts,
            uses(program.running(), args),
            mode,
            |task, count| {
                let work = task.reset(count);
                for arg in args {
                    if let Arg::Buffer(slice) = arg {
                        work.memories.push(slice.buffer().memory().clone());
                    }
                }
                std::mem::swap(&mut work.job, &mut job.0);
                task.in_order = ready.in_order;
                task.time_limit = ready.time_limit;
                task.submitted = submitted;
                task.queue = Some(state.clone());
            },
        );
        let submission = Submission {
            state: State::Task(task),
            lines,
        };
        submission.wait_for_lines();
        Ok(submission)
    }

    /// Waits for every dispatch submitted to this queue.
    ///
    /// # Errors
    /// The first failure among those that ended since this was last asked.
    pub fn wait(&self) -> Result<(), Error> {
        self.state.here().wait()
    }
}

impl Device {
    /// A queue for dispatches. The limit on how long each may run is what `INVAR_TIME_LIMIT` says in
    /// seconds, else none; the checked device always has one.
    pub fn queue(&self) -> Queue {
        Queue::new(self.clone(), environment::time_limit())
    }
}

/// A dispatch that was submitted; also a future of what [`Submission::wait`] gives, which need not be polled
/// again and again. Dropping this does not stop it. Should it fail and not be asked, or its queue,
/// the next that reads or writes on the host what it may have written is told, and so is who waits for a later
/// dispatch that used that.
pub struct Submission {
    state: State,
    /// What it prints, if it does.
    lines: Option<Lines>,
}

enum State {
    /// A grid without threads: nothing to run.
    Empty(Instant),
    Task(Arc<Task>),
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() {
            "finished dispatch"
        } else {
            "unfinished dispatch"
        })
    }
}

impl Future for Submission {
    type Output = Result<Timestamps, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Task(task) = &self.state
            && !self.is_done()
        {
            if let Some(device) = task.in_order() {
                device.hurry();
            }
            if let Some(queue) = &task.queue {
                queue.wake(context.waker());
            }
            // It may have ended before the waker was there.
            if !self.is_done() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.wait())
    }
}

impl Submission {
    /// Waits for it, and helps with it.
    ///
    /// # Errors
    /// `deadline-exceeded` or `cancelled`; on the checked device what the checkers found; what went wrong
    /// with an earlier dispatch whose memory it used, if that was not yet reported. Each location that it could write
    /// holds its earlier value or one that was stored (F3).
    pub fn wait(&self) -> Result<Timestamps, Error> {
        self.outcome(|outcome| outcome.tell().map_or(Ok(outcome.times), Err))
    }

    /// Waits at most so long; gives whether it is done.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        match &self.state {
            State::Empty(_) => true,
            // It never ends.
            State::Task(task) if !task.is_here() => true,
            State::Task(task) => {
                if let Some(device) = task.in_order() {
                    device.hurry();
                }
                // A deadline that no clock reaches is none.
                task.wait(Instant::now().checked_add(timeout))
            }
        }
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Empty(_) => true,
            State::Task(task) => task.has_ended() || !task.is_here(),
        }
    }

    /// Asks it to end early, if it has not yet ended; it then fails with `cancelled`. On the host one that has not
    /// begun, as it waits for others, has ended when this returns.
    pub fn cancel(&self) {
        match &self.state {
            State::Empty(_) => {}
            State::Task(task) if !task.is_here() => {}
            State::Task(task) => {
                executor().cancel(task);
                if let Some(device) = task.in_order() {
                    device.let_go();
                }
            }
        }
    }

    /// Waits for it, and gives the report of the checkers: of the checked device only.
    pub fn report(&self) -> Option<Arc<Report>> {
        self.outcome(|outcome| {
            outcome.tell();
            outcome.report.clone()
        })
    }

    /// Waits for it, and gives what the checkers found, warnings included; empty on other devices.
    pub fn findings(&self) -> Vec<Diagnostic> {
        self.report()
            .map_or_else(Vec::new, |report| report.diagnostics.clone())
    }

    /// What it printed, once it has ended; none for a kernel without `print`.
    ///
    /// ```
    /// use invar_ir::{text, verify};
    /// use invar_runtime::{Device, Dispatch};
    ///
    /// let source = "kernel @k() {\n    %i = thread_position_in_grid x\n    print \"thread {}\" %i\n}";
    /// let device = Device::default()?;
    /// let program = device.compile(&verify(text::parse("k.inv", source)?)?, "k")?;
    /// let done = device.queue().quiet().dispatch(&program, Dispatch::linear(2, 64), &[])?;
    /// done.wait()?;
    /// let mut lines = done.printed().unwrap().lines.clone();
    /// lines.sort_by_key(|line| line.thread);
    /// assert_eq!(lines[1].text, "thread 1");
    /// # Ok::<(), invar_runtime::Error>(())
    /// ```
    pub fn printed(&self) -> Option<&Printed> {
        let lines = self.lines.as_ref()?;
        self.outcome(|_| ());
        lines.printed()
    }

    /// Waits for a dispatch that prints, unless who called wants to leave.
    fn wait_for_lines(&self) {
        let (Some(_), State::Task(task)) = (&self.lines, &self.state) else {
            return;
        };
        if executor().wait_or_leave(task).is_ok() {
            self.outcome(|_| ());
        }
    }

    fn outcome<R>(&self, f: impl FnOnce(&mut Outcome) -> R) -> R {
        let without_run = |at: Instant, fault| Outcome {
            fault,
            inherited: Vec::new(),
            report: None,
            times: Timestamps {
                submitted: at,
                started: at,
                finished: at,
            },
        };
        let task = match &self.state {
            State::Empty(submitted) => {
                self.deliver(None);
                return f(&mut without_run(*submitted, None));
            }
            State::Task(task) if !task.is_here() => {
                let forked = || Fault::left_behind("the dispatch");
                let outcome = task.outcome_before_fork();
                return f(
                    &mut outcome.unwrap_or_else(|| without_run(task.submitted, Some(forked())))
                );
            }
            State::Task(task) => task,
        };
        executor().wait(task);
        if self.lines.is_some() {
            let report = match &*lock(&task.phase) {
                Phase::Finished(outcome) => outcome.report.clone(),
                Phase::Waiting | Phase::Ready => None,
            };
            // Whom they go to may look at the dispatch.
            self.deliver(report.as_deref());
        }
        match &mut *lock(&task.phase) {
            Phase::Finished(outcome) => f(outcome),
            Phase::Waiting | Phase::Ready => unreachable!("a task that was waited for is finished"),
        }
    }

    /// Hands its lines over, the first time.
    fn deliver(&self, report: Option<&Report>) {
        if let Some(lines) = &self.lines {
            lines.deliver(|| report.map(|r| r.printed.clone()).unwrap_or_default());
        }
    }
}
