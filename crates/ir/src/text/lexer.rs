//! Tokens of the text form, made one at a time so that memory stays bounded by the line at hand.
//!
//! Line ends are not tokens: a caller that needs them compares the lines of two tokens. Comments are
//! tokens, because run directives and expectations are written in them.

use std::borrow::Cow;

use crate::span::{Position, SourceId, Span};

/// The source that a text is parsed as: the only one of its module.
pub(super) const SOURCE: SourceId = SourceId(0);

/// A name behind a sigil.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name<'a> {
    /// `%total`, `%"two words"`.
    Named(Cow<'a, str>),
    /// `%12`.
    Number(&'a str),
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    /// A word: `store`, `f32x4`, `inf`.
    Word(&'a str),
    /// A quoted string, unescaped.
    Quoted(Cow<'a, str>),
    /// `%name`.
    Value(Name<'a>),
    /// `@name`.
    Global(Cow<'a, str>),
    /// A number as written: `-1.5e3`, `0xff`.
    Number(&'a str),
    /// Punctuation.
    Mark(&'static str),
    /// What follows a `;` on its line.
    Comment {
        /// The text, trimmed.
        text: &'a str,
        /// Whether the line holds nothing else.
        alone: bool,
        /// Makes tokens of the comment and of those that follow it line by line.
        inside: Lexer<'a>,
    },
    /// What belongs to no token, and why.
    Bad(String),
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// Its first character.
    pub start: Position,
    /// One past its last character.
    pub end: Position,
}

impl Token<'_> {
    /// Where it stands.
    pub fn span(&self) -> Span {
        span(self.start, self.end)
    }

    /// How a message calls it.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Word(word) => format!("`{}`", shorten(word)),
            Kind::Quoted(text) => format!("`{}`", shorten(&quoted(text))),
            Kind::Value(name) => format!("`{}`", shorten(&name.to_string())),
            Kind::Global(name) => format!("`@{}`", shorten(&name_text(name))),
            Kind::Number(text) => format!("`{}`", shorten(text)),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::Comment { .. } => "a comment".to_string(),
            Kind::Bad(why) => why.clone(),
            Kind::End => "the end of the text".to_string(),
        }
    }
}

/// A range of the text being parsed.
pub(super) fn span(start: Position, end: Position) -> Span {
    Span {
        source: Some(SOURCE),
        start,
        end,
        call: None,
    }
}

/// At most 64 characters of a user's text, for a message.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(64) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::Named(name) => write!(f, "%{}", name_text(name)),
            Name::Number(number) => write!(f, "%{number}"),
        }
    }
}

/// What is wrong with an `@` behind which no name stands.
pub(super) const NAMELESS: &str = "`@` without a name";

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a name needs no quotes after its sigil.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(|c| continues_word(c) || c == '.')
}

/// Whether a name needs no quotes where no sigil stands before it: a field.
fn is_plain_word(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(continues_word)
}

/// A name as written after its sigil: quoted unless it is an identifier.
pub(crate) fn name_text(name: &str) -> Cow<'_, str> {
    if is_plain_name(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name))
    }
}

/// A field's name as written: quoted unless it is an identifier without dots.
pub(super) fn field_text(name: &str) -> Cow<'_, str> {
    if is_plain_word(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name))
    }
}

/// A text in quotes, as written.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Makes tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    /// Whether it reads comments instead of what is between them.
    in_comments: bool,
    /// The line of the last token that was not a comment.
    code_line: u32,
}

