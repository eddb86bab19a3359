//! Text of the author in comments of what is written.

use std::collections::HashMap;

use invar_ir::{Module, Span};

/// The lines of a module's sources, each source taken apart once.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    of: HashMap<u32, Vec<&'a str>>,
}

impl<'a> Lines<'a> {
    /// The line on which a span begins.
    pub(crate) fn at(&mut self, module: &'a Module, span: Span) -> Option<&'a str> {
        let source = span.source?.0;
        let text = module.sources.get(source as usize)?;
        let lines = self
            .of
            .entry(source)
            .or_insert_with(|| text.text.lines().collect());
        let number = span.start.line.checked_sub(1)?;
        lines.get(number as usize).copied()
    }
}

/// A line that stays in a comment: without what ends a line in some language (WGSL also takes U+2028 and
/// U+2029 for that), and without a backslash at the end, by which C++ takes the next line for more of it.
/// Up to C++14 `??/` is another way to write a backslash.
pub(crate) fn one_line(text: &str) -> String {
    let text: String = text
        .trim()
        .chars()
        .map(|c| match c {
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    let text = text.trim_end_matches(['\\', ' ']);
    match text.strip_suffix("??/") {
        Some(before) => format!("{before}?? /"),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn no_line_goes_on_in_the_next() {
        assert_eq!(one_line("a\u{2028}b \\ \\"), "a b");
        assert_eq!(one_line("where??/"), "where?? /");
        assert_eq!(one_line("where??/ \\"), "where?? /");
        assert_eq!(one_line("a ??/ b"), "a ??/ b");
    }
}
