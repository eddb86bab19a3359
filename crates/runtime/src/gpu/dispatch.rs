//! Checking dispatches, recording them and giving them to the GPU.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use invar_codegen::passes::coarsen::threads_factor;
use invar_codegen::wgsl::{Given as Bounded, Launch, MAX_ELEMENTS, parts};
use invar_interp::{Dispatch, Given, GridSizes, check_arguments, check_grid};
use invar_ir::{Const, ParamKind, Rule};

use super::code::Binding;
use super::program::{Shape, Variant};
use super::{Gpu, GpuBuffer, GpuProgram, guarded};
use crate::Error;
use crate::task::lock;

/// An argument, in the place of its parameter.
#[derive(Clone, Copy, Debug)]
pub enum GpuArg<'a> {
    /// Memory on the GPU.
    Buffer(&'a GpuBuffer),
    /// The components of a `Scalar` parameter.
    Scalar(&'a [Const]),
    /// The length in elements of a threadgroup parameter.
    ThreadgroupLength(u64),
}

/// What was recorded and not submitted yet.
pub(crate) struct Recording {
    steps: Vec<Step>,
    /// Hidden constants of the steps, each at its offset.
    constants: Vec<u8>,
    /// Where they go.
    constant_memory: wgpu::Buffer,
    /// Offsets are multiples of this.
    offset_alignment: usize,
}

/// A dispatch that was checked, with the pipelines that it needs.
pub(crate) struct Ready<'a> {
    pieces: Vec<Piece>,
    bounded: Vec<Bounded<'a>>,
}

/// A part of a grid that one variant runs.
struct Piece {
    variant: Arc<Variant>,
    /// The grid, as the variant sees it.
    threads: [u32; 3],
    all_threadgroups: [u32; 3],
    /// Threadgroups to run, from `first` on in x.
    threadgroups: [u32; 3],
    first: u32,
}

struct Step {
    variant: Arc<Variant>,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

/// Bytes of hidden constants that a batch may have.
pub(crate) const CONSTANT_BYTES: u64 = 64 << 10;
/// Dispatches of a batch.
pub(crate) const BATCH: usize = 64;

impl Recording {
    pub(crate) fn new(device: &wgpu::Device, limits: &wgpu::Limits) -> Recording {
        Recording {
            steps: Vec::new(),
            constants: Vec::new(),
            constant_memory: device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: CONSTANT_BYTES,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
            offset_alignment: limits.min_uniform_buffer_offset_alignment.max(16) as usize,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.constants.clear();
    }
}

impl Gpu {
    /// Records a dispatch; what was recorded is submitted in batches, and by [`Gpu::flush`],
    /// [`Gpu::wait`] and every access to a buffer. Dispatches run in the order recorded.
    ///
    /// # Errors
    /// A grid or an argument that does not fit (`invalid-dispatch`, `invalid-argument`), buffers that
    /// overlap (`overlapping-buffers`), or an earlier failure of the GPU.
    pub fn dispatch(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'_>],
    ) -> Result<(), Error> {
        guarded(|| {
            let ready = self.ready(program, dispatch, args)?;
            let mut line = lock(&self.0.line);
            self.record(&mut line.recording, &ready, args);
            if line.recording.steps.len() >= BATCH {
                self.submit(&mut line);
            }
            Ok(())
        })
    }

    /// Runs a dispatch several times, one after another, and gives the time that the GPU took for each,
    /// by its own clock.
    ///
    /// # Errors
    /// As [`Gpu::dispatch`]; `unsupported-feature` if the GPU has no clock that can be read.
    pub fn measure(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'_>],
        times: u32,
    ) -> Result<Vec<Duration>, Error> {
        self.measure_queued(program, dispatch, &[args], times)
    }

