//! The words of Metal source, and what is put in their place, with the way back from a place in the text
//! that clang reads to the place where it was written.

use std::fmt::Write as _;

/// A text cut into words, each with what stands for it.
pub(crate) struct Tokens<'a> {
    words: Vec<&'a str>,
    /// What stands for a word, where it is another.
    instead: Vec<Option<String>>,
}

/// Where the words of a changed text stood: by line, the column there and the column and length here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    lines: Vec<Vec<(u32, u32, u32)>>,
}

impl Columns {
    /// Where what stands at a column of a line was written, and how long it is there; columns count bytes
    /// from 1.
    pub fn written(&self, line: u32, column: u32) -> (u32, u32) {
        let words = self.lines.get((line as usize).saturating_sub(1));
        let words = words.map_or(&[][..], |w| w);
        let after = words.partition_point(|(at, ..)| *at <= column);
        match after.checked_sub(1).map(|i| words[i]) {
            Some((at, was, length)) => {
                let into = (column - at).min(length.saturating_sub(1));
                (was + into, length - into)
            }
            None => (column, 1),
        }
    }
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a str) -> Tokens<'a> {
        let mut words = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(length(rest));
            words.push(word);
            rest = after;
        }
        Tokens {
            instead: vec![None; words.len()],
            words,
        }
    }

    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// A word as it was written; nothing beyond the ends.
    pub fn word(&self, at: usize) -> &'a str {
        self.words.get(at).copied().unwrap_or("")
    }

    /// The words of a range, as they were written.
    pub fn text(&self, from: usize, to: usize) -> String {
        self.words[from.min(self.len())..to.min(self.len())].concat()
    }

    /// Whether a word says nothing.
    pub fn is_blank(&self, at: usize) -> bool {
        is_blank(self.word(at))
    }

    /// The next word that says something.
    pub fn next(&self, at: usize) -> usize {
        let mut at = at + 1;
        while at < self.len() && self.is_blank(at) {
            at += 1;
        }
        at
    }

    /// The word before that says something; beyond the end if there is none.
    pub fn previous(&self, at: usize) -> usize {
        let mut at = at;
        while let Some(before) = at.checked_sub(1) {
            at = before;
            if !self.is_blank(at) {
                return at;
            }
        }
        usize::MAX
    }

    /// The end of what the brackets of a word enclose: the word that closes them.
    pub fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                "[[" => depth += 2,
                ")" | "]" | "}" => depth -= 1,
                "]]" => depth -= 2,
                _other => continue,
            }
            if depth <= 0 {
                return at;
            }
        }
        self.len()
    }

    /// Puts something in the place of a word.
    pub fn put(&mut self, at: usize, text: impl Into<String>) {
        if let Some(slot) = self.instead.get_mut(at) {
            *slot = Some(text.into());
        }
    }

    /// What stands for a word now.
    pub fn now(&self, at: usize) -> &str {
        self.instead[at].as_deref().unwrap_or(self.words[at])
    }

    /// Takes words out; lines stay, and so do lines of macros that go on.
    pub fn blank(&mut self, from: usize, to: usize) {
        for at in from..to.min(self.len()) {
            let word = self.words[at];
            if word != "\\" {
                self.put(at, "\n".repeat(word.matches('\n').count()));
            }
        }
    }

    /// The text, and where its words were written.
    pub fn finish(&self) -> (String, Columns) {
        let mut out = String::new();
        let mut columns = Columns {
            lines: vec![Vec::new()],
        };
        let (mut now, mut was) = (1_u32, 1_u32);
        for at in 0..self.len() {
            let (word, text) = (self.words[at], self.now(at));
            if let Some(line) = columns.lines.last_mut() {
                line.push((now, was, word.len() as u32));
            }
            // Writing to a string cannot fail.
            let _ = write!(out, "{text}");
            for _ in text.matches('\n') {
                columns.lines.push(Vec::new());
            }
            now = column_after(now, text);
            was = column_after(was, word);
        }
        (out, columns)
    }
}

fn column_after(column: u32, text: &str) -> u32 {
    match text.rfind('\n') {
        Some(at) => (text.len() - at) as u32,
        None => column + text.len() as u32,
    }
}

pub(crate) fn is_blank(word: &str) -> bool {
    // A line of a macro that goes on ends with a backslash.
    matches!(word, "" | "\\")
        || word.starts_with(char::is_whitespace)
        || word.starts_with("//")
        || word.starts_with("/*")
}

/// Whether a word is a number.
pub(crate) fn is_number(word: &str) -> bool {
    let mut bytes = word.bytes();
    match bytes.next() {
        Some(b'0'..=b'9') => true,
        Some(b'.') => bytes.next().is_some_and(|b| b.is_ascii_digit()),
        _other => false,
    }
}

/// How long the first word of a text is.
fn length(text: &str) -> usize {
    let up_to = |end: &str, from: usize| match text[from..].find(end) {
        Some(at) => from + at + end.len(),
        None => text.len(),
    };
    let while_ = |f: &dyn Fn(char) -> bool| text.find(|c: char| !f(c)).unwrap_or(text.len());
    let first = text.chars().next().unwrap_or(' ');
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return up_to("*/", 2);
    }
    if text.starts_with("R\"(") {
        return up_to(")\"", 3);
    }
    if first == '"' || first == '\'' {
        let mut escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            match c {
                '\n' => return at,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == first => return at + 1,
                _ => {}
            }
        }
        return text.len();
    }
    if is_number(text) {
        let bytes = text.as_bytes();
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        let mut at = 1;
        while at < bytes.len() {
            let (c, before) = (bytes[at], bytes[at - 1].to_ascii_lowercase());
            let exponent = if hexadecimal { b'p' } else { b'e' };
            let goes_on = c.is_ascii_alphanumeric()
                || c == b'.'
                || c == b'_'
                || c == b'\''
                || ((c == b'+' || c == b'-') && before == exponent);
            if !goes_on {
                break;
            }
            at += 1;
        }
        return at;
    }
    if first.is_alphabetic() || first == '_' {
        return while_(&|c| c.is_alphanumeric() || c == '_');
    }
    if first.is_whitespace() {
        return while_(&char::is_whitespace);
    }
    const LONG: [&str; 22] = [
        "<<=", ">>=", "[[", "]]", "->", "::", "&&", "||", "++", "--", "<=", ">=", "==", "!=", "+=",
        "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    ];
    match LONG.iter().find(|long| text.starts_with(**long)) {
        Some(long) => long.len(),
        None => first.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_through_what_was_put_in() {
        let mut tokens = Tokens::new("a.xy + 1.5;\nb");
        tokens.put(2, "swizzle<0, 1>()");
        let (text, columns) = tokens.finish();
        assert_eq!(text, "a.swizzle<0, 1>() + 1.5;\nb");
        assert_eq!(columns.written(1, 3), (3, 2));
        assert_eq!(columns.written(1, 19), (6, 1));
        assert_eq!(columns.written(2, 1), (1, 1));
    }
}
