//! Recording dispatches and submitting them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use invar_codegen::passes::coarsen::threads_factor;
use invar_codegen::wgsl::{Bound, Given as Bounded, Launch, MAX_ELEMENTS, parts};
use invar_interp::{Dispatch, Given, GridSizes, check_arguments, check_grid};
use invar_ir::{Const, ParamKind, Rule};

use super::program::{Shape, Variant};
use super::{Gpu, GpuBuffer, GpuProgram};
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

/// What was recorded and not submitted yet, and memory that is used again.
pub(crate) struct Recording {
    steps: Vec<Step>,
    /// Hidden constants of the steps, each at its offset.
    constants: Vec<u8>,
    /// Where they go.
    constant_memory: wgpu::Buffer,
    /// Offsets are multiples of this.
    offset_alignment: usize,
    pub(crate) staging: Vec<wgpu::Buffer>,
    /// What was submitted last.
    last: Option<wgpu::SubmissionIndex>,
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
    offset: u32,
    workgroups: [u32; 3],
}

/// Bytes of hidden constants that a batch may have.
const CONSTANT_BYTES: usize = 64 << 10;
/// How often a thread that waits looks whether it is asked to stop.
const LOOK: Duration = Duration::from_millis(20);
/// Dispatches of a batch.
const BATCH: usize = 64;

