//! Recording dispatches, and giving what was recorded to the GPU.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

use invar_codegen::analysis::order::LaunchOrder;
use invar_codegen::wgsl::{Given, Launch, dispatch_parts};

use super::buffer::GpuArg;
use super::clock::Noted;
use super::code::Binding;
use super::constants::bound_bytes;
use super::handle::Gpu;
use super::iteration_guard::ITERATION_GUARD_BYTES;
use super::recording::{Pieces, Recording, Step, SubmittedBatch};
use super::variant::Variant;
use crate::sync::lock;
use crate::task::Task;

impl Gpu {
    /// Records the parts of a dispatch, which may be that of a task; gives how many there are.
    pub(crate) fn record(
        &self,
        recording: &mut Recording,
        pieces: &Pieces,
        given: &[Given<'_>],
        args: &[GpuArg<'_>],
        task: Option<&Arc<Task>>,
    ) -> usize {
        let mut variants = pieces.iter().flatten().map(|piece| &piece.variant);
        let watched = variants
            .find(|variant| variant.is_watched())
            .map(|variant| {
                let watch = recording.watch.get_or_insert_with(|| self.watch());
                watch.place(&variant.kernel, task)
            });
        let limit = self.0.limits.max_compute_workgroups_per_dimension;
        let mut count = 0;
        for piece in pieces.iter().flatten() {
            let (mut launched, mut x) = (piece.threadgroups, 0);
            if piece.variant.code.launch_order() == LaunchOrder::ColumnMajor {
                launched.swap(0, 1);
                x = 1;
            }
            for mut part in dispatch_parts(launched, limit) {
                part.first_threadgroup[x] += piece.first;
                let values = piece.variant.code.values(&Launch {
                    threads: piece.threads,
                    threadgroups: piece.all_threadgroups,
                    part,
                    given,
                });
                if !recording.constants.have_room_for(&values) {
                    self.send_first_part(recording);
                    recording.constants.clear();
                }
                let first = recording.places.len();
                for value in &values {
                    let place = recording.constants.place(value);
                    recording.places.push(place);
                }
                // It comes behind the values.
                if piece.variant.is_watched() {
                    recording.places.extend(watched);
                }
                recording.steps.push(Step {
                    variant: piece.variant.clone(),
                    group: self.group(recording, &piece.variant, args, &values),
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
        recording: &Recording,
        variant: &Variant,
        args: &[GpuArg<'_>],
        values: &[Vec<u8>],
    ) -> wgpu::BindGroup {
        let watch = recording.watch.as_ref();
        let bound = variant.bindings.iter().filter_map(|binding| match binding {
            Binding::Param(param, _) => match args.get(*param)? {
                GpuArg::Buffer(buffer) => Some(&buffer.binding),
                GpuArg::Scalar(_) | GpuArg::ThreadgroupLength(_) => None,
            },
            Binding::IterationGuard => watch.map(|watch| &watch.guard.binding),
            Binding::Contents(_) | Binding::Values => None,
        });
        lock(&self.0.groups).get_or_make(std::iter::once(&variant.binding).chain(bound), || {
            self.bind(recording, variant, args, values)
        })
    }

    fn bind(
        &self,
        recording: &Recording,
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
                        buffer: recording.constants.memory(),
                        offset: 0,
                        size: NonZeroU64::new(bound_bytes(values.next()?.len())),
                    }),
                    Binding::IterationGuard => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &recording.watch.as_ref()?.guard.memory,
                        offset: 0,
                        size: NonZeroU64::new(ITERATION_GUARD_BYTES),
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

    /// Sends what was recorded, since there is no room for more; what follows is of the same batch.
    fn send_first_part(&self, recording: &mut Recording) {
        if recording.steps.is_empty() {
            return;
        }
        if let Some(begun) = recording.begun.take() {
            self.send(recording, None);
            recording.begun = Some(begun);
            return;
        }
        let at = Instant::now();
        let stopwatch = self.batch_stopwatch();
        let noted = stopwatch.as_ref().map(|stopwatch| Noted {
            stopwatch,
            begin: true,
            end: false,
        });
        self.send(recording, noted);
        recording.begun = Some((at, stopwatch));
    }

    /// Sends the batch that was recorded, if there is anything, with a note of its times or without.
    pub(crate) fn send_batch(
        &self,
        recording: &mut Recording,
        timed: bool,
    ) -> Option<SubmittedBatch> {
        if recording.steps.is_empty() {
            return None;
        }
        let begun = recording.begun.take();
        let begin = begun.is_none();
        let (at, stopwatch) = begun.unwrap_or_else(|| {
            let stopwatch = if timed { self.batch_stopwatch() } else { None };
            (Instant::now(), stopwatch)
        });
        let noted = stopwatch.as_ref().map(|stopwatch| Noted {
            stopwatch,
            begin,
            end: true,
        });
        let index = self.send(recording, noted);
        Some(SubmittedBatch {
            index,
            at,
            stopwatch,
            watch: recording.take_watch(),
        })
    }

    /// Gives what was recorded to the GPU.
    pub(crate) fn send(
        &self,
        recording: &mut Recording,
        noted: Option<Noted<'_>>,
    ) -> wgpu::SubmissionIndex {
        recording.constants.send(&self.0.queue);
        let device = &self.0.device;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let parts = noted.map_or(1, |noted| noted.stopwatch.parts);
        let steps = recording.steps.len() / parts as usize;
        for (i, steps) in recording.steps.chunks(steps.max(1)).enumerate() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: noted.as_ref().map(|noted| noted.writes(i as u32)),
            });
            recording.run(&mut pass, steps);
        }
        if let Some(noted) = noted {
            noted.bring(&mut encoder);
        }
        if let Some(watch) = &recording.watch {
            watch.bring(&mut encoder);
        }
        let sent = self.0.queue.submit([encoder.finish()]);
        recording.sent();
        sent
    }
}
