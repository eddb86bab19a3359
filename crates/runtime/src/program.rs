//! Programs: a kernel compiled for a device, with its function constants fixed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use invar_interp::{Dispatch, check_arguments, check_grid};
use invar_ir::memory_layout::Extent;
use invar_ir::{Const, ConstantKey, Diagnostic, Diagnostics, Kernel, ParamKind, Rule, Verified};

use crate::argument::check_overlap;
use crate::checked::{Job, JobArg};
use crate::device::Backend;
#[cfg(feature = "cpu")]
use crate::environment;
#[cfg(feature = "cpu")]
use crate::native::{NativeProgram, Ready, Source};
use crate::room::{PASSES_BYTES, with_room};
use crate::work::{Kind, Work};
use crate::{Arg, Device, Error};

/// How to compile a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Values of function constants; the others have their defaults.
    pub constants: Vec<(ConstantKey, Const)>,
    /// A threadgroup size to compile for at once; others are compiled when a dispatch comes that
    /// has them.
    pub threadgroup_size: Option<[u32; 3]>,
    /// How long compiling may take, but at least 2 s; `None`: as long as `INVAR_TIME_LIMIT` lets dispatches run, else
    /// without limit. What takes longer fails with `deadline-exceeded`, and goes on being compiled for who asks next.
    pub time_limit: Option<Duration>,
}

/// A compiled kernel. Cheap to clone.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    device: Device,
    module: Arc<Verified>,
    kernel: usize,
    /// What the address of each parameter's buffer must be a multiple of.
    alignments: Vec<u64>,
    #[cfg(feature = "cpu")]
    native: NativeProgram,
    /// What it is on a GPU, if it is for one.
    #[cfg(feature = "gpu")]
    gpu: Option<crate::gpu::GpuProgram>,
}

/// A dispatch whose grid and arguments fit.
pub(crate) struct Checked {
    #[cfg(feature = "cpu")]
    ready: Option<Ready>,
    /// What a GPU runs.
    #[cfg(feature = "gpu")]
    pieces: crate::gpu::Pieces,
    /// What the executor counts: threadgroups, or 1 where the reference machine runs them all.
    pub(crate) threadgroups: u64,
    pub(crate) small: bool,
}

#[cfg(feature = "cpu")]
impl Inner {
    fn source<'a>(&'a self, device: &'a Device) -> Source<'a> {
        Source {
            device,
            module: &self.module,
            kernel: self.kernel,
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "program `{}` for {:?}",
            self.kernel().name,
            self.0.device
        )
    }
}

