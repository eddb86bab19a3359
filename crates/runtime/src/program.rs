//! Programs: a kernel compiled for a device, with its function constants fixed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use invar_codegen::passes::imageblocks;
use invar_codegen::passes::print::{self, Prints};
use invar_interp::{Dispatch, check_arguments, check_grid, check_requirements};
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{Diagnostic, Diagnostics, Kernel, Module, ParamKind, Rule, Verified, verify};

use crate::argument::check_overlap;
use crate::backend::{Call, CompileOptions, Executable, Ready, Source};
use crate::devices;
use crate::task::JobSlot;
use crate::texture::ByFormats;
use crate::{Arg, Device, Error};

/// A compiled kernel. Cheap to clone.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    device: Device,
    source: Source,
    /// What the device runs, where `print` is written out for it, and what was printed.
    written_out: Option<(Source, Prints)>,
    /// Whether the kernel prints.
    has_lines: bool,
    /// What the address of each parameter's buffer must be a multiple of.
    alignments: Vec<u64>,
    runs: Runs,
}

/// What the device runs.
enum Runs {
    /// The kernel.
    Whole(Box<dyn Executable>),
    /// The kernel with its textures written out as buffers, for the formats that a dispatch gives.
    Formats(Box<ByFormats>),
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
    fn new(
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
        let Some(one) = module.only(kernel) else {
            let names: Vec<String> = module
                .kernels
                .iter()
                .map(|k| format!("`{}`", k.name))
                .collect();
            return Err(Error::new(
                Rule::InvalidDispatch,
                format!(
                    "the module has no kernel `{kernel}`; it has {}",
                    names.join(", ")
                ),
            ));
        };
        let module = one.specialise(&options.constants)?;
        let found = &module.kernels[0];
        device.capabilities().check(&module, found)?;
        if options.prove && !device.backend().takes_proofs() {
            let name = &device.capabilities().name;
            let why =
                format!("a proof saves nothing on the device `{name}`: compile without `prove`");
            return Err(Error::new(Rule::UnsupportedFeature, why));
        }
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
        let source = Source {
            kernel: 0,
            module: Arc::new(module),
        };
        let fixed = CompileOptions {
            constants: Vec::new(),
            ..options.clone()
        };
        let mut written_out = None;
        let has_lines = source.kernel().prints();
        if has_lines && !device.backend().keeps_lines() {
            let (module, prints) = print::expand(Module::clone(&source.module), source.kernel)?;
            let module = Arc::new(verify(module)?);
            let kernel = source.kernel;
            written_out = prints.map(|prints| (Source { module, kernel }, prints));
        }
        let runs = written_out.as_ref().map_or(&source, |(runs, _)| runs);
        let mut without_imageblocks = None;
        if runs.kernel().has_imageblocks() && !device.backend().has_imageblocks() {
            let mut module = Module::clone(&runs.module);
            imageblocks::lower(&mut module.kernels[runs.kernel]);
            without_imageblocks = Some(Source {
                module: Arc::new(verify(module)?),
                kernel: runs.kernel,
            });
        }
        let runs = without_imageblocks.as_ref().unwrap_or(runs);
        let executable = match runs.kernel().has_textures() && !device.backend().has_textures() {
            true => Runs::Formats(Box::new(ByFormats::new(runs, fixed))),
            false => Runs::Whole(device.backend().compile(runs, &fixed)?),
        };
        let extents = source.extents().into_iter();
        Ok(Program(Arc::new(Inner {
            device: device.clone(),
            alignments: extents.map(|e| e.align_bytes).collect(),
            source,
            written_out,
            has_lines,
            runs: executable,
        })))
    }

    /// The device it is for.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The kernel, in the module with its function constants fixed.
    pub fn kernel(&self) -> &Kernel {
        self.0.source.kernel()
    }

    /// The module with its function constants fixed.
    pub fn module(&self) -> &Verified {
        &self.0.source.module
    }

    /// Whether the kernel prints.
    pub(crate) fn has_lines(&self) -> bool {
        self.0.has_lines
    }

    /// What the buffer of lines of a dispatch means, where its last argument is one.
    pub(crate) fn prints(&self) -> Option<&Prints> {
        self.0.written_out.as_ref().map(|(_, prints)| prints)
    }

    /// The kernel that the device runs: with a parameter for lines, where it prints.
    pub(crate) fn running(&self) -> &Kernel {
        let written_out = self.0.written_out.as_ref();
        written_out
            .map_or(&self.0.source, |(runs, _)| runs)
            .kernel()
    }

