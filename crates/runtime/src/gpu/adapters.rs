//! The GPUs of this machine as devices, each opened when it is first asked for.

use std::any::Any;
use std::sync::Mutex;

use invar_ir::once::{Making, Once};

use super::handle::{Gpu, device_name};
use crate::device::Kind;
use crate::fork;
use crate::sync::lock;
use crate::{Device, Error};

/// The kind of them.
pub(crate) struct Gpus;

const NAME: &str = "gpu";

impl Kind for Gpus {
    fn name(&self) -> &'static str {
        NAME
    }

    fn all(&self) -> Vec<Device> {
        adapters()
            .iter()
            .filter_map(|gpu| gpu.open().ok())
            .collect()
    }

    fn named(&self, name: &str) -> Option<Result<Device, Error>> {
        adapters()
            .iter()
            .find(|gpu| gpu.is(name))
            .map(Adapter::open)
    }

    fn listed(&self) -> Result<Vec<String>, &'static str> {
        let listed = |gpu: &Adapter| format!("`{}` ({})", device_name(gpu.index), gpu.name);
        match adapters() {
            [] => Err(", for no driver of a GPU was found"),
            adapters => Ok(adapters.iter().map(listed).collect()),
        }
    }
}

impl Device {
    /// The best GPU of this machine. Its buffers ([`crate::Buffer`]) stay there between dispatches, and
    /// come to the host when it looks at them; memory of the host that is lent to dispatches goes there
    /// and back with each of them.
    ///
    /// # Errors
    /// `unsupported-feature` if there is none; `device-lost` if it cannot be opened.
    pub fn gpu() -> Result<Device, Error> {
        Device::named(NAME)
    }

    /// Gives a GPU up, as if it had been lost.
    #[cfg(feature = "testing")]
    pub fn lose(&self) {
        if let Some(gpu) = gpu_of(self) {
            gpu.lose();
        }
    }
}

/// The GPU that a device is, if it is one.
fn gpu_of(device: &Device) -> Option<&Gpu> {
    (device.backend() as &dyn Any).downcast_ref()
}

/// A GPU of this machine.
struct Adapter {
    index: usize,
    name: String,
    opened: Mutex<Option<Result<Device, Error>>>,
}

/// All of them, the best first.
fn adapters() -> &'static [Adapter] {
    static ADAPTERS: Once<Vec<Adapter>> = Once::new();
    fork::watch();
    ADAPTERS.get_or_make(|| {
        let names = Gpu::names().into_iter();
        let adapters = names.enumerate().map(|(index, name)| Adapter {
            index,
            name,
            opened: Mutex::new(None),
        });
        adapters.collect()
    })
}

impl Adapter {
    fn open(&self) -> Result<Device, Error> {
        // A child could not open it while a thread of its parent does.
        let _opening = Making::begin();
        let mut opened = lock(&self.opened);
        // One that was lost is opened anew.
        if let Some(Ok(device)) = &*opened
            && gpu_of(device).is_some_and(Gpu::is_lost)
        {
            *opened = None;
        }
        let open = || Gpu::open(self.index).map(Device::of);
        opened.get_or_insert_with(open).clone()
    }

    /// Whether a user means it: by its place, or by a part of its name that says something.
    fn is(&self, name: &str) -> bool {
        const LEAST: usize = 3;
        let name = name.to_lowercase();
        match name.split_once(':') {
            Some((NAME, index)) => index.parse() == Ok(self.index),
            _ if name == NAME => self.index == 0,
            _ => {
                name.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST
                    && self.name.to_lowercase().contains(&name)
            }
        }
    }
}
