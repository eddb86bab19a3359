//! A device, as users have it.

use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;
use crate::{Capabilities, Error};

/// Something that runs kernels. Cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<dyn Backend>);

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device `{}`", self.capabilities().name)
    }
}

impl Device {
    /// The device of a backend.
    pub(crate) fn of(backend: impl Backend) -> Device {
        Device(Arc::new(backend))
    }

    /// What it can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0
    }

    pub(crate) fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A kind of device, of which a machine has none, one or several.
pub(crate) trait Kind: Sync {
    /// What names of such devices begin with.
    fn name(&self) -> &'static str;

    /// What it needs of the environment's variables.
    ///
    /// # Errors
    /// `invalid-argument` for a value that says nothing.
    fn check_environment(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Those that can be used, the best first.
    fn all(&self) -> Vec<Device>;

    /// The one of that name, or why it cannot be used; nothing if the name is none of theirs.
    fn named(&self, name: &str) -> Option<Result<Device, Error>>;

    /// How those that there are are listed to who asked for another, or why there is none: to stand after a
    /// comma.
    fn listed(&self) -> Result<Vec<String>, &'static str>;
}
