//! How the submission queue of a GPU moves on: they are recorded, sent in batches, completed as batches end.
//!
//! A dispatch of a queue whose buffers all stay on the GPU is recorded by the thread that submits it, and
//! the next one that uses the same buffers too, without waiting: the GPU's own queue keeps their order (O3).
//! A batch goes to the GPU when nothing is under way there, when it is large enough to keep the GPU busy, and
//! when somebody waits. A thread of the queue's own sends and waits while there is anything to do, so that
//! dispatches end although they are not asked for; it ends soon after the last of them. All others wait for it.
//!
//! Invariants
//! - Batches end in the order sent, and the dispatches of a batch are completed together.
//! - A dispatch is completed by the last of two: the one that recorded it and the one that saw it end. What
//!   was asked to stop is completed before that; the GPU goes on with it.
//! - No lock is held while the GPU is waited for. One thread does that, without end: with two a driver was
//!   seen to take milliseconds to answer either, and wgpu panics where a wait with an end meets another
//!   thread's look at the same moment.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use invar_ir::Rule;

use super::buffer::GpuArg;
use super::clock::Stopwatch;
use super::handle::{Gpu, guarded};
use super::iteration_guard::{BATCH, Watch};
use super::mapping::Mapping;
use super::program::GpuProgram;
use super::recording::Pieces;
use super::submission_queue::{Batch, SubmissionQueue, Thread};
use crate::Error;
use crate::executor::executor;
use crate::sync::lock;
use crate::task::Task;

/// How often a thread that waits looks whether a dispatch is asked to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long the thread of submissions stays without anything to do.
const LINGER: Duration = Duration::from_millis(200);
/// Dispatches that are worth a submission of their own while the GPU is busy.
const WORTHWHILE: usize = 32;

impl Gpu {
    /// Submits what was recorded.
    ///
    /// # Errors
    /// An earlier failure of the GPU.
    pub fn flush(&self) -> Result<(), Error> {
        self.check_process()?;
        guarded(|| {
            self.submit(&mut lock(&self.0.submissions));
            self.check()
        })
    }

    /// Submits what was recorded and waits until all of it has run.
    ///
    /// # Errors
    /// A failure of the GPU.
    pub fn wait(&self) -> Result<(), Error> {
        self.flush()?;
        self.poll(None)?;
        self.wait_for_watched()
    }

    /// Waits until it has been looked at what dispatches said of their iterations that belong to no task.
    ///
    /// # Errors
    /// What went wrong with them, or an earlier failure of the GPU.
    pub(crate) fn wait_for_watched(&self) -> Result<(), Error> {
        let mut submissions = lock(&self.0.submissions);
        let number = submissions.sent;
        while submissions
            .batches
            .iter()
            .any(|b| b.number <= number && b.unowned)
        {
            submissions = self.wait_for_end(submissions);
        }
        drop(submissions);
        self.check()
    }

