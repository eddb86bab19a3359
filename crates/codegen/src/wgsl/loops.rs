//! The heads of loops. Whoever writes a loop takes its head from here, so that it is known whether the module has any:
//! where a driver ends loops early, one with loops is watched (`iteration_guard.rs`).

use std::cell::Cell;
use std::fmt::Display;

/// Gives heads, and remembers whether it has given one.
#[derive(Debug, Default)]
pub(super) struct Loops {
    any: Cell<bool>,
}

impl Loops {
    /// The head of a loop that only what stands in it ends.
    pub(super) fn endless(&self) -> &'static str {
        self.any.set(true);
        "loop {"
    }

    /// The head of a loop with a variable of its own: `clauses` are where that begins, how long it goes on, and the step.
    pub(super) fn counted(&self, clauses: impl Display) -> String {
        self.any.set(true);
        format!("for (var {clauses}) {{")
    }

    /// Whether there is a loop.
    pub(super) fn any(&self) -> bool {
        self.any.get()
    }
}
