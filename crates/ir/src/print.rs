//! What `print` means: how its text is read, how values are written in it, and what a dispatch keeps.
//!
//! Every device gives the values of a line as bits; the host makes the text of them, here and nowhere
//! else, so that a line reads the same wherever it was printed.
//!
//! Deliberately absent: widths, alignment and precision, and text as a value of a kernel.

use std::fmt;

use crate::inst::Const;
use crate::span::Span;
use crate::types::{Scalar, Type};

/// The most bytes that the text of a `print` may have.
pub const MAX_TEXT_BYTES: usize = 4096;

/// The most scalars that a `print` may print: each component of a vector is one.
pub const MAX_SCALARS: usize = 64;

/// How much the lines of one dispatch may take together, in bytes as [`line_bytes`] counts them (P5).
pub const LIMIT_BYTES: u32 = 1 << 20;

/// What a line takes of [`LIMIT_BYTES`]: 16 bytes, and 4 for each scalar, or 8 where that has 64 bits.
///
/// ```
/// use invar_ir::{Scalar, Type, print::line_bytes};
/// assert_eq!(line_bytes(&[Type::U32, Type::Vector(Scalar::F64, 2)]), 36);
/// ```
pub fn line_bytes(types: &[Type]) -> u32 {
    16 + types.iter().map(|ty| scalar_words(*ty) * 4).sum::<u32>()
}

/// How many 32-bit words hold the bits of a value.
fn scalar_words(ty: Type) -> u32 {
    ty.component_count() * ty.component_scalar().bits().div_ceil(32)
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `{}`: numbers in decimal, floats with the fewest digits that say which one it is.
    Plain,
    /// `{:x}`: integers by their bits, in hexadecimal.
    Hexadecimal,
    /// `{:c}`: integers as the characters of these numbers.
    Character,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Style),
}

/// The text of a `print`, read.
///
/// `{}` stands for the next value, `{:x}` for the next integer in hexadecimal, and `{:c}` for the character of
/// which the next integer is the number; `{{` and `}}` are braces. A vector is written `(1, 2, 3)`.
///
/// ```
/// use invar_ir::{Const, Type, print::Template};
///
/// let template = Template::parse("{{{}}} at {:x}, {:c}")?;
/// let values = [Const::from(0.5f32), Const::from(255u32), Const::from(65u32)];
/// let line = template.line(&[Type::F32, Type::U32, Type::U32], &values);
/// assert_eq!(line, "{0.5} at ff, A");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with its braces, in lower case.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            let style = Style::ALL.into_iter().find(|s| rest.starts_with(s.mark()));
            if let Some(style) = style {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Value(style));
                rest = &rest[style.mark().len()..];
            } else if rest.starts_with("{{") || rest.starts_with("}}") {
                plain.push_str(&rest[..1]);
                rest = &rest[2..];
            } else if rest.starts_with('}') {
                return Err("the text has a `}` that no `{` opens".to_string());
            } else {
                let inside = &rest[..rest.find('}').map_or(1, |end| end + 1)];
                let inside: String = inside.chars().take(16).collect();
                let inside = inside.escape_debug();
                return Err(format!("`{inside}` is not a placeholder"));
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template { pieces })
    }

    fn styles(&self) -> impl Iterator<Item = Style> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(style) => Some(*style),
            Piece::Text(_) => None,
        })
    }

    /// How many values it takes.
    pub fn placeholders(&self) -> usize {
        self.styles().count()
    }

    /// The first value that its placeholder cannot write, by its place, and the placeholder.
    pub fn mismatch(&self, types: &[Type]) -> Option<(usize, &'static str)> {
        let misfit = |(style, ty): (Style, &Type)| match style {
            Style::Hexadecimal | Style::Character
                if !ty.scalar().is_some_and(Scalar::is_integer) =>
            {
                Some(style.mark())
            }
            _suits => None,
        };
        let mut pairs = self.styles().zip(types).map(misfit).enumerate();
        pairs.find_map(|(at, misfit)| Some((at, misfit?)))
    }

    /// The line of values of these types, whose scalars come one after another.
    pub fn line(&self, types: &[Type], scalars: &[Const]) -> String {
        let (mut types, mut scalars) = (types.iter(), scalars.iter());
        let mut line = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Value(style) => {
                    let count = types.next().map_or(0, |ty| ty.component_count());
                    let parts = scalars.by_ref().take(count as usize);
                    let parts: Vec<String> = parts.map(|c| style.write(*c)).collect();
                    match &parts[..] {
                        [one] => line.push_str(one),
                        several => {
                            line.push('(');
                            line.push_str(&several.join(", "));
                            line.push(')');
                        }
                    }
                }
            }
        }
        line
    }
}

impl Style {
    const ALL: [Style; 3] = [Style::Plain, Style::Hexadecimal, Style::Character];

    /// How it stands in a text.
    fn mark(self) -> &'static str {
        match self {
            Style::Plain => "{}",
            Style::Hexadecimal => "{:x}",
            Style::Character => "{:c}",
        }
    }

    fn write(self, constant: Const) -> String {
        match self {
            Style::Hexadecimal => format!("{:x}", constant.bits),
            Style::Character => {
                let number = u32::try_from(constant.bits).ok();
                let character = number.and_then(char::from_u32);
                character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
            }
            // Which NaN it is, devices may differ in.
            Style::Plain if constant.is_nan() => "NaN".to_string(),
            Style::Plain => constant.to_string(),
        }
    }
}

/// A line that a thread printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The thread's position in the grid.
    pub thread: [u32; 3],
    /// Where the `print` was written.
    pub span: Span,
    /// The text, without an end of line.
    pub text: String,
}

impl fmt::Display for Line {
    /// The text alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a dispatch printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The lines, those of one thread in the order in which it printed them (P3).
    pub lines: Vec<Line>,
    /// How many more there were than [`LIMIT_BYTES`] had room for.
    pub lost: u64,
    taken_bytes: u32,
}

impl Printed {
    /// Adds a line that takes so many bytes, if there is room; from the first on for which there is
    /// none, all are lost.
    pub fn push(&mut self, size_bytes: u32, line: impl FnOnce() -> Line) {
        if self.lost > 0 || size_bytes > LIMIT_BYTES - self.taken_bytes {
            self.lost += 1;
        } else {
            self.taken_bytes += size_bytes;
            self.lines.push(line());
        }
    }

    /// What to say of lines that were lost, if any were.
    ///
    /// ```
    /// use invar_ir::print::{Line, Printed};
    ///
    /// let mut printed = Printed::default();
    /// assert_eq!(printed.notice(), None);
    /// let line = || Line { thread: [0; 3], span: Default::default(), text: "x".to_string() };
    /// (0..65537).for_each(|_| printed.push(16, line));
    /// assert_eq!((printed.lines.len(), printed.lost), (65536, 1));
    /// assert!(printed.notice().is_some_and(|text| text.starts_with("1 more line ")));
    /// ```
    pub fn notice(&self) -> Option<String> {
        let lines = match self.lost {
            0 => return None,
            1 => "1 more line".to_string(),
            n => format!("{n} more lines"),
        };
        let limit = LIMIT_BYTES >> 20;
        Some(format!(
            "{lines} of `print` left out: a dispatch keeps {limit} MiB; print in fewer threads"
        ))
    }
}