impl<'a> Lexer<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer::at(text, Position { line: 1, column: 1 })
    }

    /// At the start of a piece of a text that begins at a position of it.
    pub fn at(text: &'a str, at: Position) -> Lexer<'a> {
        Lexer {
            rest: text,
            at,
            in_comments: false,
            code_line: 0,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    fn bump(&mut self) {
        if let Some(c) = self.peek() {
            self.rest = &self.rest[c.len_utf8()..];
            if c == '\n' {
                self.at.line = self.at.line.saturating_add(1);
                self.at.column = 1;
            } else {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
    }

    /// Takes characters as long as they please.
    fn take(&mut self, mut pleases: impl FnMut(char) -> bool) -> &'a str {
        let before = self.rest;
        while self.peek().is_some_and(&mut pleases) {
            self.bump();
        }
        &before[..before.len() - self.rest.len()]
    }

    /// Skips white space: in comments also from the end of one to the text of the next, if the next
    /// line is one; else the text ends there.
    fn skip_space(&mut self) {
        if !self.in_comments {
            self.take(char::is_whitespace);
            return;
        }
        loop {
            self.take(|c| c.is_whitespace() && c != '\n');
            match self.peek() {
                // A comment on the comment.
                Some(';') => {
                    self.take(|c| c != '\n');
                }
                Some('\n') => {
                    self.bump();
                    self.take(|c| c.is_whitespace() && c != '\n');
                    if self.peek() != Some(';') {
                        self.rest = "";
                        return;
                    }
                    self.bump();
                }
                Some(_) | None => return,
            }
        }
    }

    /// The next token, comments included.
    pub fn next(&mut self) -> Token<'a> {
        self.skip_space();
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(';') => {
                self.bump();
                let alone = self.code_line != start.line;
                let inside = Lexer {
                    in_comments: true,
                    ..self.clone()
                };
                let text = self.take(|c| c != '\n').trim();
                Kind::Comment {
                    text,
                    alone,
                    inside,
                }
            }
            Some('%') => {
                self.bump();
                match self.peek() {
                    Some(c) if c.is_whitespace() => Kind::Mark("%"),
                    Some(_) | None => self.value(),
                }
            }
            Some('@') => {
                self.bump();
                match self.peek() {
                    Some('"') => self.string(Kind::Global),
                    Some(c) if starts_name(c) => {
                        Kind::Global(Cow::Borrowed(self.take(|c| continues_word(c) || c == '.')))
                    }
                    Some(_) | None => Kind::Bad(NAMELESS.to_string()),
                }
            }
            Some('"') => self.string(Kind::Quoted),
            Some(c) if starts_name(c) => Kind::Word(self.take(continues_word)),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some('-') if self.peek_second() == Some('>') => {
                self.bump();
                self.bump();
                Kind::Mark("->")
            }
            Some('-')
                if self
                    .peek_second()
                    .is_some_and(|c| c.is_ascii_alphanumeric()) =>
            {
                self.number()
            }
            Some('=' | '~') if self.peek_second() == Some('=') => {
                let mark = if self.peek() == Some('=') { "==" } else { "~=" };
                self.bump();
                self.bump();
                Kind::Mark(mark)
            }
            Some('<' | '>' | '!') if self.peek_second() == Some('=') => {
                let mark = match self.peek() {
                    Some('<') => "<=",
                    Some('>') => ">=",
                    Some(_) | None => "!=",
                };
                self.bump();
                self.bump();
                Kind::Mark(mark)
            }
            Some(c) => {
                self.bump();
                const MARKS: [&str; 16] = [
                    "(", ")", "{", "}", "[", "]", ",", ":", "=", ".", "*", "|", "-", "+", "<", ">",
                ];
                match MARKS.into_iter().find(|m| m.starts_with(c)) {
                    Some(mark) => Kind::Mark(mark),
                    None => Kind::Bad(format!("the character `{}`", c.escape_debug())),
                }
            }
        };
        if !matches!(kind, Kind::Comment { .. }) {
            self.code_line = self.at.line;
        }
        Token {
            kind,
            start,
            end: self.at,
        }
    }

    /// What stands at once behind the last token, up to one of these characters or the end of the line; and where that is.
    pub fn up_to(&mut self, ends: &[char]) -> (&'a str, Position) {
        let taken = self.take(|c| c != '\n' && !ends.contains(&c));
        (taken, self.at)
    }

    /// The next token that is not a comment.
    pub fn next_code(&mut self) -> Token<'a> {
        loop {
            let token = self.next();
            if !matches!(token.kind, Kind::Comment { .. }) {
                return token;
            }
        }
    }

    fn value(&mut self) -> Kind<'a> {
        match self.peek() {
            Some('"') => self.string(|name| Kind::Value(Name::Named(name))),
            Some(c) if starts_name(c) => Kind::Value(Name::Named(Cow::Borrowed(
                self.take(|c| continues_word(c) || c == '.'),
            ))),
            Some(c) if c.is_ascii_digit() => {
                let number = self.take(|c| continues_word(c) || c == '.');
                if number.bytes().all(|b| b.is_ascii_digit()) {
                    Kind::Value(Name::Number(number))
                } else {
                    let number = shorten(number);
                    Kind::Bad(format!(
                        "`%{number}`, which is neither a number nor begins with a letter; write `%\"{number}\"`"
                    ))
                }
            }
            Some(_) | None => Kind::Bad("`%` without a name".to_string()),
        }
    }

    /// A number, or whatever is written together like one; what it means depends on its type.
    fn number(&mut self) -> Kind<'a> {
        let mut previous = None;
        let mut hexadecimal = false;
        let number = self.take(|c| {
            let exponent_sign =
                matches!(c, '+' | '-') && matches!(previous, Some('e' | 'E')) && !hexadecimal;
            let first_sign = c == '-' && previous.is_none();
            hexadecimal |= matches!(c, 'x' | 'X');
            previous = Some(c);
            first_sign || exponent_sign || continues_word(c) || c == '.'
        });
        Kind::Number(number)
    }

    /// A quoted string on one line, with the escapes `\"`, `\\` and `\u{hex}`.
    fn string(&mut self, make: impl FnOnce(Cow<'a, str>) -> Kind<'a>) -> Kind<'a> {
        self.bump();
        let plain = self.take(|c| !matches!(c, '"' | '\\') && !c.is_control());
        if self.peek() == Some('"') {
            self.bump();
            return make(Cow::Borrowed(plain));
        }
        let mut text = plain.to_string();
        loop {
            match self.peek() {
                Some('"') => {
                    self.bump();
                    return make(Cow::Owned(text));
                }
                Some('\\') => {
                    self.bump();
                    match self.escape() {
                        Some(c) => text.push(c),
                        None => {
                            return Kind::Bad(
                                "an escape other than `\\\"`, `\\\\` and `\\u{hex}`".to_string(),
                            );
                        }
                    }
                }
                Some(c) if !c.is_control() => {
                    self.bump();
                    text.push(c);
                }
                Some(_) | None => return Kind::Bad("a quote that nothing closes".to_string()),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        match self.peek()? {
            c @ ('"' | '\\') => {
                self.bump();
                Some(c)
            }
            'u' => {
                self.bump();
                if self.peek()? != '{' {
                    return None;
                }
                self.bump();
                let hex = self.take(|c| c.is_ascii_hexdigit());
                if self.peek()? != '}' {
                    return None;
                }
                self.bump();
                char::from_u32(u32::from_str_radix(hex, 16).ok()?)
            }
            _ => None,
        }
    }
}
