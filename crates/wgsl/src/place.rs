//! Places in a shader: naga counts bytes, Invar lines and columns.

use std::sync::Arc;

use invar_ir::{Position, SourceId, Span};

/// A shader's text by line.
pub(crate) struct Lines {
    text: Arc<str>,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Lines {
    pub fn new(text: Arc<str>) -> Lines {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Lines { text, starts }
    }

    fn position(&self, at: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(self.starts[line - 1]..at).unwrap_or_default();
        Position {
            line: line as u32,
            column: before.chars().count() as u32 + 1,
        }
    }

    /// The place; of one that is longer than a line, its first line.
    pub fn span(&self, span: naga::Span) -> Span {
        let Some(range) = span.to_range() else {
            return Span::NONE;
        };
        let Some(text) = self.text.get(range.clone()) else {
            return Span::NONE;
        };
        let line = text.lines().next().unwrap_or_default().trim_end();
        Span {
            source: Some(SourceId(0)),
            start: self.position(range.start),
            end: self.position(range.start + line.len()),
            call: None,
        }
    }

    /// Where a function's declaration begins.
    pub fn entry_head(&self, name: &str) -> Option<naga::Span> {
        for (at, _) in self.text.match_indices("fn") {
            let rest = self.text[at + 2..].trim_start();
            let tail = rest.strip_prefix(name);
            let whole =
                tail.is_some_and(|t| !t.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
            if whole && rest.len() < self.text.len() - at - 2 {
                let end = self.text.len() - rest.len() + name.len();
                return Some(naga::Span::new(at as u32, end as u32));
            }
        }
        None
    }
}
