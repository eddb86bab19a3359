//! Checking dispatches, and what each consists of.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use invar_codegen::passes::coarsen::threads_factor;
use invar_codegen::wgsl::{Given as Bounded, MAX_ELEMENTS};
use invar_interp::{Dispatch, Given, GridSizes, check_arguments, check_grid, check_requirements};
use invar_ir::{Diagnostic, Diagnostics, Kernel, ParamKind, Rule};

use super::buffer::GpuArg;
use super::clock::{Clock, Noted, Stopwatch};
use super::code::Shape;
use super::handle::{Gpu, guarded};
use super::iteration_guard::BATCH;
use super::program::GpuProgram;
use super::recording::{Piece, Pieces};
use crate::Error;
use crate::proof::{KnownArgument, note_without_checks};
use crate::sync::lock;

/// The most parts that a grid is divided into. One that has more is long in two dimensions, and would take a
/// GPU many minutes that nothing can stop.
const MOST_PARTS: u128 = 1 << 17;

/// Refuses a grid of more parts, where a GPU takes so many workgroups in each dimension.
fn check_parts(kernel: &Kernel, sizes: &GridSizes, limit: u32) -> Result<(), Error> {
    let parts = sizes.threadgroups.iter().map(|n| n.div_ceil(limit));
    if parts.map(u128::from).product::<u128>() <= MOST_PARTS {
        return Ok(());
    }
    let listed = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let message = format!(
        "a grid of {} threads in threadgroups of {} is more than a GPU is given at once: divide it into \
         several dispatches",
        listed(sizes.threads),
        listed(sizes.threadgroup)
    );
    let diagnostic = Diagnostic::error(Rule::InvalidDispatch, kernel.span, message);
    Err(Error::Diagnostics(Diagnostics(vec![diagnostic])))
}

