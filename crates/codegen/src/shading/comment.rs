//! The author's text in comments of what is written.

use std::collections::HashMap;

use invar_ir::{Module, Span};

/// The author's lines, each quoted once for all that comes from it.
#[derive(Default)]
pub(crate) struct Quotes<'a> {
    /// Lines of sources, each source taken apart once.
    lines: HashMap<u32, Vec<&'a str>>,
    last: Option<(u32, u32)>,
}

impl<'a> Quotes<'a> {
    /// The number and the text of the line on which a span begins, unless it is the one that was quoted last.
    pub(crate) fn next(&mut self, module: &'a Module, span: Span) -> Option<(u32, String)> {
        let at = (span.source?.0, span.start.line);
        if self.last == Some(at) {
            return None;
        }
        self.last = Some(at);
        let source = module.sources.get(at.0 as usize)?;
        let lines = self.lines.entry(at.0);
        let lines = lines.or_insert_with(|| source.text.lines().collect());
        let text = lines.get(at.1.checked_sub(1)? as usize)?;
        Some((at.1, one_line(text)))
    }
}

/// A line that stays in a comment: without what ends a line in some language (WGSL also takes U+2028 and
/// U+2029 for that), and without a backslash at the end, by which C++ takes the next line for more of it.
/// Up to C++14 `??/` is another way to write a backslash.
pub fn one_line(text: &str) -> String {
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
