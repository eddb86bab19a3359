//! What a device is: a backend compiles kernels, says what a dispatch needs, and runs it.
//!
//! A device implements [`Backend`], gives an [`Executable`] for each kernel, and with it a [`Job`] for each
//! dispatch; one with memory of its own gives a [`Resident`] for each buffer. All that holds for every device
//! is checked before a backend is asked: capabilities, sizes, kinds of arguments, overlap, limits.
//!
//! Absent: how dispatches wait for one another (`executor.rs`), and which devices there are (`devices.rs`).

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use invar_interp::{Dispatch, GridSizes};
use invar_ir::memory_layout::Extent;
use invar_ir::{Const, ConstantKey, Kernel, ParamKind, Verified};

use crate::memory::Resident;
use crate::task::{InOrder, JobSlot};
use crate::{Arg, Capabilities, Error};

/// How to compile a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Values of function constants; the others have their defaults.
    pub constants: Vec<(ConstantKey, Const)>,
    /// A threadgroup size to compile for at once; others are compiled when a dispatch comes that
    /// has them.
    pub threadgroup_size: Option<[u32; 3]>,
    /// How long compiling may take, but at least 2 s; `None`: as long as `INVAR_TIME_LIMIT` lets dispatches run, else
    /// without limit. What takes longer fails with `deadline-exceeded`, and goes on being compiled for the next caller.
    pub time_limit: Option<Duration>,
    /// Whether it is proved first of which dispatches no access can be out of bounds: they run code without bounds
    /// checks. That takes up to some seconds, each time that a kernel is compiled. The checked device, which checks
    /// every access, refuses it.
    pub prove: bool,
}

/// A kernel of a module whose function constants are fixed.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) module: Arc<Verified>,
    /// The kernel's number.
    pub(crate) kernel: usize,
}

impl Source {
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.module.kernels[self.kernel]
    }

    /// The extent of one element of each parameter's memory; of what has none, that of a byte.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        const BYTE: Extent = Extent {
            size_bytes: 1,
            align_bytes: 1,
            location_count: 1,
        };
        // Texels are reached as words, of 4 bytes at most.
        const TEXELS: Extent = Extent {
            align_bytes: 4,
            ..BYTE
        };
        let params = self.kernel().params.iter();
        let extents = params.map(|param| match &param.kind {
            ParamKind::Buffer { element, .. }
            | ParamKind::Constant { element }
            | ParamKind::Threadgroup { element } => element.extent(&self.module.structs),
            ParamKind::Texture(_) => Some(TEXELS),
            ParamKind::Scalar { .. } | ParamKind::Sampler => None,
        });
        extents.map(|extent| extent.unwrap_or(BYTE)).collect()
    }
}

/// Something that runs kernels.
pub(crate) trait Backend: Any + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Compiles a kernel, which needs no more than it can do. The constants of the options are in the module
    /// already.
    ///
    /// # Errors
    /// What keeps it from running there all the same.
    fn compile(
        &self,
        source: &Source,
        options: &CompileOptions,
    ) -> Result<Box<dyn Executable>, Error>;

    /// Whether code of which accesses are proved in bounds is another for it.
    fn takes_proofs(&self) -> bool {
        false
    }

    /// Whether it reaches textures itself; else it gets kernels without any, where they are buffers.
    fn has_textures(&self) -> bool {
        false
    }

    /// Whether it knows imageblocks; else it gets kernels without any, where they are threadgroup arrays.
    fn has_imageblocks(&self) -> bool {
        false
    }

    /// Whether it keeps itself what kernels print, for its report; else it never gets a kernel that prints.
    fn keeps_lines(&self) -> bool {
        false
    }

    /// Zeros for a new buffer, where it has memory of its own; else it works on the host's in place.
    fn resident(&self) -> Option<Box<dyn Resident>> {
        None
    }

    /// Whether that memory is its own.
    fn owns(&self, _memory: &dyn Resident) -> bool {
        false
    }
}

/// A kernel compiled for a device.
pub(crate) trait Executable: Send + Sync {
    /// Gets a dispatch ready whose grid and arguments fit the kernel: checks what only the device knows,
    /// compiles what is missing, and writes the job.
    ///
    /// # Errors
    /// What keeps it from running.
    fn prepare(&self, call: &Call<'_>, job: &mut JobSlot) -> Result<Ready, Error>;
}

/// A dispatch that fits.
pub(crate) struct Call<'a> {
    pub(crate) dispatch: Dispatch,
    pub(crate) grid: &'a GridSizes,
    pub(crate) args: &'a [Arg<'a>],
    /// How long it may run, and about how long compiling for it may take.
    pub(crate) time_limit: Option<Duration>,
}

impl Call<'_> {
    /// How many threadgroups it has.
    pub(crate) fn threadgroups(&self) -> u64 {
        self.grid.count() as u64
    }
}

/// What the executor has to know of a dispatch.
pub(crate) struct Ready {
    /// How many parts it may be divided into, each a threadgroup or 1 where the device runs all of them
    /// together. None: there is nothing to do.
    pub(crate) parts: u64,
    /// Whether it is not worth dividing.
    pub(crate) small: bool,
    /// The time limit that the executor watches; none where the device does.
    pub(crate) time_limit: Option<Duration>,
    /// The device that keeps it in order, if it needs to wait for none of those before it there.
    pub(crate) in_order: Option<Arc<dyn InOrder>>,
}