/// A dispatch that was checked: its parts, what its kernel is given, and its arguments.
type Ready<'a> = (Pieces, Vec<Bounded<'a>>, &'a [GpuArg<'a>]);

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
            let pieces = self.ready(program, dispatch, args)?;
            let given = self.fitted(program, args)?;
            let mut submissions = lock(&self.0.submissions);
            self.record(&mut submissions.recording, &pieces, &given, args, None);
            if submissions.recording.len() >= BATCH {
                self.submit(&mut submissions);
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
            return Err(Error::new(
                Rule::UnsupportedFeature,
                "the GPU has no clock that can be read",
            ));
        };
        guarded(|| {
            let ready = queued
                .iter()
                .map(|args| {
                    let pieces = self.ready(program, dispatch, args)?;
                    Ok((pieces, self.fitted(program, args)?, *args))
                })
                .collect::<Result<Vec<Ready<'_>>, Error>>()?;
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
        queued: &[Ready<'_>],
        count: u32,
        step_ns: f32,
    ) -> Result<Vec<Duration>, Error> {
        let stopwatch = self.stopwatch(count)?;
        let mut submissions = lock(&self.0.submissions);
        self.submit(&mut submissions);
        let recording = &mut submissions.recording;
        let mut steps = 0;
        for _ in 0..count {
            for (pieces, given, args) in queued {
                steps += self.record(recording, pieces, given, args, None);
            }
        }
        if steps == 0 || steps != recording.len() {
            recording.clear();
            return Err(Error::new(
                Rule::InvalidDispatch,
                "the grid is empty, or has too many parts to be measured",
            ));
        }
        let noted = Noted {
            stopwatch: &stopwatch,
            begin: true,
            end: true,
        };
        self.send(recording, Some(noted));
        let watch = recording.take_watch();
        drop(submissions);
        if let Some(watch) = watch {
            let said = watch.ask();
            self.check_iteration_guards(watch, said, || self.poll(None))?;
            self.check()?;
        }
        let clock = Clock::new(step_ns);
        stopwatch.ask().look(
            || self.poll(None),
            |noted| {
                let parts = Stopwatch::ticks(noted).into_iter();
                let times = parts.map(|[begin, end]| clock.duration(end.saturating_sub(begin)));
                times.collect()
            },
        )
    }

    /// Checks a dispatch, and compiles what it needs.
    fn ready(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'_>],
    ) -> Result<Pieces, Error> {
        let kernel = program.kernel();
        let able = self.capabilities();
        if !Arc::ptr_eq(&self.0, &program.0.gpu.0) {
            let message = format!("kernel `{}` was compiled for another GPU", kernel.name);
            return Err(Error::new(Rule::InvalidDispatch, message));
        }
        let sizes = check_grid(kernel, &dispatch, able.threads_per_threadgroup)?;
        let given = args.iter().map(|arg| match arg {
            GpuArg::Buffer(buffer) => Given::Buffer {
                writable: true,
                holds: None,
                size_bytes: buffer.size_bytes(),
            },
            GpuArg::Scalar(components) => Given::Scalar(components),
            GpuArg::ThreadgroupLength(length) => Given::ThreadgroupLength(*length),
        });
        check_arguments(
            &program.0.module,
            kernel,
            given.clone(),
            able.threadgroup_memory_bytes,
        )?;
        check_requirements(&program.0.module, kernel, &sizes, given)?;
        let argument = |i: usize| args.get(i).map(KnownArgument::from);
        self.pieces(program, &sizes, argument, None)
    }

    /// What a kernel is given, by arguments of the kinds of its parameters.
    pub(crate) fn fitted<'a>(
        &self,
        program: &GpuProgram,
        args: &[GpuArg<'a>],
    ) -> Result<Vec<Bounded<'a>>, Error> {
        self.check()?;
        let kernel = program.kernel();
        let refuse = |rule, message: String| Err(Error::new(rule, message));
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
        Ok(bounded)
    }

    /// The parts of a dispatch whose grid and arguments were checked, compiled before it is submitted, so that
    /// the time for that is not its own, which may take at most so long.
    ///
    /// # Errors
    /// What the GPU cannot do.
    pub(crate) fn prepare(
        &self,
        program: &GpuProgram,
        sizes: &GridSizes,
        argument: impl Fn(usize) -> Option<KnownArgument>,
        limit: Option<Duration>,
    ) -> Result<Pieces, Error> {
        self.check_process()?;
        guarded(|| self.pieces(program, sizes, argument, limit))
    }

    /// What a dispatch consists of: where it is large and the kernel can be made coarser, the threadgroups
    /// that fill whole workgroups in x, and those that are left.
    fn pieces(
        &self,
        program: &GpuProgram,
        sizes: &GridSizes,
        argument: impl Fn(usize) -> Option<KnownArgument>,
        limit: Option<Duration>,
    ) -> Result<Pieces, Error> {
        if sizes.count() == 0 {
            return Ok(Pieces::default());
        }
        let most = self.0.limits.max_compute_workgroups_per_dimension;
        check_parts(program.kernel(), sizes, most)?;
        let guards = program.needs_guards(sizes, &argument, limit)?;
        let pieces = self.variants(program, sizes, argument, guards)?;
        if !guards && pieces.iter().flatten().all(|p| !p.variant.has_guards()) {
            note_without_checks();
        }
        Ok(pieces)
    }

    /// The parts of a dispatch that is not empty, each with the code that runs it.
    fn variants(
        &self,
        program: &GpuProgram,
        sizes: &GridSizes,
        argument: impl Fn(usize) -> Option<KnownArgument>,
        guards: bool,
    ) -> Result<Pieces, Error> {
        let threadgroup = sizes.threadgroup;
        let most = self.0.limits.max_compute_workgroups_per_dimension;
        let lengths = (0..program.kernel().params.len()).filter_map(|i| match argument(i)? {
            KnownArgument::Elements(length) => Some(length),
            KnownArgument::Bytes(_) | KnownArgument::Value(_) => None,
        });
        let scalar = |i: usize| match argument(i)? {
            KnownArgument::Value(value) => value,
            KnownArgument::Bytes(_) | KnownArgument::Elements(_) => None,
        };
        let full = |d: usize| sizes.threads[d].is_multiple_of(threadgroup[d]);
        let threads: u128 = sizes.threads.iter().map(|n| u128::from(*n)).product();
        let least = u128::from(self.0.coarse_from_threads.load(Ordering::Relaxed));
        let mut shape = Shape {
            threadgroup,
            lengths: lengths.collect(),
            full: full(1) && full(2),
            threadgroups_per_workgroup: program.0.coarse,
            threads_per_invocation: 1,
            unroll_rows: threads >= least,
            fixed_scalars: Vec::new(),
            msl: false,
            guards,
        };
        if self.0.takes_msl && sizes.threadgroups.iter().all(|n| *n <= most) {
            let shape = Shape {
                full: full(0) && shape.full,
                threadgroups_per_workgroup: 1,
                unroll_rows: false,
                msl: true,
                ..shape
            };
            let whole = Piece {
                variant: program.variant(&shape)?,
                threads: sizes.threads,
                all_threadgroups: sizes.threadgroups,
                threadgroups: sizes.threadgroups,
                first: 0,
            };
            return Ok([Some(whole), None]);
        }
        if threads >= least {
            shape.fixed_scalars = program.fixed_scalars(threadgroup, scalar);
        }
        let [long, high, deep] = sizes.threadgroups;
        let mut done = 0;
        let [mut coarse, mut rest] = Pieces::default();
        if program.0.coarse > 1 && threads >= least {
            let count = sizes.threads[0] / threadgroup[0] / program.0.coarse;
            if count > 0 {
                done = count * program.0.coarse;
                let [_, y, z] = sizes.threads;
                coarse = Some(Piece {
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
            rest = Some(Piece {
                variant: program.variant(&shape)?,
                threads: sizes.threads,
                all_threadgroups: sizes.threadgroups,
                threadgroups: [long - done, high, deep],
                first: done,
            });
        }
        Ok([coarse, rest])
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
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => false,
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
                return Err(Error::new(
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
}