impl Program {
    pub(crate) fn new(
        device: &Device,
        module: &Verified,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<Program, Error> {
        // Passes go as deep as blocks nest, and a GPU's compilers as they like.
        with_room(PASSES_BYTES, || {
            Program::compiled(device, module, kernel, options)
        })
    }

    fn compiled(
        device: &Device,
        module: &Verified,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<Program, Error> {
        let module = module.clone().specialise(&options.constants)?;
        let Some(index) = module.kernels.iter().position(|k| *k.name == *kernel) else {
            let names: Vec<String> = module
                .kernels
                .iter()
                .map(|k| format!("`{}`", k.name))
                .collect();
            return Err(Error::refused(
                Rule::InvalidDispatch,
                format!(
                    "the module has no kernel `{kernel}`; it has {}",
                    names.join(", ")
                ),
            ));
        };
        let found = &module.kernels[index];
        device.capabilities().check(&module, found)?;
        if let Some(size) = options.threadgroup_size {
            let dispatch = Dispatch {
                grid: invar_interp::Grid::Threads([0; 3]),
                threadgroup: size,
            };
            check_grid(
                found,
                &dispatch,
                device.capabilities().threads_per_threadgroup,
            )?;
        }
        let extents: Vec<Extent> = found
            .params
            .iter()
            .map(|param| match &param.kind {
                ParamKind::Buffer { element, .. }
                | ParamKind::Constant { element }
                | ParamKind::Threadgroup { element } => element.extent(&module.structs),
                ParamKind::Scalar { .. } => None,
            })
            .map(|extent| {
                extent.unwrap_or(Extent {
                    size_bytes: 1,
                    align_bytes: 1,
                    location_count: 1,
                })
            })
            .collect();
        #[cfg(feature = "gpu")]
        let gpu = match device.backend() {
            Backend::Gpu(gpu) => {
                let fixed = CompileOptions {
                    constants: Vec::new(),
                    ..options.clone()
                };
                Some(gpu.compile(&module, kernel, &fixed)?)
            }
            Backend::Checked(_) => None,
            #[cfg(feature = "cpu")]
            Backend::Native(_) => None,
        };
        let inner = Inner {
            device: device.clone(),
            kernel: index,
            alignments: extents.iter().map(|e| e.align_bytes).collect(),
            #[cfg(feature = "cpu")]
            native: NativeProgram::new(found, extents.iter().map(|e| e.size_bytes).collect()),
            #[cfg(feature = "gpu")]
            gpu,
            module: Arc::new(module),
        };
        #[cfg(feature = "cpu")]
        if let Backend::Native(_) = device.backend()
            && let Some(size) = options
                .threadgroup_size
                .or(inner.module.kernels[index].threadgroup_size)
        {
            let source = inner.source(device);
            let limit = options.time_limit.or_else(environment::time_limit);
            inner.native.code(&source, size, limit)?;
        }
        Ok(Program(Arc::new(inner)))
    }

    /// The device it is for.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The kernel, in the module with its function constants fixed.
    pub fn kernel(&self) -> &Kernel {
        &self.0.module.kernels[self.0.kernel]
    }

    /// The module with its function constants fixed.
    pub fn module(&self) -> &Verified {
        &self.0.module
    }

    /// What the address of each parameter's buffer must be a multiple of.
    pub(crate) fn alignments(&self) -> &[u64] {
        &self.0.alignments
    }

    /// Checks a dispatch before anything runs (X1, S3, S4). Compiling it may take at most so long.
    pub(crate) fn check(
        &self,
        device: &Device,
        dispatch: &Dispatch,
        args: &[Arg],
        #[cfg_attr(
            not(feature = "cpu"),
            expect(unused_variables, reason = "for machine code")
        )]
        time_limit: Option<Duration>,
    ) -> Result<Checked, Error> {
        let kernel = self.kernel();
        let able = device.capabilities();
        if !self.0.device.same(device) {
            return Err(Error::refused(
                Rule::InvalidDispatch,
                format!(
                    "kernel `{}` was compiled for device `{}`, but the queue belongs to device `{}`",
                    kernel.name,
                    self.0.device.capabilities().name,
                    able.name
                ),
            ));
        }
        let grid = check_grid(kernel, dispatch, able.threads_per_threadgroup)?;
        check_arguments(
            &self.0.module,
            kernel,
            args.iter().map(Arg::given),
            able.threadgroup_memory_bytes,
        )?;
        self.check_places(args)?;
        #[cfg(feature = "gpu")]
        self.check_residence(args)?;
        check_overlap(kernel, args)?;
        let threadgroups = grid.count() as u64;
        match self.0.device.backend() {
            Backend::Checked(_) => Ok(Checked {
                #[cfg(feature = "cpu")]
                ready: None,
                #[cfg(feature = "gpu")]
                pieces: crate::gpu::Pieces::default(),
                threadgroups: threadgroups.min(1),
                small: false,
            }),
            #[cfg(feature = "gpu")]
            Backend::Gpu(gpu) => {
                let lengths = args.iter().filter_map(|arg| match arg {
                    Arg::ThreadgroupLength(length) => Some(*length),
                    Arg::Buffer(_) | Arg::Scalar(_) => None,
                });
                let scalar = |i: usize| match args.get(i)? {
                    Arg::Scalar(components) => match components.as_slice() {
                        [constant] => Some(*constant),
                        _several => None,
                    },
                    Arg::Buffer(_) | Arg::ThreadgroupLength(_) => None,
                };
                let pieces = match &self.0.gpu {
                    Some(program) => gpu.prepare(program, &grid, lengths.collect(), scalar)?,
                    None => crate::gpu::Pieces::default(),
                };
                Ok(Checked {
                    #[cfg(feature = "cpu")]
                    ready: None,
                    pieces,
                    threadgroups: threadgroups.min(1),
                    small: false,
                })
            }
            #[cfg(feature = "cpu")]
            Backend::Native(_) => {
                let small = self.0.native.is_small(&grid);
                let ready = match threadgroups {
                    0 => None,
                    _ => {
                        let size = grid.threadgroup;
                        let source = self.0.source(&self.0.device);
                        let code = self.0.native.code(&source, size, time_limit)?;
                        Some(Ready { code, grid })
                    }
                };
                Ok(Checked {
                    ready,
                    #[cfg(feature = "gpu")]
                    pieces: crate::gpu::Pieces::default(),
                    threadgroups,
                    small,
                })
            }
        }
    }

