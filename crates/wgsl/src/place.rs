//! Places in a shader: naga counts bytes, of the text as it is given to naga, Invar lines and columns.

use std::sync::Arc;

use invar_ir::{Position, SourceId, Span};

use crate::bitcast::{Edit, FromHalves};
use crate::swizzle::Swizzle;

/// The longest text of an author's that stands in a sentence, in characters.
const MAX_WRITTEN: usize = 40;

/// A shader's text by line.
pub(crate) struct Lines {
    text: Arc<str>,
    /// Whether a byte of it is a column.
    is_ascii: bool,
    /// Where each line begins.
    starts: Vec<usize>,
    /// The text that naga reads, and what is other there.
    read: String,
    edits: Vec<Edit>,
}

impl Lines {
    /// `from_halves` are the bitcasts that are known to be from vectors of `f16`, `swizzles` the assignments that are
    /// known to be to several components.
    pub fn new(text: Arc<str>, from_halves: &[FromHalves], swizzles: &[Swizzle]) -> Lines {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        let enabled = crate::enable::as_naga_knows(&text);
        let changes = swizzles.iter().flat_map(|s| s.changes(&enabled)).collect();
        let (read, edits) = crate::bitcast::as_naga_knows(&enabled, from_halves, changes);
        Lines {
            is_ascii: text.is_ascii(),
            text,
            starts,
            read,
            edits,
        }
    }

    /// Whether it has builtins of `linear_indexing`, in the places of which naga reads others.
    pub fn has_linear_indices(&self) -> bool {
        crate::enable::has_linear_indices(&self.text)
    }

    /// The text for naga.
    pub fn as_naga_knows(&self) -> &str {
        &self.read
    }

    /// Where what naga reads at a byte stands in the author's text; of what stands for something else,
    /// the beginning of that, or for the end of a place its end.
    fn written(&self, read: usize, is_end: bool) -> usize {
        // How far the text has moved before.
        let mut moved = 0_isize;
        for edit in &self.edits {
            let start = edit.at.saturating_add_signed(moved);
            let end = start + edit.is;
            if read < start || (is_end && read == start) {
                break;
            }
            if read < end || (is_end && read == end) {
                return if is_end {
                    edit.shows.end
                } else {
                    edit.shows.start
                };
            }
            moved += edit.is as isize - edit.was as isize;
        }
        read.saturating_add_signed(-moved)
    }

    /// The byte of the author's text at which a place begins.
    pub fn byte(&self, span: naga::Span) -> Option<usize> {
        Some(self.written(span.to_range()?.start, false))
    }

    fn position(&self, at: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(self.starts[line - 1]..at).unwrap_or_default();
        // Shaders that tools make small are one long line.
        let columns = match self.is_ascii {
            true => before.len(),
            false => before.chars().count(),
        };
        Position {
            line: line as u32,
            column: columns as u32 + 1,
        }
    }

    /// The place, from its first word on; of one that is longer than a line, its first line.
    pub fn span(&self, span: naga::Span) -> Span {
        let Some(range) = span.to_range() else {
            return Span::NONE;
        };
        let mut range = self.written(range.start, false)..self.written(range.end, true);
        // Naga has conditions of loops begin where what is before them ends.
        let start = crate::depth::after_spaces(self.text.as_bytes(), range.start);
        if start < range.end {
            range.start = start;
        }
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

    /// The place of a part of the author's text.
    pub fn of(&self, range: std::ops::Range<usize>) -> Span {
        Span {
            source: Some(SourceId(0)),
            start: self.position(range.start),
            end: self.position(range.end),
            call: None,
        }
    }

    /// What an author wrote at a place, if it is short and on one line.
    pub fn written_at(&self, span: naga::Span) -> Option<&str> {
        let range = span.to_range()?;
        let text = self
            .text
            .get(self.written(range.start, false)..self.written(range.end, true));
        let text = text?.trim();
        let is_short = text.chars().count() <= MAX_WRITTEN && !text.contains('\n');
        (is_short && !text.is_empty()).then_some(text)
    }

    /// Where a function's declaration begins, as naga counts.
    pub fn head(&self, name: &str) -> Option<naga::Span> {
        for (at, _) in self.read.match_indices("fn") {
            let rest = self.read[at + 2..].trim_start();
            let tail = rest.strip_prefix(name);
            let whole =
                tail.is_some_and(|t| !t.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
            if whole && rest.len() < self.read.len() - at - 2 {
                let end = self.read.len() - rest.len() + name.len();
                return Some(naga::Span::new(at as u32, end as u32));
            }
        }
        None
    }

    /// Where the length of the array of most elements is written, of which naga may say only that there is one too
    /// large.
    pub fn longest_array(&self) -> Option<naga::Span> {
        let lengths = self.read.match_indices(',').filter_map(|(at, _)| {
            let rest = &self.read[at + 1..];
            let digits = rest.trim_start();
            let from = self.read.len() - digits.len();
            let count = digits.find(|c: char| !c.is_ascii_digit())?;
            let after = digits[count..].trim_start_matches(['u', 'i']).trim_start();
            let length: u64 = digits[..count].parse().ok()?;
            after.starts_with('>').then_some((length, from, count))
        });
        let (_, from, count) = lengths.max_by_key(|(length, ..)| *length)?;
        Some(naga::Span::new(from as u32, (from + count) as u32))
    }

    /// The place of what is wrong with the whole of a shader: its beginning.
    pub fn beginning(&self) -> Span {
        let start = Position { line: 1, column: 1 };
        Span {
            source: Some(SourceId(0)),
            start,
            end: start,
            call: None,
        }
    }

    /// The place, or, where naga gives none, another.
    pub fn span_or(&self, span: naga::Span, other: Option<naga::Span>) -> Span {
        let spans = [Some(span), other].into_iter().flatten();
        let known = spans.map(|span| self.span(span));
        let mut known = known.filter(|span| span.source.is_some());
        known.next().unwrap_or_else(|| self.beginning())
    }
}
