//! Devices.

use std::fmt;
#[cfg(feature = "gpu")]
use std::sync::Mutex;
use std::sync::{Arc, OnceLock};

use invar_interp::CheckOptions;
use invar_ir::{Rule, Verified};

#[cfg(feature = "cpu")]
use crate::cpu;
use crate::program::{CompileOptions, Program};
use crate::queue::Queue;
#[cfg(feature = "gpu")]
use crate::task::lock;
use crate::{Capabilities, Error, checked, environment};

/// Something that runs kernels. Cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    capabilities: Capabilities,
    backend: Backend,
}

pub(crate) enum Backend {
    /// The reference machine, and how it checks.
    Checked(CheckOptions),
    /// Machine code of this processor.
    #[cfg(feature = "cpu")]
    Native(Box<dyn Compiler>),
    /// A GPU, to which dispatches take their buffers.
    #[cfg(feature = "gpu")]
    Gpu(crate::gpu::Gpu),
}

/// A GPU of this machine.
#[cfg(feature = "gpu")]
struct Adapter {
    index: usize,
    name: String,
    opened: Mutex<Option<Result<Device, Error>>>,
}

#[cfg(feature = "gpu")]
impl Adapter {
    fn open(&self) -> Result<Device, Error> {
        let open = || {
            let gpu = crate::gpu::Gpu::open(self.index)?;
            Ok(Device(Arc::new(Inner {
                capabilities: gpu.capabilities().clone(),
                backend: Backend::Gpu(gpu),
            })))
        };
        let mut opened = lock(&self.opened);
        // One that was lost is opened anew.
        let lost = |device: &Device| matches!(device.backend(), Backend::Gpu(gpu) if gpu.is_lost());
        if let Some(Ok(device)) = &*opened
            && lost(device)
        {
            *opened = None;
        }
        opened.get_or_insert_with(open).clone()
    }

    fn device_name(&self) -> String {
        crate::gpu::device_name(self.index)
    }

    /// Whether a user means it: by its place, or by a part of its name that says something.
    fn is(&self, name: &str) -> bool {
        const LEAST: usize = 3;
        let name = name.to_lowercase();
        match name.split_once(':') {
            Some(("gpu", index)) => index.parse() == Ok(self.index),
            _ if name == "gpu" => self.index == 0,
            _ => {
                name.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST
                    && self.name.to_lowercase().contains(&name)
            }
        }
    }
}

/// Makes machine code of kernels.
#[cfg(feature = "cpu")]
pub(crate) trait Compiler: Send + Sync {
    /// Code for a kernel of a module without function constants, for a threadgroup size or for any.
    fn compile(
        &self,
        module: &Verified,
        kernel: usize,
        threadgroup_size: Option<[u32; 3]>,
    ) -> Result<Arc<dyn crate::native::Code>, Error>;
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device `{}`", self.0.capabilities.name)
    }
}

