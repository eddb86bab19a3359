//! What was recorded for a GPU.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::clock::Stopwatch;
use super::constants::Constants;
use super::iteration_guard::Watch;
use super::variant::Variant;

/// A part of a grid that one variant runs.
pub(crate) struct Piece {
    pub(crate) variant: Arc<Variant>,
    /// The grid, as the variant sees it.
    pub(crate) threads: [u32; 3],
    pub(crate) all_threadgroups: [u32; 3],
    /// Threadgroups to run, from `first` on in x.
    pub(crate) threadgroups: [u32; 3],
    pub(crate) first: u32,
}

/// The parts of a dispatch: what fills whole workgroups, and the rest.
pub(crate) type Pieces = [Option<Piece>; 2];

/// What was recorded and not submitted yet.
pub(crate) struct Recording {
    pub(super) steps: Vec<Step>,
    /// Where the steps' values and sizes are.
    pub(super) places: Vec<u32>,
    pub(super) constants: Constants,
    /// Of a batch whose first part was sent already: when, and what noted its beginning.
    pub(super) begun: Option<(Instant, Option<Stopwatch>)>,
    /// The dispatches whose iterations are watched.
    pub(super) watch: Option<Watch>,
}

pub(super) struct Step {
    pub(super) variant: Arc<Variant>,
    pub(super) group: wgpu::BindGroup,
    pub(super) places: Range<usize>,
    pub(super) workgroups: [u32; 3],
}

/// A batch that was sent.
pub(crate) struct SubmittedBatch {
    pub(crate) index: wgpu::SubmissionIndex,
    /// When its first part was.
    pub(crate) at: Instant,
    /// What has noted its times.
    pub(crate) stopwatch: Option<Stopwatch>,
    /// Its dispatches whose iterations are watched.
    pub(crate) watch: Option<Watch>,
}

impl Recording {
    pub(crate) fn new(device: &wgpu::Device, limits: &wgpu::Limits) -> Recording {
        Recording {
            steps: Vec::new(),
            places: Vec::new(),
            constants: Constants::new(device, limits),
            begun: None,
            watch: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Forgets what was recorded.
    pub(crate) fn clear(&mut self) {
        self.sent();
        self.watch = None;
    }

    /// What was recorded is on its way.
    pub(super) fn sent(&mut self) {
        self.steps.clear();
        self.places.clear();
        self.begun = None;
    }

    /// Who is watched of what was sent.
    pub(crate) fn take_watch(&mut self) -> Option<Watch> {
        self.watch.take()
    }

    /// Repeats steps in a pass; what is set stays so from one to the next.
    pub(super) fn run(&self, pass: &mut wgpu::ComputePass<'_>, steps: &[Step]) {
        let mut last: Option<&Step> = None;
        for step in steps {
            let places = &self.places[step.places.clone()];
            if last.is_none_or(|last| !Arc::ptr_eq(&last.variant, &step.variant)) {
                pass.set_pipeline(&step.variant.pipeline);
            }
            let same = |last: &Step| {
                last.group == step.group && self.places[last.places.clone()] == *places
            };
            if !last.is_some_and(same) {
                pass.set_bind_group(0, &step.group, places);
            }
            let [x, y, z] = step.workgroups;
            pass.dispatch_workgroups(x, y, z);
            last = Some(step);
        }
    }
}
