//! A module that was read, and what is asked of a source when it is.

use std::path::Path;

use invar_ir::diagnostic::path_text;
use invar_ir::{Diagnostic, Diagnostics, Module, Source};
use invar_wgsl::{Entry, Shader};

use crate::metal;
use crate::outcome::Refusal;

/// A module, or what is wrong with its text.
pub type Parsed = Result<Read, (Vec<Source>, Vec<Diagnostic>)>;

/// A module that was read.
pub struct Read {
    pub module: Module,
    /// The kernels, with what the host binds where: as a shader says it, or a module in Invar's own forms.
    pub entries: Vec<Entry>,
    /// The shader, if it is one: of what browsers refuse, which only a check asks for.
    pub shader: Option<Shader>,
    /// The entry points of a shader, or the kernels of a Metal source, of which no kernel can be made, and why.
    pub refused: Vec<(String, Diagnostics)>,
}

impl Read {
    /// Refuses to choose the only kernel that can be made of a shader that has others.
    ///
    /// # Errors
    /// The names of all.
    pub fn one_of_all(&self, file: &Path) -> Result<(), Refusal> {
        if self.refused.is_empty() {
            return Ok(());
        }
        let made = self.module.kernels.iter().map(|k| &*k.name);
        let others = self.refused.iter().map(|(name, _)| &**name);
        let names: Vec<String> = made.chain(others).map(|n| format!("`{n}`")).collect();
        Err(Refusal(format!(
            "{} has several kernels: say which with --kernel: {}",
            path_text(file),
            names.join(", ")
        )))
    }
}

impl From<Module> for Read {
    fn from(module: Module) -> Read {
        Read {
            entries: invar_wgsl::entries(&module),
            module,
            shader: None,
            refused: Vec::new(),
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
    /// Whether what is asked for are the runs of a file, which may say values of function constants too.
    pub of_runs: bool,
}
