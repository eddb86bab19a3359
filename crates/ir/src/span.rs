//! Where things stand in the author's own text.
//!
//! Every instruction carries a [`Span`]; the module carries each source's name and text, so a
//! diagnostic can show the author's lines even when the file is gone (a notebook cell, a deleted
//! script). Spans never affect meaning: equality of modules is defined up to them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A position in a source: line and column, both counted from 1, columns in characters.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A source text of a module, by its place in [`crate::Module::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceId(pub u32);

/// A call that was inlined, by its place in [`crate::Module::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// A range of a source text, and the chain of inlined calls through which it was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The text, or `None` for code that no author wrote.
    pub source: Option<SourceId>,
    /// First character.
    pub start: Position,
    /// One past the last character.
    pub end: Position,
    /// The innermost inlined call that this code came from.
    pub call: Option<CallId>,
}

impl Span {
    /// The span of code that no author wrote.
    pub const NONE: Span = Span {
        source: None,
        start: Position { line: 0, column: 0 },
        end: Position { line: 0, column: 0 },
        call: None,
    };
}

/// A source text: a file, a notebook cell, a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What to call it in messages, usually a path.
    pub name: Arc<str>,
    /// All of its text.
    pub text: Arc<str>,
}

impl Source {
    /// The line of that number (from 1), without its end-of-line.
    pub fn line(&self, line: u32) -> Option<&str> {
        self.text.lines().nth(line.checked_sub(1)? as usize)
    }
}

/// One inlined call: a helper function's body stands where it was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The function that was inlined.
    pub function: Arc<str>,
    /// Where it was called; its own `call` field leads further out.
    pub site: Span,
}