    /// As [`Gpu::measure`], of dispatches with each of these arguments, queued one behind the other: the
    /// times are those from the beginning of the first to the end of the last. As in any queue, those
    /// that do not write what another uses need not wait for each other.
    ///
    /// # Errors
    /// As [`Gpu::measure`].
    pub fn measure_queued(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        queued: &[&[GpuArg<'_>]],
        times: u32,
    ) -> Result<Vec<Duration>, Error> {
        let Some(step_ns) = self.0.clock_step_ns else {
            return Err(Error::refused(
                Rule::UnsupportedFeature,
                "the GPU has no clock that can be read",
            ));
        };
        guarded(|| {
            self.flush()?;
            let ready = queued
                .iter()
                .map(|args| Ok((self.ready(program, dispatch, args)?, *args)))
                .collect::<Result<Vec<_>, Error>>()?;
            let batch = (BATCH / 2 / queued.len().max(1)).max(1) as u32;
            let mut out = Vec::new();
            while (out.len() as u32) < times {
                let count = (times - out.len() as u32).min(batch);
                out.extend(self.measure_batch(&ready, count, step_ns)?);
            }
            Ok(out)
        })
    }

    /// As [`Gpu::measure_queued`], a number of times that one batch takes.
    fn measure_batch(
        &self,
        queued: &[(Ready<'_>, &[GpuArg<'_>])],
        count: u32,
        step_ns: f32,
    ) -> Result<Vec<Duration>, Error> {
        let device = &self.0.device;
        let mut recording = Recording::new(device, &self.0.limits);
        let mut steps = 0;
        for _ in 0..count {
            for (ready, args) in queued {
                steps += self.record(&mut recording, ready, args);
            }
        }
        if steps == 0 || steps != recording.steps.len() {
            return Err(Error::refused(
                Rule::InvalidDispatch,
                "the grid is empty, or has too many parts to be measured",
            ));
        }
        let set = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: count * 2,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = self.allocate(u64::from(count) * 16, usage)?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let read = self.allocate(u64::from(count) * 16, usage)?;
        let clock = Clock {
            set: &set,
            count,
            resolved: &resolved,
            read: &read,
        };
        self.send(&mut recording, Some(clock));
        let ticks = self.mapped(&read, read.size(), |view| {
            view.chunks_exact(8)
                .map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default()))
                .collect::<Vec<u64>>()
        })?;
        let times = ticks.chunks_exact(2).map(|pair| {
            let ticks = pair[1].saturating_sub(pair[0]);
            Duration::from_nanos((ticks as f64 * f64::from(step_ns)) as u64)
        });
        Ok(times.collect())
    }