    /// What the address of each parameter's buffer must be a multiple of.
    pub(crate) fn alignments(&self) -> &[u64] {
        &self.0.alignments
    }

    /// Checks a dispatch before anything runs (X1, S3 to S5), and gets it ready: what it does is written into the
    /// job. Compiling for it may take about as long as it may run. `all` are the arguments, and behind them the
    /// buffer of lines, if there is one.
    pub(crate) fn prepare(
        &self,
        device: &Device,
        dispatch: Dispatch,
        all: &[Arg],
        time_limit: Option<Duration>,
        job: &mut JobSlot,
    ) -> Result<Ready, Error> {
        let kernel = self.kernel();
        let args = &all[..all.len() - usize::from(self.prints().is_some())];
        let able = device.capabilities();
        if !self.0.device.same(device) {
            return Err(Error::new(
                Rule::InvalidDispatch,
                format!(
                    "kernel `{}` was compiled for device `{}`, but the queue belongs to device `{}`",
                    kernel.name,
                    self.0.device.capabilities().name,
                    able.name
                ),
            ));
        }
        let grid = check_grid(kernel, &dispatch, able.threads_per_threadgroup)?;
        check_arguments(
            self.module(),
            kernel,
            args.iter().map(Arg::given),
            able.threadgroup_memory_bytes,
        )?;
        check_requirements(self.module(), kernel, &grid, args.iter().map(Arg::given))?;
        self.check_places(args)?;
        self.check_residence(args)?;
        check_overlap(kernel, args)?;
        let call = Call {
            dispatch,
            grid: &grid,
            args: all,
            time_limit,
        };
        match &self.0.runs {
            Runs::Whole(executable) => executable.prepare(&call, job),
            Runs::Formats(by_formats) => by_formats.prepare(&self.0.device, &call, job),
        }
    }

    /// A buffer that lies on a device with memory of its own is an argument for that device only.
    fn check_residence(&self, args: &[Arg]) -> Result<(), Error> {
        for (param, arg) in self.kernel().params.iter().zip(args) {
            let Arg::Buffer(slice) = arg else { continue };
            let Some(resident) = slice.buffer().memory().resident() else {
                continue;
            };
            if !self.0.device.backend().owns(resident) {
                return Err(Error::new(
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
            let Arg::Buffer(slice) = arg else { continue };
            let wrong = |what: String| {
                let message = format!("argument `{}` of `{}` {what}", param.name, kernel.name);
                let diagnostic = Diagnostic::error(Rule::InvalidArgument, param.span, message);
                Err(Error::Diagnostics(Diagnostics(vec![diagnostic])))
            };
            let start = slice.start() as u64;
            // Of a texture it is the words of its format that are loaded.
            let align = match slice.texture() {
                Some(shape) => shape.format.texel_bytes().min(4),
                None => *align,
            };
            if slice.size_bytes() > 0 && !start.is_multiple_of(align) {
                return wrong(format!(
                    "begins at an address that is not a multiple of {align}, as its elements need"
                ));
            }
            if let ParamKind::Constant { .. } = param.kind {
                if slice.size_bytes() as u64 > able.constant_buffer_bytes {
                    return wrong(format!(
                        "has {} bytes, more than the {} of a constant buffer on this device",
                        slice.size_bytes(),
                        able.constant_buffer_bytes
                    ));
                }
                if !start.is_multiple_of(able.constant_offset_bytes) {
                    return wrong(format!(
                        "begins at an address that is not a multiple of {}, as constant buffers of \
                         this device must",
                        able.constant_offset_bytes
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Device {
    /// Compiles a kernel of a module, whose function constants have their defaults.
    ///
    /// # Errors
    /// The module has no such kernel, a function constant has no default, or the device cannot run
    /// the kernel (`unsupported-feature`, `unsupported-float-mode`, `unsupported-memory-order`).
    pub fn compile(&self, module: &Verified, kernel: &str) -> Result<Program, Error> {
        self.compile_with(module, kernel, &CompileOptions::default())
    }

    /// Compiles a kernel of a module.
    ///
    /// # Errors
    /// As [`Device::compile`], and for a function constant that is not there or of another type.
    pub fn compile_with(
        &self,
        module: &Verified,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<Program, Error> {
        devices::check_environment()?;
        Program::new(self, module, kernel, options)
    }
}
