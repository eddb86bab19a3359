//! What a kernel is run on that is compared with the reference machine.

use invar_interp::{Arg, Dispatch};
use invar_ir::{Diagnostics, Verified};

/// Runs the kernel of that name on a device, in place of the reference machine: the arguments hold
/// afterwards what the kernel left. Function constants are fixed already. An error whose rules all
/// say that the device lacks something is a refusal, any other a failure.
pub type Target<'t> =
    dyn FnMut(&Verified, &str, &Dispatch, &mut [Arg<'static>]) -> Result<(), Diagnostics> + 't;
