//! What was recorded for a GPU, and how it goes there.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use invar_codegen::wgsl::{Given, Launch, parts};

use super::code::Binding;
use super::constants::{Constants, bound_bytes};
use super::program::Variant;
use super::{Gpu, GpuArg};
use crate::task::lock;

/// Dispatches of a batch.
pub(crate) const BATCH: usize = 64;

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
    steps: Vec<Step>,
    /// Where the steps' values and sizes are.
    places: Vec<u32>,
    constants: Constants,
}

struct Step {
    variant: Arc<Variant>,
    group: wgpu::BindGroup,
    places: Range<usize>,
    workgroups: [u32; 3],
}

/// Where the times of a batch go.
pub(crate) struct Clock<'a> {
    pub(crate) set: &'a wgpu::QuerySet,
    pub(crate) count: u32,
    pub(crate) resolved: &'a wgpu::Buffer,
    pub(crate) read: &'a wgpu::Buffer,
}

impl Recording {
    pub(crate) fn new(device: &wgpu::Device, limits: &wgpu::Limits) -> Recording {
        Recording {
            steps: Vec::new(),
            places: Vec::new(),
            constants: Constants::new(device, limits),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Forgets what was recorded.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.places.clear();
    }

    /// Repeats steps in a pass; what is set stays so from one to the next.
    fn run(&self, pass: &mut wgpu::ComputePass<'_>, steps: &[Step]) {
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

impl Gpu {
    /// Records the parts of a dispatch; gives how many there are.
    pub(crate) fn record(
        &self,
        recording: &mut Recording,
        pieces: &Pieces,
        given: &[Given<'_>],
        args: &[GpuArg<'_>],
    ) -> usize {
        let limit = self.0.limits.max_compute_workgroups_per_dimension;
        let mut count = 0;
        for piece in pieces.iter().flatten() {
            let (mut launched, mut x) = (piece.threadgroups, 0);
            if piece.variant.code.is_y_first() {
                launched.swap(0, 1);
                x = 1;
            }
            for mut part in parts(launched, limit) {
                part.first_threadgroup[x] += piece.first;
                let values = piece.variant.code.values(&Launch {
                    threads: piece.threads,
                    threadgroups: piece.all_threadgroups,
                    part,
                    given,
                });
                if !recording.constants.have_room_for(&values) {
                    self.send(recording, None);
                    recording.constants.clear();
                }
                let first = recording.places.len();
                for value in &values {
                    let place = recording.constants.place(value);
                    recording.places.push(place);
                }
                recording.steps.push(Step {
                    variant: piece.variant.clone(),
                    group: self.group(&recording.constants, &piece.variant, args, &values),
                    places: first..recording.places.len(),
                    workgroups: part.workgroups,
                });
                count += 1;
            }
        }
        count
    }

    /// The bind group of a dispatch.
    fn group(
        &self,
        constants: &Constants,
        variant: &Variant,
        args: &[GpuArg<'_>],
        values: &[Vec<u8>],
    ) -> wgpu::BindGroup {
        let bound = variant.bindings.iter().filter_map(|binding| match binding {
            Binding::Param(param, _) => match args.get(*param)? {
                GpuArg::Buffer(buffer) => Some(&buffer.part),
                GpuArg::Scalar(_) | GpuArg::ThreadgroupLength(_) => None,
            },
            Binding::Contents(_) | Binding::Values => None,
        });
        lock(&self.0.groups).get_or_make(std::iter::once(&variant.part).chain(bound), || {
            self.bind(constants, variant, args, values)
        })
    }

    fn bind(
        &self,
        constants: &Constants,
        variant: &Variant,
        args: &[GpuArg<'_>],
        values: &[Vec<u8>],
    ) -> wgpu::BindGroup {
        let mut contents = variant.contents.iter();
        let mut values = values.iter();
        let bindings = variant.bindings.iter().enumerate();
        let entries: Vec<wgpu::BindGroupEntry<'_>> = bindings
            .filter_map(|(i, binding)| {
                let resource = match binding {
                    Binding::Param(param, _) => match args.get(*param)? {
                        GpuArg::Buffer(buffer) => buffer.memory.as_entire_binding(),
                        GpuArg::Scalar(_) | GpuArg::ThreadgroupLength(_) => return None,
                    },
                    Binding::Contents(_) => contents.next()?.as_entire_binding(),
                    // Where they begin is said at each dispatch.
                    Binding::Values => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: constants.memory(),
                        offset: 0,
                        size: NonZeroU64::new(bound_bytes(values.next()?.len())),
                    }),
                };
                Some(wgpu::BindGroupEntry {
                    binding: i as u32,
                    resource,
                })
            })
            .collect();
        self.0.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &variant.layout,
            entries: &entries,
        })
    }

    /// Gives what was recorded to the GPU, if there is anything.
    pub(crate) fn send(
        &self,
        recording: &mut Recording,
        clock: Option<Clock<'_>>,
    ) -> Option<wgpu::SubmissionIndex> {
        if recording.steps.is_empty() {
            return None;
        }
        recording.constants.send(&self.0.queue);
        let device = &self.0.device;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        match &clock {
            None => {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                recording.run(&mut pass, &recording.steps);
            }
            Some(clock) => {
                let steps = recording.steps.len() / clock.count as usize;
                for (i, parts) in recording.steps.chunks(steps.max(1)).enumerate() {
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                        label: None,
                        timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                            query_set: clock.set,
                            beginning_of_pass_write_index: Some(i as u32 * 2),
                            end_of_pass_write_index: Some(i as u32 * 2 + 1),
                        }),
                    });
                    recording.run(&mut pass, parts);
                }
                encoder.resolve_query_set(clock.set, 0..clock.count * 2, clock.resolved, 0);
                encoder.copy_buffer_to_buffer(
                    clock.resolved,
                    0,
                    clock.read,
                    0,
                    u64::from(clock.count) * 16,
                );
            }
        }
        let sent = self.0.queue.submit([encoder.finish()]);
        recording.clear();
        Some(sent)
    }
}