    /// Waits a while for the end of a batch under way.
    fn wait_for_end<'a>(
        &'a self,
        mut submissions: MutexGuard<'a, SubmissionQueue>,
    ) -> MutexGuard<'a, SubmissionQueue> {
        if !self.call_thread(&mut submissions) {
            drop(submissions);
            self.reap();
            return lock(&self.0.submissions);
        }
        let waited = self.0.reaped.wait_timeout(submissions, LOOK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until a dispatch that has a thread of its own may go to the GPU: where its time is limited, and
    /// where the GPU is a processor, until what is under way there has ended, for a driver that is busy may keep
    /// waiting who sends more, and who waits here can be asked to stop. Gives whether it may; if not, it was.
    ///
    /// # Errors
    /// The GPU is another process's.
    pub(crate) fn wait_for_turn(&self, task: &Arc<Task>) -> Result<bool, Error> {
        self.check_process()?;
        if task.is_in_order() || (task.time_limit.is_none() && !self.0.is_processor) {
            return Ok(true);
        }
        let mut submissions = lock(&self.0.submissions);
        // What others send meanwhile shows that the GPU goes on.
        let number = submissions.sent;
        while submissions
            .batches
            .front()
            .is_some_and(|batch| batch.number <= number)
        {
            if task.is_asked_to_stop() {
                if task.is_out_of_time() {
                    task.fail(Error::new(
                        Rule::DeadlineExceeded,
                        format!(
                            "the dispatch did not begin within the {} s that its queue allows: an earlier \
                             dispatch, perhaps one that was given up, still occupies the GPU, and nothing \
                             stops a GPU",
                            task.time_limit.unwrap_or_default().as_secs_f64()
                        ),
                    ));
                }
                return Ok(false);
            }
            submissions = self.wait_for_end(submissions);
        }
        Ok(true)
    }

    /// Runs a dispatch of a queue and waits until it has ended, or until it is asked to stop; then the GPU
    /// goes on with it, for nothing stops a GPU. Gives whether it has ended well before anybody asked; if
    /// not, the task knows why.
    ///
    /// # Errors
    /// Buffers that overlap or lie elsewhere, or an earlier failure of the GPU.
    pub(crate) fn run_and_wait(
        &self,
        program: &GpuProgram,
        pieces: &Pieces,
        args: &[GpuArg<'_>],
        task: &Arc<Task>,
    ) -> Result<bool, Error> {
        let given = self.fitted(program, args)?;
        let mut submissions = lock(&self.0.submissions);
        self.record(&mut submissions.recording, pieces, &given, args, Some(task));
        self.submit_or_fail(&mut submissions, Some(task));
        let number = submissions.sent;
        if !self.call_thread(&mut submissions) {
            drop(submissions);
            while self.reap() {}
            submissions = lock(&self.0.submissions);
        }
        while submissions.done < number {
            if task.is_asked_to_stop() {
                return Ok(false);
            }
            let (back, _) = self
                .0
                .reaped
                .wait_timeout(submissions, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            submissions = back;
        }
        drop(submissions);
        self.check()?;
        Ok(!task.has_failed() && !task.is_asked_to_stop())
    }

    /// Sends what was recorded, as one batch, of which `awaited` may be one.
    fn submit_batch(&self, submissions: &mut SubmissionQueue, awaited: Option<&Arc<Task>>) {
        let timed = awaited.is_some() || !submissions.tasks.is_empty();
        let Some(sent) = self.send_batch(&mut submissions.recording, timed) else {
            return;
        };
        submissions.sent += 1;
        if !timed && sent.watch.is_none() {
            if let Some(stopwatch) = sent.stopwatch {
                self.put_back(stopwatch);
            }
            return;
        }
        let noted = sent.stopwatch.map(|stopwatch| {
            let mapping = stopwatch.ask();
            (stopwatch, mapping)
        });
        let unowned = sent.watch.as_ref().is_some_and(Watch::has_unowned);
        let watch = sent.watch.map(|watch| {
            let said = watch.ask();
            (watch, said)
        });
        submissions.batches.push_back(Batch {
            number: submissions.sent,
            index: Some(sent.index),
            sent: sent.at,
            noted,
            watch,
            unowned,
            tasks: std::mem::take(&mut submissions.tasks),
            awaited: awaited.cloned(),
            failed: self.check().err(),
        });
    }

    /// Submits what was recorded.
    pub(crate) fn submit(&self, submissions: &mut SubmissionQueue) {
        self.submit_batch(submissions, None);
        if submissions
            .batches
            .back()
            .is_some_and(|batch| batch.unowned)
        {
            self.call_thread(submissions);
        }
    }

    /// Records a dispatch of a queue, which is completed when it has ended.
    ///
    /// # Errors
    /// As [`Gpu::dispatch_pieces`].
    pub(crate) fn dispatch_in_order(
        &self,
        program: &GpuProgram,
        pieces: &Pieces,
        args: &[GpuArg<'_>],
        task: &Arc<Task>,
    ) -> Result<(), Error> {
        let given = self.fitted(program, args)?;
        let mut submissions = lock(&self.0.submissions);
        self.record(&mut submissions.recording, pieces, &given, args, Some(task));
        task.set_off();
        submissions.tasks.push(task.clone());
        let count = submissions.tasks.len();
        if count >= BATCH || (count >= WORTHWHILE && submissions.batches.len() < 2) {
            self.submit_or_fail(&mut submissions, None);
        }
        if !self.call_thread(&mut submissions) {
            // Where no thread can be had, this one waits.
            self.submit_or_fail(&mut submissions, None);
            drop(submissions);
            while self.reap() {}
        }
        Ok(())
    }

    /// Makes the thread of submissions look for something to do; gives whether there is one.
    fn call_thread(&self, submissions: &mut SubmissionQueue) -> bool {
        match submissions.thread {
            Thread::Working => return true,
            Thread::Waiting => {
                submissions.thread = Thread::Working;
                self.0.recorded.notify_one();
                return true;
            }
            Thread::Absent => {}
        }
        let gpu = self.clone();
        let builder = std::thread::Builder::new().name("invar-gpu".to_string());
        let started = builder.spawn(move || gpu.feed()).is_ok();
        if started {
            submissions.thread = Thread::Working;
        }
        started
    }

    /// What the thread of submissions does.
    fn feed(self) {
        let mut submissions = lock(&self.0.submissions);
        loop {
            if submissions.batches.is_empty() && !submissions.tasks.is_empty() {
                self.submit_or_fail(&mut submissions, None);
            }
            if !submissions.batches.is_empty() {
                drop(submissions);
                self.reap();
                submissions = lock(&self.0.submissions);
                continue;
            }
            submissions.thread = Thread::Waiting;
            let (back, waited) = self
                .0
                .recorded
                .wait_timeout(submissions, LINGER)
                .unwrap_or_else(PoisonError::into_inner);
            submissions = back;
            if waited.timed_out() && submissions.thread == Thread::Waiting {
                submissions.thread = Thread::Absent;
                return;
            }
            submissions.thread = Thread::Working;
        }
    }

    /// As [`Gpu::submit_batch`]; where that fails altogether, the dispatches that were recorded fail.
    fn submit_or_fail(&self, submissions: &mut SubmissionQueue, awaited: Option<&Arc<Task>>) {
        let failed = guarded(|| {
            self.submit_batch(submissions, awaited);
            Ok(())
        });
        if let Err(error) = failed {
            submissions.recording.clear();
            submissions.sent += 1;
            submissions.batches.push_back(Batch {
                number: submissions.sent,
                index: None,
                sent: Instant::now(),
                noted: None,
                watch: None,
                unowned: false,
                tasks: std::mem::take(&mut submissions.tasks),
                awaited: awaited.cloned(),
                failed: Some(error),
            });
        }
    }

    /// Sends a dispatch that waits in the queue, for somebody who waits for it.
    pub(crate) fn hurry(&self) {
        let mut submissions = lock(&self.0.submissions);
        if !submissions.tasks.is_empty() {
            self.submit_or_fail(&mut submissions, None);
        }
    }

    /// Completes what is asked to stop.
    pub(crate) fn let_go(&self) {
        let mut submissions = lock(&self.0.submissions);
        let asked = |task: &mut Arc<Task>| task.is_asked_to_stop();
        let mut stopped: Vec<Arc<Task>> = submissions.tasks.extract_if(.., asked).collect();
        for batch in &mut submissions.batches {
            stopped.extend(batch.tasks.extract_if(.., asked));
        }
        drop(submissions);
        complete(stopped);
    }

    /// Waits for the oldest batch under way and completes its dispatches. Gives whether there was one.
    fn reap(&self) -> bool {
        let (number, index, noted, watch) = match lock(&self.0.submissions).batches.front_mut() {
            Some(batch) => (
                batch.number,
                batch.index.clone(),
                batch.noted.take(),
                batch.watch.take(),
            ),
            None => return false,
        };
        let waited = self.wait_for_batch(index, noted, watch);
        let now = Instant::now();
        let mut submissions = lock(&self.0.submissions);
        // Of a device that was lost nothing is to be waited for.
        let lost = self.is_lost();
        let mut ended = Vec::new();
        while submissions
            .batches
            .front()
            .is_some_and(|batch| batch.number <= number || lost)
        {
            let Some(batch) = submissions.batches.pop_front() else {
                break;
            };
            let ticks = waited.as_ref().ok().copied().flatten();
            let [started, finished] = submissions.times(&batch, ticks, now);
            submissions.ended = finished;
            let failed = waited.as_ref().err().or(batch.failed.as_ref());
            if let (true, Some(error)) = (batch.unowned, failed) {
                self.keep(error.clone());
            }
            for task in batch.tasks.iter().chain(&batch.awaited) {
                task.ran(started, finished);
                if let Some(error) = failed {
                    task.fail(error.clone());
                }
            }
            for task in &batch.tasks {
                // In this order, whichever of the two completes each.
                executor().note_end(task);
            }
            submissions.done = batch.number;
            ended.extend(batch.tasks);
        }
        drop(submissions);
        self.0.reaped.notify_all();
        complete(ended);
        true
    }

    /// Waits for a batch, looks at what is watched of it, and gives what was noted of its times.
    fn wait_for_batch(
        &self,
        index: Option<wgpu::SubmissionIndex>,
        noted: Option<(Stopwatch, Mapping)>,
        watch: Option<(Watch, Mapping)>,
    ) -> Result<Option<[u64; 2]>, Error> {
        let poll = || index.clone().map_or(Ok(()), |index| self.poll(Some(index)));
        let mut ticks = None;
        if let Some((stopwatch, mapping)) = noted {
            ticks = mapping.look(poll, |noted| Stopwatch::ticks(noted).first().copied())?;
            self.put_back(stopwatch);
        } else {
            poll()?;
        }
        if let Some((watch, said)) = watch {
            self.check_iteration_guards(watch, said, poll)?;
        }
        Ok(ticks)
    }
}

/// Completes dispatches, or leaves that to who recorded them.
fn complete(mut tasks: Vec<Arc<Task>>) {
    tasks.retain(|task| task.arrived());
    executor().complete_all(tasks);
}