impl Device {
    /// The device that runs kernels fastest without a choice of the user's: the processor, or the reference
    /// machine in a build without it.
    ///
    /// # Errors
    /// `unsupported-feature` where the processor's compiler lacks LLVM's library; it says what to install.
    #[expect(
        clippy::should_implement_trait,
        reason = "what can fail gives a result, which the trait's method cannot"
    )]
    pub fn default() -> Result<Device, Error> {
        Device::named("default")
    }

    /// The reference machine with all its checkers. A dispatch fails if they find an error;
    /// [`crate::Submission::findings`] tells everything they found.
    pub fn checked() -> Device {
        static DEVICE: OnceLock<Device> = OnceLock::new();
        DEVICE
            .get_or_init(|| Device::checked_with(checked::options(environment::time_limit())))
            .clone()
    }

    /// The same, checking in a certain way: with a seed, a simdgroup size, rules that are allowed,
    /// limits. Without a time limit it takes 600 s; function constants are a program's
    /// ([`CompileOptions::constants`]), and those given here are not looked at.
    pub fn checked_with(mut options: CheckOptions) -> Device {
        options.run.constants.clear();
        if options.run.time_limit.is_none() {
            options.run.time_limit = checked::options(environment::time_limit()).run.time_limit;
        }
        Device(Arc::new(Inner {
            capabilities: checked::capabilities(&options),
            backend: Backend::Checked(options),
        }))
    }

    /// The processor that this runs on: kernels compiled to its widest vectors, on all its cores. Where
    /// LLVM's library is missing it refuses to compile kernels, and says what to install.
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Device {
        static DEVICE: OnceLock<Device> = OnceLock::new();
        DEVICE
            .get_or_init(|| {
                Device(Arc::new(Inner {
                    capabilities: cpu::capabilities(),
                    backend: Backend::Native(Box::new(cpu::Cpu::new())),
                }))
            })
            .clone()
    }

    /// The CPU device with kernels whose accesses are not checked: for measuring what checks cost, and
    /// for nothing else. No name leads to it.
    ///
    /// # Safety
    /// Every access of every kernel that runs on it must lie within its buffer or array.
    #[cfg(feature = "cpu")]
    #[doc(hidden)]
    pub unsafe fn cpu_without_checks() -> Device {
        Device(Arc::new(Inner {
            capabilities: cpu::capabilities(),
            backend: Backend::Native(Box::new(cpu::Cpu::without_checks())),
        }))
    }

    /// The best GPU of this machine. Its buffers ([`crate::Buffer`]) stay there between dispatches, and
    /// come to the host when it looks at them; memory of the host that is lent to dispatches goes there
    /// and back with each of them.
    ///
    /// # Errors
    /// `unsupported-feature` if there is none; `device-lost` if it cannot be opened.
    #[cfg(feature = "gpu")]
    pub fn gpu() -> Result<Device, Error> {
        Device::named("gpu")
    }

    /// The GPUs of this machine, the best first; each is opened when it is first asked for.
    #[cfg(feature = "gpu")]
    fn gpus() -> &'static [Adapter] {
        static ADAPTERS: OnceLock<Vec<Adapter>> = OnceLock::new();
        ADAPTERS.get_or_init(|| {
            let names = crate::gpu::Gpu::names().into_iter();
            let adapters = names.enumerate().map(|(index, name)| Adapter {
                index,
                name,
                opened: Mutex::new(None),
            });
            adapters.collect()
        })
    }

    /// The devices that compute on the host, the default one first.
    fn hosts() -> Vec<Device> {
        #[cfg(feature = "cpu")]
        if cpu::usable().is_ok() {
            return vec![Device::cpu(), Device::checked()];
        }
        vec![Device::checked()]
    }

    /// Every device of this machine, the default one first. One that cannot be used, a GPU that cannot be
    /// opened or the processor without LLVM's library, is not among them; [`Device::named`] says why.
    pub fn all() -> Vec<Device> {
        let all = Device::hosts().into_iter();
        #[cfg(feature = "gpu")]
        let all = all.chain(Device::gpus().iter().filter_map(|gpu| gpu.open().ok()));
        all.collect()
    }

    /// The device of that name, or `default`. A GPU is `gpu`, `gpu:1` and so on, or a part of its own
    /// name, of at least three letters or digits; drivers of GPUs are loaded only for who asks for one.
    ///
    /// # Errors
    /// `unsupported-feature`, listing the devices that there are, or saying what the processor needs;
    /// `device-lost` if a GPU cannot be opened.
    pub fn named(name: &str) -> Result<Device, Error> {
        #[cfg(feature = "cpu")]
        if name == "default" || name == "cpu" {
            cpu::usable()?;
            return Ok(Device::cpu());
        }
        if name == "default" {
            return Ok(Device::checked());
        }
        let hosts = Device::hosts();
        if let Some(found) = hosts.iter().find(|d| d.0.capabilities.name == name) {
            return Ok(found.clone());
        }
        let names = hosts.iter().map(|d| format!("`{}`", d.0.capabilities.name));
        #[cfg(feature = "gpu")]
        let names = {
            let gpus = Device::gpus().iter();
            if let Some(adapter) = gpus.clone().find(|gpu| gpu.is(name)) {
                return adapter.open();
            }
            names.chain(gpus.map(|gpu| format!("`{}` ({})", gpu.device_name(), gpu.name)))
        };
        let names: Vec<String> = names.collect();
        let why = match name.split(':').next() {
            Some("gpu") if cfg!(not(feature = "gpu")) => ", for this build is without GPUs",
            #[cfg(feature = "gpu")]
            Some("gpu") if Device::gpus().is_empty() => ", for no driver of a GPU was found",
            _ => "",
        };
        Err(Error::refused(
            Rule::UnsupportedFeature,
            format!(
                "there is no device `{name}`{why}; there is {}",
                names.join(", ")
            ),
        ))
    }

    /// What it can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

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
        environment::check()?;
        Program::new(self, module, kernel, options)
    }

    /// A buffer with the elements of a slice: [`crate::Buffer::from_slice`].
    ///
    /// # Errors
    /// As there.
    pub fn buffer_from<T: crate::Element>(&self, data: &[T]) -> Result<crate::Buffer<T>, Error> {
        crate::Buffer::from_slice(self, data)
    }

    /// A buffer of zeros (I1): [`crate::Buffer::zeroed`].
    ///
    /// # Errors
    /// As there.
    pub fn buffer_zeroed<T: crate::Element>(
        &self,
        length: usize,
    ) -> Result<crate::Buffer<T>, Error> {
        crate::Buffer::zeroed(self, length)
    }

    /// A queue for dispatches. The limit on how long each may run is what `INVAR_TIME_LIMIT` says in
    /// seconds, else none; the checked device always has one.
    pub fn queue(&self) -> Queue {
        Queue::new(self.clone(), environment::time_limit())
    }

    /// Gives a GPU up, as if it had been lost: for tests.
    #[cfg(feature = "gpu")]
    #[doc(hidden)]
    pub fn lose(&self) {
        match &self.0.backend {
            Backend::Gpu(gpu) => gpu.lose(),
            Backend::Checked(_) => {}
            #[cfg(feature = "cpu")]
            Backend::Native(_) => {}
        }
    }

    /// A device with a compiler of the tests.
    #[cfg(all(test, feature = "cpu"))]
    pub(crate) fn native(capabilities: Capabilities, compiler: Box<dyn Compiler>) -> Device {
        Device(Arc::new(Inner {
            capabilities,
            backend: Backend::Native(compiler),
        }))
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    pub(crate) fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
