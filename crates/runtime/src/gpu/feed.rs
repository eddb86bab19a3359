//! How the line of dispatches before a GPU moves on: they are recorded, sent in batches, completed as batches end.
//!
//! A dispatch of a queue whose buffers all stay on the GPU is recorded by the thread that submits it, and
//! the next one that uses the same buffers too, without waiting: the GPU's own queue keeps their order (O3).
//! A batch goes to the GPU when nothing is under way there, when it is large enough to keep the GPU busy, and
//! when somebody waits. A thread of the line's own sends and waits while there is anything to do, so that
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
use super::submission_queue::{Batch, Line, Thread};
use crate::Error;
use crate::executor::executor;
use crate::sync::lock;
use crate::task::Task;

/// How often a thread that waits looks whether a dispatch is asked to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long the line's thread stays without anything to do.
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
            self.submit(&mut lock(&self.0.line));
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

    /// Waits until it has been looked at what dispatches said of their rounds that belong to no task.
    ///
    /// # Errors
    /// What went wrong with them, or an earlier failure of the GPU.
    pub(crate) fn wait_for_watched(&self) -> Result<(), Error> {
        let mut line = lock(&self.0.line);
        let number = line.sent;
        while line.batches.iter().any(|b| b.number <= number && b.unowned) {
            line = self.wait_for_end(line);
        }
        drop(line);
        self.check()
    }

    /// Waits a while for the end of a batch under way.
    fn wait_for_end<'a>(&'a self, mut line: MutexGuard<'a, Line>) -> MutexGuard<'a, Line> {
        if !self.call_thread(&mut line) {
            drop(line);
            self.reap();
            return lock(&self.0.line);
        }
        let waited = self.0.reaped.wait_timeout(line, LOOK);
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
        if task.is_in_line() || (task.time_limit.is_none() && !self.0.is_processor) {
            return Ok(true);
        }
        let mut line = lock(&self.0.line);
        // What others send meanwhile shows that the GPU goes on.
        let number = line.sent;
        while line
            .batches
            .front()
            .is_some_and(|batch| batch.number <= number)
        {
            if task.is_asked_to_stop() {
                if task.is_out_of_time() {
                    task.fail(Error::refused(
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
            line = self.wait_for_end(line);
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
        let mut line = lock(&self.0.line);
        self.record(&mut line.recording, pieces, &given, args, Some(task));
        self.submit_or_fail(&mut line, Some(task));
        let number = line.sent;
        if !self.call_thread(&mut line) {
            drop(line);
            while self.reap() {}
            line = lock(&self.0.line);
        }
        while line.done < number {
            if task.is_asked_to_stop() {
                return Ok(false);
            }
            let (back, _) = self
                .0
                .reaped
                .wait_timeout(line, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            line = back;
        }
        drop(line);
        self.check()?;
        Ok(!task.has_failed() && !task.is_asked_to_stop())
    }

    /// Sends what was recorded, as one batch, of which `awaited` may be one.
    fn submit_batch(&self, line: &mut Line, awaited: Option<&Arc<Task>>) {
        let timed = awaited.is_some() || !line.tasks.is_empty();
        let Some(sent) = self.send_batch(&mut line.recording, timed) else {
            return;
        };
        line.sent += 1;
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
        line.batches.push_back(Batch {
            number: line.sent,
            index: Some(sent.index),
            sent: sent.at,
            noted,
            watch,
            unowned,
            tasks: std::mem::take(&mut line.tasks),
            awaited: awaited.cloned(),
            failed: self.check().err(),
        });
    }

    /// Submits what was recorded.
    pub(crate) fn submit(&self, line: &mut Line) {
        self.submit_batch(line, None);
        if line.batches.back().is_some_and(|batch| batch.unowned) {
            self.call_thread(line);
        }
    }

    /// Records a dispatch of a queue, which is completed when it has ended.
    ///
    /// # Errors
    /// As [`Gpu::dispatch_pieces`].
    pub(crate) fn dispatch_in_line(
        &self,
        program: &GpuProgram,
        pieces: &Pieces,
        args: &[GpuArg<'_>],
        task: &Arc<Task>,
    ) -> Result<(), Error> {
        let given = self.fitted(program, args)?;
        let mut line = lock(&self.0.line);
        self.record(&mut line.recording, pieces, &given, args, Some(task));
        task.set_off();
        line.tasks.push(task.clone());
        let count = line.tasks.len();
        if count >= BATCH || (count >= WORTHWHILE && line.batches.len() < 2) {
            self.submit_or_fail(&mut line, None);
        }
        if !self.call_thread(&mut line) {
            // Where no thread can be had, this one waits.
            self.submit_or_fail(&mut line, None);
            drop(line);
            while self.reap() {}
        }
        Ok(())
    }

    /// Makes the line's thread look for something to do; gives whether there is one.
    fn call_thread(&self, line: &mut Line) -> bool {
        match line.thread {
            Thread::Working => return true,
            Thread::Waiting => {
                line.thread = Thread::Working;
                self.0.recorded.notify_one();
                return true;
            }
            Thread::Absent => {}
        }
        let gpu = self.clone();
        let builder = std::thread::Builder::new().name("invar-gpu".to_string());
        let started = builder.spawn(move || gpu.feed()).is_ok();
        if started {
            line.thread = Thread::Working;
        }
        started
    }

    /// What the line's thread does.
    fn feed(self) {
        let mut line = lock(&self.0.line);
        loop {
            if line.batches.is_empty() && !line.tasks.is_empty() {
                self.submit_or_fail(&mut line, None);
            }
            if !line.batches.is_empty() {
                drop(line);
                self.reap();
                line = lock(&self.0.line);
                continue;
            }
            line.thread = Thread::Waiting;
            let (back, waited) = self
                .0
                .recorded
                .wait_timeout(line, LINGER)
                .unwrap_or_else(PoisonError::into_inner);
            line = back;
            if waited.timed_out() && line.thread == Thread::Waiting {
                line.thread = Thread::Absent;
                return;
            }
            line.thread = Thread::Working;
        }
    }

    /// As [`Gpu::submit_batch`]; where that fails altogether, the dispatches that were recorded fail.
    fn submit_or_fail(&self, line: &mut Line, awaited: Option<&Arc<Task>>) {
        let failed = guarded(|| {
            self.submit_batch(line, awaited);
            Ok(())
        });
        if let Err(error) = failed {
            line.recording.clear();
            line.sent += 1;
            line.batches.push_back(Batch {
                number: line.sent,
                index: None,
                sent: Instant::now(),
                noted: None,
                watch: None,
                unowned: false,
                tasks: std::mem::take(&mut line.tasks),
                awaited: awaited.cloned(),
                failed: Some(error),
            });
        }
    }

    /// Sends a dispatch that waits in line, for somebody who waits for it.
    pub(crate) fn hurry(&self) {
        let mut line = lock(&self.0.line);
        if !line.tasks.is_empty() {
            self.submit_or_fail(&mut line, None);
        }
    }

    /// Completes what is asked to stop.
    pub(crate) fn let_go(&self) {
        let mut line = lock(&self.0.line);
        let asked = |task: &mut Arc<Task>| task.is_asked_to_stop();
        let mut stopped: Vec<Arc<Task>> = line.tasks.extract_if(.., asked).collect();
        for batch in &mut line.batches {
            stopped.extend(batch.tasks.extract_if(.., asked));
        }
        drop(line);
        complete(stopped);
    }

    /// Waits for the oldest batch under way and completes its dispatches. Gives whether there was one.
    fn reap(&self) -> bool {
        let (number, index, noted, watch) = match lock(&self.0.line).batches.front_mut() {
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
        let mut line = lock(&self.0.line);
        // Of a device that was lost nothing is to be waited for.
        let lost = self.is_lost();
        let mut ended = Vec::new();
        while line
            .batches
            .front()
            .is_some_and(|batch| batch.number <= number || lost)
        {
            let Some(batch) = line.batches.pop_front() else {
                break;
            };
            let ticks = waited.as_ref().ok().copied().flatten();
            let [started, finished] = line.times(&batch, ticks, now);
            line.ended = finished;
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
            line.done = batch.number;
            ended.extend(batch.tasks);
        }
        drop(line);
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
