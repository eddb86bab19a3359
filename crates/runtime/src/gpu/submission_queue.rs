//! The dispatches before a GPU: what was recorded, sent and has not ended (`feed.rs` moves it on).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::clock::{Clock, Stopwatch};
use super::iteration_guard::Watch;
use super::mapping::Mapping;
use super::recording::Recording;
use crate::Error;
use crate::task::Task;

/// What was recorded, and what is under way.
pub(crate) struct SubmissionQueue {
    pub(crate) recording: Recording,
    /// The dispatches of queues that were recorded and not sent.
    pub(super) tasks: Vec<Arc<Task>>,
    /// What was sent with such dispatches and has not ended, the oldest first.
    pub(super) batches: VecDeque<Batch>,
    pub(super) sent: u64,
    /// The number of the last batch that has ended.
    pub(super) done: u64,
    /// When the last batch ended.
    pub(super) ended: Instant,
    /// The GPU's own clock, if it can be read.
    pub(super) clock: Option<Clock>,
    pub(super) thread: Thread,
}

pub(super) struct Batch {
    pub(super) number: u64,
    /// What to wait for; nothing if it could not be sent.
    pub(super) index: Option<wgpu::SubmissionIndex>,
    pub(super) sent: Instant,
    /// What has noted its times, and where they come.
    pub(super) noted: Option<(Stopwatch, Mapping)>,
    /// What is watched of it, and where that comes.
    pub(super) watch: Option<(Watch, Mapping)>,
    /// Whether a dispatch that is watched has no task that would tell how it ended.
    pub(super) unowned: bool,
    pub(super) tasks: Vec<Arc<Task>>,
    /// A dispatch of the batch whose own thread waits for the end, and completes it.
    pub(super) awaited: Option<Arc<Task>>,
    pub(super) failed: Option<Error>,
}

/// What the queue's thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    Absent,
    Waiting,
    Working,
}

impl SubmissionQueue {
    pub(crate) fn new(
        device: &wgpu::Device,
        limits: &wgpu::Limits,
        clock_step_ns: Option<f32>,
    ) -> SubmissionQueue {
        SubmissionQueue {
            recording: Recording::new(device, limits),
            tasks: Vec::new(),
            batches: VecDeque::new(),
            sent: 0,
            done: 0,
            ended: Instant::now(),
            clock: clock_step_ns.map(Clock::new),
            thread: Thread::Absent,
        }
    }
}

impl SubmissionQueue {
    /// When a batch began and ended: by the GPU's own clock, else when the host sent it and saw its end. None
    /// begins before the one before it has ended.
    pub(super) fn times(
        &mut self,
        batch: &Batch,
        ticks: Option<[u64; 2]>,
        now: Instant,
    ) -> [Instant; 2] {
        let told = self
            .clock
            .as_mut()
            .zip(ticks)
            .and_then(|(clock, ticks)| clock.times(ticks, batch.sent, now));
        told.unwrap_or([batch.sent, now])
            .map(|time| time.max(self.ended))
    }
}