impl Recording {
    pub(crate) fn new(device: &wgpu::Device, limits: &wgpu::Limits) -> Recording {
        Recording {
            steps: Vec::new(),
            constants: Vec::new(),
            constant_memory: device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: CONSTANT_BYTES as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
            offset_alignment: limits.min_uniform_buffer_offset_alignment.max(16) as usize,
            staging: Vec::new(),
            last: None,
        }
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
        let steps = self.steps(program, dispatch, args)?;
        if steps >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Submits what was recorded.
    ///
    /// # Errors
    /// An earlier failure of the GPU.
    pub fn flush(&self) -> Result<(), Error> {
        let mut state = lock(&self.0.state);
        self.submit(&mut state, None);
        drop(state);
        self.check()
    }

    /// Submits what was recorded and waits until all of it has run.
    ///
    /// # Errors
    /// A failure of the GPU.
    pub fn wait(&self) -> Result<(), Error> {
        self.flush()?;
        self.poll()
    }

    /// Submits what was recorded and waits until all of it has run, or until somebody asks to stop;
    /// then the GPU goes on with it, for nothing stops a GPU. Gives whether it has run before
    /// anybody asked.
    ///
    /// # Errors
    /// A failure of the GPU.
    pub(crate) fn wait_unless(&self, stop: impl Fn() -> bool) -> Result<bool, Error> {
        self.flush()?;
        let last = lock(&self.0.state).last.clone();
        loop {
            let waited = self.0.device.poll(wgpu::PollType::Wait {
                submission_index: last.clone(),
                timeout: Some(LOOK),
            });
            match waited {
                Err(wgpu::PollError::Timeout) if stop() => return Ok(false),
                Err(wgpu::PollError::Timeout) => {}
                waited => return self.polled(waited).map(|()| !stop()),
            }
        }
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
        let Some(step_ns) = self.0.clock_step_ns else {
            return Err(Error::refused(
                Rule::UnsupportedFeature,
                "the GPU has no clock that can be read",
            ));
        };
        self.flush()?;
        let mut out = Vec::new();
        while (out.len() as u32) < times {
            let count = (times - out.len() as u32).min(BATCH as u32 / 2);
            for _ in 0..count {
                self.steps(program, dispatch, args)?;
            }
            let device = &self.0.device;
            let set = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: count * 2,
            });
            let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
            let resolved = self.allocate(u64::from(count) * 16, usage)?;
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let read = self.allocate(u64::from(count) * 16, usage)?;
            let mut state = lock(&self.0.state);
            if state.steps.is_empty() || !state.steps.len().is_multiple_of(count as usize) {
                state.steps.clear();
                state.constants.clear();
                return Err(Error::refused(
                    Rule::InvalidDispatch,
                    "the grid is empty, or has too many parts to be measured",
                ));
            }
            self.submit(
                &mut state,
                Some(Clock {
                    set: &set,
                    count,
                    resolved: &resolved,
                    read: &read,
                }),
            );
            drop(state);
            let slice = read.slice(..);
            slice.map_async(wgpu::MapMode::Read, |_| {});
            self.poll()?;
            let view = slice.get_mapped_range().map_err(|e| {
                Error::refused(Rule::DeviceLost, format!("the clock cannot be read: {e}"))
            })?;
            let ticks: Vec<u64> = view
                .chunks_exact(8)
                .map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default()))
                .collect();
            out.extend(ticks.chunks_exact(2).map(|pair| {
                let ticks = pair[1].saturating_sub(pair[0]);
                Duration::from_nanos((ticks as f64 * f64::from(step_ns)) as u64)
            }));
        }
        Ok(out)
    }

    /// Checks a dispatch and records its parts; gives how many are recorded now.
    fn steps(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'_>],
    ) -> Result<usize, Error> {
        self.check()?;
        let kernel = program.kernel();
        let able = self.capabilities();
        let refuse = |rule, message: String| Err(Error::refused(rule, message));
        if !Arc::ptr_eq(&self.0, &program.0.gpu.0) {
            let message = format!("kernel `{}` was compiled for another GPU", kernel.name);
            return refuse(Rule::InvalidDispatch, message);
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
        let mut bounded = Vec::with_capacity(args.len());
        let mut lengths = Vec::new();
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
                (_, GpuArg::ThreadgroupLength(length)) => {
                    lengths.push(*length);
                    bounded.push(Bounded::Elements(*length));
                }
                (_, GpuArg::Buffer(_)) => {
                    let message = format!("argument `{}` is a buffer", param.name);
                    return refuse(Rule::InvalidArgument, message);
                }
            }
        }
        let pieces = self.pieces(program, dispatch.threadgroup, lengths, &sizes, args)?;
        let limit = self.0.limits.max_compute_workgroups_per_dimension;
        let mut state = lock(&self.0.state);
        for piece in pieces {
            let (mut launched, mut x) = (piece.threadgroups, 0);
            if piece.variant.source.y_first {
                launched.swap(0, 1);
                x = 1;
            }
            for mut part in parts(launched, limit) {
                part.first_threadgroup[x] += piece.first;
                let bytes = piece.variant.source.constants.bytes(&Launch {
                    threads: piece.threads,
                    threadgroups: piece.all_threadgroups,
                    part,
                    given: &bounded,
                });
                let space = bytes.len().next_multiple_of(state.offset_alignment);
                if state.constants.len() + space > CONSTANT_BYTES {
                    self.submit(&mut state, None);
                }
                let offset = state.constants.len();
                state.constants.extend_from_slice(&bytes);
                state.constants.resize(offset + space, 0);
                let group = self.bind(&state, &piece.variant, args);
                state.steps.push(Step {
                    variant: piece.variant.clone(),
                    group,
                    offset: offset as u32,
                    workgroups: part.workgroups,
                });
            }
        }
        Ok(state.steps.len())
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
        };
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

    fn bind(&self, state: &Recording, variant: &Variant, args: &[GpuArg<'_>]) -> wgpu::BindGroup {
        let mut contents = variant.contents.iter();
        let entries: Vec<wgpu::BindGroupEntry<'_>> = variant
            .source
            .bindings
            .iter()
            .enumerate()
            .filter_map(|(i, binding)| {
                let resource = match &binding.bound {
                    Bound::Param(param) => match args.get(*param)? {
                        GpuArg::Buffer(buffer) => buffer.memory.as_entire_binding(),
                        GpuArg::Scalar(_) | GpuArg::ThreadgroupLength(_) => return None,
                    },
                    Bound::Contents(_) => contents.next()?.as_entire_binding(),
                    Bound::Constants => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &state.constant_memory,
                        offset: 0,
                        size: std::num::NonZeroU64::new(variant.source.constants.size_bytes),
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

    fn submit(&self, state: &mut Recording, clock: Option<Clock<'_>>) {
        if state.steps.is_empty() {
            return;
        }
        // Copied before the batch runs, and after the batches submitted earlier.
        self.0
            .queue
            .write_buffer(&state.constant_memory, 0, &state.constants);
        let device = &self.0.device;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let run = |pass: &mut wgpu::ComputePass<'_>, step: &Step| {
            pass.set_pipeline(&step.variant.pipeline);
            pass.set_bind_group(0, &step.group, &[step.offset]);
            let [x, y, z] = step.workgroups;
            pass.dispatch_workgroups(x, y, z);
        };
        match &clock {
            None => {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                for step in &state.steps {
                    run(&mut pass, step);
                }
            }
            Some(clock) => {
                let steps = state.steps.len() / clock.count as usize;
                for (i, parts) in state.steps.chunks(steps.max(1)).enumerate() {
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
        state.last = Some(self.0.queue.submit([encoder.finish()]));
        state.steps.clear();
        state.constants.clear();
    }
}

/// Where the times of a batch go.
struct Clock<'a> {
    set: &'a wgpu::QuerySet,
    count: u32,
    resolved: &'a wgpu::Buffer,
    read: &'a wgpu::Buffer,
}
