//! The functions and variables that stand before a kernel, each once, those that others call first.

use std::collections::HashSet;

/// The helpers of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    texts: Vec<String>,
    names: HashSet<String>,
}

impl Helpers {
    /// Whether there is one of that name, or it is being written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether there was none of that name until now: its text is to follow, behind that of what it calls.
    pub(crate) fn is_first(&mut self, name: &str) -> bool {
        self.names.insert(name.to_string())
    }

    /// Adds a text.
    pub(crate) fn push(&mut self, text: String) {
        self.texts.push(text);
    }

    /// All texts, those that others call first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &String> {
        self.texts.iter()
    }
}
