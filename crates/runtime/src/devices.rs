//! The devices of a machine. Each kind stands in one row here, and is named nowhere else outside of its own
//! module.

use invar_ir::Rule;

use crate::device::Kind;
use crate::{Device, Error};

/// The kinds that are built in, the default one first.
static KINDS: &[&dyn Kind] = &[
    #[cfg(feature = "cpu")]
    &crate::cpu::Processor,
    &crate::checked::Reference,
    #[cfg(feature = "gpu")]
    &crate::gpu::Gpus,
    #[cfg(test)]
    &crate::null::Nulls,
];

/// Refuses values of the environment that say nothing, as every device does where it compiles a kernel: for programs
/// that show devices and compile none.
///
/// # Errors
/// `invalid-argument`, with the variable and what it may say.
pub fn check_environment() -> Result<(), Error> {
    crate::environment::check()?;
    KINDS.iter().try_for_each(|kind| kind.check_environment())
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

    /// Every device of this machine, the default one first. One that cannot be used, a GPU that cannot be
    /// opened or the processor without LLVM's library, is not among them; [`Device::named`] says why.
    pub fn all() -> Vec<Device> {
        KINDS.iter().flat_map(|kind| kind.all()).collect()
    }

    /// The device of that name, or `default`. A GPU is `gpu`, `gpu:1` and so on, or a part of its own
    /// name, of at least three letters or digits; drivers of GPUs are loaded only for who asks for one.
    ///
    /// # Errors
    /// `unsupported-feature`, listing the devices that there are, or saying what the processor needs;
    /// `device-lost` if a GPU cannot be opened.
    pub fn named(name: &str) -> Result<Device, Error> {
        let wanted = match (name, KINDS.first()) {
            ("default", Some(first)) => first.name(),
            _ => name,
        };
        if let Some(found) = KINDS.iter().find_map(|kind| kind.named(wanted)) {
            return found;
        }
        let kind = name.split(':').next().unwrap_or_default();
        let mut why = "";
        if kind == "gpu" && KINDS.iter().all(|known| known.name() != kind) {
            why = ", for this build is without GPUs";
        }
        let mut names = Vec::new();
        for known in KINDS {
            match known.listed() {
                Ok(listed) => names.extend(listed),
                Err(none) if known.name() == kind => why = none,
                Err(_) => {}
            }
        }
        Err(Error::new(
            Rule::UnsupportedFeature,
            format!(
                "there is no device `{name}`{why}; there is {}",
                names.join(", ")
            ),
        ))
    }
}
