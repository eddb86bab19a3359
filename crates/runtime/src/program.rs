//! Programs: a kernel compiled for a device, with its function constants fixed.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "cpu")]
use std::sync::Mutex;

use invar_interp::{Dispatch, GridSizes, check_arguments, check_grid};
use invar_ir::memory_layout::Extent;
use invar_ir::{
    Const, ConstantKey, Diagnostic, Diagnostics, InstKind, Kernel, ParamKind, Region, Rule,
    Verified,
};

use crate::argument::check_overlap;
use crate::checked::{Job, JobArg};
use crate::device::Backend;
#[cfg(feature = "cpu")]
use crate::native::Code;
#[cfg(feature = "cpu")]
use crate::task::lock;
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
    /// Bytes of one element of each parameter's buffer.
    #[cfg(feature = "cpu")]
    element_bytes: Vec<u64>,
    /// Instructions of one thread, where no loop makes that unknown.
    #[cfg(feature = "cpu")]
    instructions: Option<u64>,
    #[cfg(feature = "cpu")]
    variants: Variants,
}

/// Machine code by threadgroup size.
#[cfg(feature = "cpu")]
#[derive(Default)]
struct Variants(Mutex<Vec<Variant>>);

/// Code for a threadgroup size, or for any.
#[cfg(feature = "cpu")]
type Variant = (Option<[u32; 3]>, Arc<dyn Code>);

/// So many threadgroup sizes get code of their own; further ones share code that reads the size.
#[cfg(feature = "cpu")]
const VARIANTS: usize = 8;

#[cfg(feature = "cpu")]
impl Variants {
    /// The code for a threadgroup size, compiled if it is not there.
    fn get(
        &self,
        size: [u32; 3],
        compile: impl FnOnce(Option<[u32; 3]>) -> Result<Arc<dyn Code>, Error>,
    ) -> Result<Arc<dyn Code>, Error> {
        // Held while compiling: two threads that need the same wait for one compilation.
        let mut list = lock(&self.0);
        let find = |list: &[Variant], size| {
            let found = list.iter().find(|(s, _)| *s == size);
            found.map(|(_, code)| code.clone())
        };
        if let Some(code) = find(&list, Some(size)) {
            return Ok(code);
        }
        let size = (list.len() < VARIANTS).then_some(size);
        if let Some(code) = find(&list, size) {
            return Ok(code);
        }
        let code = compile(size)?;
        list.push((size, code.clone()));
        Ok(code)
    }
}

/// A dispatch whose grid and arguments fit.
pub(crate) struct Checked {
    #[cfg(feature = "cpu")]
    pub(crate) grid: GridSizes,
    #[cfg(feature = "cpu")]
    pub(crate) code: Option<Arc<dyn Code>>,
    /// What the executor counts: threadgroups, or 1 where the reference machine runs them all.
    pub(crate) threadgroups: u64,
    pub(crate) small: bool,
}

/// Work of at most so many instructions, all threads together, is not worth waking another thread.
#[cfg(feature = "cpu")]
const SMALL: u64 = 1 << 17;

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
        device.capabilities().check(found)?;
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
        let inner = Inner {
            device: device.clone(),
            kernel: index,
            alignments: extents.iter().map(|e| e.align_bytes).collect(),
            #[cfg(feature = "cpu")]
            element_bytes: extents.iter().map(|e| e.size_bytes).collect(),
            #[cfg(feature = "cpu")]
            instructions: instructions(&found.body),
            #[cfg(feature = "cpu")]
            variants: Variants::default(),
            module: Arc::new(module),
        };
        #[cfg(feature = "cpu")]
        if let Backend::Native(compiler) = device.backend()
            && let Some(size) = options
                .threadgroup_size
                .or(inner.module.kernels[index].threadgroup_size)
        {
            inner
                .variants
                .get(size, |size| compiler.compile(&inner.module, index, size))?;
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

    /// Checks a dispatch before anything runs (X1, S3, S4).
    pub(crate) fn check(
        &self,
        device: &Device,
        dispatch: &Dispatch,
        args: &[Arg],
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
        check_overlap(kernel, args)?;
        let threadgroups = grid.count() as u64;
        match self.0.device.backend() {
            Backend::Checked(_) => Ok(Checked {
                #[cfg(feature = "cpu")]
                grid,
                #[cfg(feature = "cpu")]
                code: None,
                threadgroups: threadgroups.min(1),
                small: false,
            }),
            #[cfg(feature = "cpu")]
            Backend::Native(compiler) => {
                let code = match threadgroups {
                    0 => None,
                    _ => Some(self.0.variants.get(grid.threadgroup, |size| {
                        compiler.compile(&self.0.module, self.0.kernel, size)
                    })?),
                };
                let threads = grid.threads.iter().map(|n| u64::from(*n));
                let threads = threads.fold(1, u64::saturating_mul);
                let all = self.0.instructions.map(|n| n.saturating_mul(threads));
                Ok(Checked {
                    grid,
                    code,
                    threadgroups,
                    small: all.is_some_and(|n| n <= SMALL),
                })
            }
        }
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

    /// Writes what a dispatch does into its work.
    pub(crate) fn fill(
        &self,
        work: &mut Work,
        checked: &Checked,
        dispatch: Dispatch,
        args: &[Arg],
    ) {
        match self.0.device.backend() {
            Backend::Checked(options) => {
                let args = args.iter().map(|arg| match arg {
                    Arg::Buffer(part) => JobArg::Buffer(part.start(), part.size_bytes()),
                    Arg::Scalar(components) => JobArg::Scalar(components.as_slice().to_vec()),
                    Arg::ThreadgroupLength(length) => JobArg::ThreadgroupLength(*length),
                });
                work.kind = Kind::Checked(Box::new(Job {
                    module: self.0.module.clone(),
                    kernel: self.kernel().name.clone(),
                    dispatch,
                    options: options.clone(),
                    args: args.collect(),
                }));
            }
            #[cfg(feature = "cpu")]
            Backend::Native(_) => {
                if let Some(code) = &checked.code {
                    work.call
                        .fill(code, &checked.grid, args, &self.0.element_bytes);
                    work.kind = Kind::Native;
                }
            }
        }
    }
}

/// Instructions of a region, if no loop is in it.
#[cfg(feature = "cpu")]
fn instructions(region: &Region) -> Option<u64> {
    let mut total = 0u64;
    for inst in &region.insts {
        total += 1;
        match &inst.kind {
            InstKind::For { .. } | InstKind::Loop { .. } => return None,
            // Their length is an operand.
            InstKind::Copy { .. } | InstKind::AsyncCopy { .. } => return None,
            InstKind::If {
                then, otherwise, ..
            } => total += instructions(then)? + instructions(otherwise)?,
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Alloc(_)
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return => {}
        }
    }
    Some(total)
}
