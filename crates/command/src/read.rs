//! A module that was read, and what is asked of a source when it is.

use invar_ir::{Diagnostic, Module};
use invar_wgsl::Entry;

use crate::metal;

/// A module that was read.
pub struct Read {
    pub module: Module,
    /// The kernels, with what the host binds where: as a shader says it, or a module in Invar's own forms.
    pub entries: Vec<Entry>,
    /// What a shader's own language has browsers refuse.
    pub lints: Vec<Diagnostic>,
}

impl From<Module> for Read {
    fn from(module: Module) -> Read {
        Read {
            entries: invar_wgsl::entries(&module),
            module,
            lints: Vec::new(),
        }
    }
}

/// What is asked of a shader, which has to be known when it is read.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The only entry point that is wanted.
    pub entry: Option<&'a str>,
    /// Values of overrides, or of the function constants of a Metal source, as NAME=VALUE.
    pub constants: &'a [String],
    /// What a Metal source is compiled with.
    pub with: Option<&'a metal::With>,
}
