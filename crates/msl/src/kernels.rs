//! What becomes of a source.

use invar_ir::{Diagnostics, Module};
use invar_wgsl::Entry;

/// Kernels made of a source.
pub struct Kernels {
    /// The module, to be verified.
    pub module: Module,
    /// The kernels and what they are given.
    pub entries: Vec<Entry>,
    /// The kernels that could not be translated, and why.
    pub refused: Vec<(String, Diagnostics)>,
    /// The names of all kernels of the source.
    pub names: Vec<String>,
    /// The names of its function constants.
    pub constants: Vec<String>,
}

impl Kernels {
    /// What is wrong with each of those that are refused; what is wrong with several in the same way once.
    pub fn refusals(&self) -> Diagnostics {
        let mut all = Vec::new();
        for error in self.refused.iter().flat_map(|(_, Diagnostics(why))| why) {
            if !all.contains(error) {
                all.push(error.clone());
            }
        }
        Diagnostics(all)
    }
}