    /// A buffer that lies on a GPU is an argument for that GPU only.
    #[cfg(feature = "gpu")]
    fn check_residence(&self, args: &[Arg]) -> Result<(), Error> {
        for (param, arg) in self.kernel().params.iter().zip(args) {
            let Arg::Buffer(part) = arg else { continue };
            let Some(resident) = part.buffer().memory().on_gpu() else {
                continue;
            };
            if !matches!(self.0.device.backend(), Backend::Gpu(gpu) if resident.is_on(gpu)) {
                return Err(Error::refused(
                    Rule::InvalidArgument,
                    format!(
                        "argument `{}` of `{}` lies on device `{}`, but the kernel runs on device \
                         `{}`: copy it there",
                        param.name,
                        self.kernel().name,
                        resident.device_name(),
                        self.0.device.capabilities().name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Buffers must begin where their elements can.
    fn check_places(&self, args: &[Arg]) -> Result<(), Error> {
        let kernel = self.kernel();
        let able = self.0.device.capabilities();
        for ((param, arg), align) in kernel.params.iter().zip(args).zip(&self.0.alignments) {
            let Arg::Buffer(part) = arg else { continue };
            let wrong = |what: String| {
                let message = format!("argument `{}` of `{}` {what}", param.name, kernel.name);
                let diagnostic = Diagnostic::error(Rule::InvalidArgument, param.span, message);
                Err(Error::Diagnostics(Diagnostics(vec![diagnostic])))
            };
            let start = part.start() as u64;
            if part.size_bytes() > 0 && !start.is_multiple_of(*align) {
                return wrong(format!(
                    "begins at an address that is no multiple of {align}, as its elements need"
                ));
            }
            if let ParamKind::Constant { .. } = param.kind {
                if part.size_bytes() as u64 > able.constant_buffer_bytes {
                    return wrong(format!(
                        "has {} bytes, more than the {} of a constant buffer on this device",
                        part.size_bytes(),
                        able.constant_buffer_bytes
                    ));
                }
                if !start.is_multiple_of(able.constant_offset_bytes) {
                    return wrong(format!(
                        "begins at an address that is no multiple of {}, as constant buffers of \
                         this device must",
                        able.constant_offset_bytes
                    ));
                }
            }
        }
        Ok(())
    }

    /// Writes what a dispatch does into its work. Gives the time limit that the executor has to
    /// watch: the reference machine watches its own, and says where it was when that was over.
    pub(crate) fn fill(
        &self,
        work: &mut Work,
        #[cfg_attr(
            not(any(feature = "cpu", feature = "gpu")),
            expect(unused_variables, reason = "for machine code and GPUs")
        )]
        checked: Checked,
        dispatch: Dispatch,
        args: &[Arg],
        time_limit: Option<Duration>,
    ) -> Option<Duration> {
        match self.0.device.backend() {
            Backend::Checked(options) => {
                let args = args.iter().map(JobArg::of);
                let mut options = options.clone();
                options.run.time_limit = time_limit.or(options.run.time_limit);
                work.kind = Kind::Checked(Box::new(Job {
                    module: self.0.module.clone(),
                    kernel: self.kernel().name.clone(),
                    dispatch,
                    options,
                    args: args.collect(),
                }));
                None
            }
            #[cfg(feature = "gpu")]
            Backend::Gpu(_) => {
                if let Some(program) = &self.0.gpu {
                    work.gpu.fill(program, checked.pieces, args);
                    work.kind = Kind::Gpu;
                }
                time_limit
            }
            #[cfg(feature = "cpu")]
            Backend::Native(_) => {
                if let Some(ready) = &checked.ready {
                    self.0.native.fill(&mut work.call, ready, args);
                    work.kind = Kind::Native;
                }
                time_limit
            }
        }
    }
}