    /// Checks a dispatch, and compiles what it needs.
    pub(crate) fn ready<'a>(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'a>],
    ) -> Result<Ready<'a>, Error> {
        let kernel = program.kernel();
        let able = self.capabilities();
        if !Arc::ptr_eq(&self.0, &program.0.gpu.0) {
            let message = format!("kernel `{}` was compiled for another GPU", kernel.name);
            return Err(Error::refused(Rule::InvalidDispatch, message));
        }
        let sizes = check_grid(kernel, &dispatch, able.threads_per_threadgroup)?;
        let given = args.iter().map(|arg| match arg {
            GpuArg::Buffer(_) => Given::Buffer {
                writable: true,
                holds: None,
            },
            GpuArg::Scalar(components) => Given::Scalar(components),
            GpuArg::ThreadgroupLength(length) => Given::ThreadgroupLength(*length),
        });
        check_arguments(
            &program.0.module,
            kernel,
            given,
            able.threadgroup_memory_bytes,
        )?;
        let lengths = args.iter().filter_map(|arg| match arg {
            GpuArg::ThreadgroupLength(length) => Some(*length),
            GpuArg::Buffer(_) | GpuArg::Scalar(_) => None,
        });
        let pieces = self.pieces(
            program,
            dispatch.threadgroup,
            lengths.collect(),
            &sizes,
            args,
        )?;
        self.fitted(program, pieces, args)
    }

    /// A dispatch of these parts, whose arguments are of the kinds of the parameters.
    fn fitted<'a>(
        &self,
        program: &GpuProgram,
        pieces: Vec<Piece>,
        args: &[GpuArg<'a>],
    ) -> Result<Ready<'a>, Error> {
        self.check()?;
        let kernel = program.kernel();
        let refuse = |rule, message: String| Err(Error::refused(rule, message));
        let mut bounded = Vec::with_capacity(args.len());
        for (i, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
            match (&param.kind, arg) {
                (
                    ParamKind::Buffer { element, .. } | ParamKind::Constant { element },
                    GpuArg::Buffer(buffer),
                ) => {
                    if !Arc::ptr_eq(&buffer.gpu.0, &self.0) {
                        let message = format!("argument `{}` lies on another GPU", param.name);
                        return refuse(Rule::InvalidArgument, message);
                    }
                    let size = element
                        .extent(&program.0.module.structs)
                        .map_or(1, |e| e.size_bytes.max(1));
                    let elements = buffer.size_bytes() / size;
                    if elements > MAX_ELEMENTS {
                        let message = format!(
                            "argument `{}` of `{}` has {elements} elements, but a kernel on this GPU \
                             reaches {MAX_ELEMENTS}",
                            param.name, kernel.name
                        );
                        return refuse(Rule::InvalidArgument, message);
                    }
                    bounded.push(Bounded::Elements(elements));
                    self.check_overlap(program, args, i)?;
                }
                (_, GpuArg::Scalar(components)) => bounded.push(Bounded::Scalar(components)),
                (_, GpuArg::ThreadgroupLength(length)) => bounded.push(Bounded::Elements(*length)),
                (_, GpuArg::Buffer(_)) => {
                    let message = format!("argument `{}` is a buffer", param.name);
                    return refuse(Rule::InvalidArgument, message);
                }
            }
        }
        Ok(Ready { pieces, bounded })
    }

    /// Compiles what a dispatch needs before it is submitted, so that the time for that is not its own; not a
    /// pipeline for values that were given before.
    ///
    /// # Errors
    /// What the GPU cannot do.
    pub(crate) fn prepare(
        &self,
        program: &GpuProgram,
        sizes: &GridSizes,
        lengths: Vec<u64>,
    ) -> Result<(), Error> {
        if sizes.count() == 0 {
            return Ok(());
        }
        guarded(|| {
            let pieces = self.pieces(program, sizes.threadgroup, lengths, sizes, &[]);
            pieces.map(|_| ())
        })
    }

    /// Records the parts of a dispatch; gives how many there are.
    pub(crate) fn record(
        &self,
        recording: &mut Recording,
        ready: &Ready<'_>,
        args: &[GpuArg<'_>],
    ) -> usize {
        let limit = self.0.limits.max_compute_workgroups_per_dimension;
        let alignment = recording.offset_alignment;
        let mut count = 0;
        for piece in &ready.pieces {
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
                    given: &ready.bounded,
                });
                let space = |bytes: &Vec<u8>| bytes.len().next_multiple_of(alignment);
                let all: usize = values.iter().map(space).sum();
                if recording.constants.len() + all > CONSTANT_BYTES as usize {
                    self.send(recording, None);
                }
                let mut places = Vec::with_capacity(values.len());
                for bytes in &values {
                    let offset = recording.constants.len();
                    recording.constants.extend_from_slice(bytes);
                    recording.constants.resize(offset + space(bytes), 0);
                    places.push(offset as u64..(offset + bytes.len().next_multiple_of(16)) as u64);
                }
                let group = self.bind(recording, &piece.variant, args, places);
                recording.steps.push(Step {
                    variant: piece.variant.clone(),
                    group,
                    workgroups: part.workgroups,
                });
                count += 1;
            }
        }
        count
    }

    /// What a dispatch consists of: where it is large and the kernel can be made coarser, the threadgroups
    /// that fill whole workgroups in x, and those that are left.
    fn pieces(
        &self,
        program: &GpuProgram,
        threadgroup: [u32; 3],
        lengths: Vec<u64>,
        sizes: &GridSizes,
        args: &[GpuArg<'_>],
    ) -> Result<Vec<Piece>, Error> {
        let full = |d: usize| sizes.threads[d].is_multiple_of(threadgroup[d]);
        let threads: u64 = sizes.threads.iter().map(|n| u64::from(*n)).product();
        let least = self.0.coarse_from_threads.load(Ordering::Relaxed);
        let mut shape = Shape {
            threadgroup,
            lengths,
            full: full(1) && full(2),
            threadgroups_per_workgroup: program.0.coarse,
            threads_per_invocation: 1,
            write_out_rows: threads >= least,
            fixed_scalars: Vec::new(),
            msl: false,
        };
        let limit = self.0.limits.max_compute_workgroups_per_dimension;
        if self.0.takes_msl && sizes.threadgroups.iter().all(|n| *n <= limit) {
            let shape = Shape {
                full: full(0) && shape.full,
                threadgroups_per_workgroup: 1,
                write_out_rows: false,
                msl: true,
                ..shape
            };
            return Ok(vec![Piece {
                variant: program.variant(&shape)?,
                threads: sizes.threads,
                all_threadgroups: sizes.threadgroups,
                threadgroups: sizes.threadgroups,
                first: 0,
            }]);
        }
        if threads >= least {
            shape.fixed_scalars = program.fixed_scalars(threadgroup, args);
        }
        let [long, high, deep] = sizes.threadgroups;
        let mut done = 0;
        let mut pieces = Vec::new();
        if program.0.coarse > 1 && threads >= least {
            let count = sizes.threads[0] / threadgroup[0] / program.0.coarse;
            if count > 0 {
                done = count * program.0.coarse;
                let [_, y, z] = sizes.threads;
                pieces.push(Piece {
                    variant: program.variant(&shape)?,
                    threads: [count * threadgroup[0], y, z],
                    all_threadgroups: [count, high, deep],
                    threadgroups: [count, high, deep],
                    first: 0,
                });
            }
        }
        if done < long {
            shape.full &= full(0);
            shape.threadgroups_per_workgroup = 1;
            if threads >= least && shape.full {
                let module = &program.0.module;
                shape.threads_per_invocation =
                    threads_factor(module, program.0.kernel, threadgroup);
            }
            pieces.push(Piece {
                variant: program.variant(&shape)?,
                threads: sizes.threads,
                all_threadgroups: sizes.threadgroups,
                threadgroups: [long - done, high, deep],
                first: done,
            });
        }
        Ok(pieces)
    }

    /// S3: what one of two parameters may write, the other must not be.
    fn check_overlap(
        &self,
        program: &GpuProgram,
        args: &[GpuArg<'_>],
        second: usize,
    ) -> Result<(), Error> {
        let kernel = program.kernel();
        let writes = |i: usize| match &kernel.params[i].kind {
            ParamKind::Buffer { access, .. } => access.can_write(),
            ParamKind::Constant { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. } => false,
        };
        let GpuArg::Buffer(b) = args[second] else {
            return Ok(());
        };
        for (first, arg) in args.iter().enumerate().take(second) {
            if let GpuArg::Buffer(a) = arg
                && a.memory == b.memory
                && (writes(first) || writes(second))
            {
                let written = if writes(second) { second } else { first };
                return Err(Error::refused(
                    Rule::OverlappingBuffers,
                    format!(
                        "arguments `{}` and `{}` of `{}` overlap in memory, and the kernel may write \
                         `{}`: give each a buffer of its own",
                        kernel.params[first].name,
                        kernel.params[second].name,
                        kernel.name,
                        kernel.params[written].name,
                    ),
                ));
            }
        }
        Ok(())
    }

    fn bind(
        &self,
        recording: &Recording,
        variant: &Variant,
        args: &[GpuArg<'_>],
        places: Vec<Range<u64>>,
    ) -> wgpu::BindGroup {
        let mut contents = variant.contents.iter();
        let mut places = places.into_iter();
        let bindings = variant.bindings.iter().enumerate();
        let entries: Vec<wgpu::BindGroupEntry<'_>> = bindings
            .filter_map(|(i, binding)| {
                let resource = match binding {
                    Binding::Param(param, _) => match args.get(*param)? {
                        GpuArg::Buffer(buffer) => buffer.memory.as_entire_binding(),
                        GpuArg::Scalar(_) | GpuArg::ThreadgroupLength(_) => return None,
                    },
                    Binding::Contents(_) => contents.next()?.as_entire_binding(),
                    Binding::Values => {
                        let place = places.next()?;
                        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                            buffer: &recording.constant_memory,
                            offset: place.start,
                            size: std::num::NonZeroU64::new(place.end - place.start),
                        })
                    }
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
        // Copied before the batch runs, and after the batches sent earlier.
        self.0
            .queue
            .write_buffer(&recording.constant_memory, 0, &recording.constants);
        let device = &self.0.device;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let run = |pass: &mut wgpu::ComputePass<'_>, step: &Step| {
            pass.set_pipeline(&step.variant.pipeline);
            pass.set_bind_group(0, &step.group, &[]);
            let [x, y, z] = step.workgroups;
            pass.dispatch_workgroups(x, y, z);
        };
        match &clock {
            None => {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                for step in &recording.steps {
                    run(&mut pass, step);
                }
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
                    for step in parts {
                        run(&mut pass, step);
                    }
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

/// Where the times of a batch go.
pub(crate) struct Clock<'a> {
    set: &'a wgpu::QuerySet,
    count: u32,
    resolved: &'a wgpu::Buffer,
    read: &'a wgpu::Buffer,
}
