//! Diagnostics: what is wrong, where in the author's text, and what to do about it.
//!
//! This module only carries them; rendering with the source lines is the front end's.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use crate::rules::Rule;
use crate::span::{Call, CallId, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is refused.
    Warning,
    /// The kernel is refused, or its run broke a rule.
    Error,
}

/// A place in the text and what it has to do with the matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The rule that it breaks; `invar explain` tells more.
    pub rule: Rule,
    /// What is wrong, in lower case, with the author's own names.
    pub message: String,
    /// Where; the first is the place itself.
    pub labels: Vec<Label>,
    /// What to do, if anything can be said.
    pub help: Option<String>,
    /// The inlined calls that its places name, if it brings them along, as what is refused before there is a module
    /// does; else they are the module's.
    pub calls: Vec<Call>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(rule: Rule, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            rule,
            message: message.into(),
            labels: vec![Label {
                span,
                text: String::new(),
            }],
            help: None,
            calls: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(rule: Rule, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(rule, span, message)
        }
    }

    /// The same with text at the first place.
    #[must_use]
    pub fn labelled(mut self, text: impl Into<String>) -> Diagnostic {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// The same with a further place.
    #[must_use]
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same with those of these inlined calls that its places name.
    #[must_use]
    pub fn bringing(mut self, calls: &[Call]) -> Diagnostic {
        let mut known = HashMap::new();
        for label in &mut self.labels {
            let mut chain = Vec::new();
            let (mut at, mut outer) = (label.span.call, None);
            while let Some(id) = at {
                if let Some(kept) = known.get(&id) {
                    outer = Some(*kept);
                    break;
                }
                let Some(call) = calls
                    .get(id.0 as usize)
                    .filter(|_| chain.len() < calls.len())
                else {
                    break;
                };
                chain.push((id, call));
                at = call.site.call;
            }
            for (id, call) in chain.into_iter().rev() {
                let mut call = call.clone();
                call.site.call = outer;
                let kept = CallId(self.calls.len() as u32);
                self.calls.push(call);
                known.insert(id, kept);
                outer = Some(kept);
            }
            label.span.call = outer;
        }
        self
    }

    /// Where it is.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |l| l.span)
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `error[type-mismatch] at 3:5: operand 2 (%n) has type i8, expected i32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]", self.rule)?;
        let span = self.span();
        if span.source.is_some() {
            write!(f, " at {}:{}", span.start.line, span.start.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// A path as it stands in a sentence, which is one line and reads as it is written, whatever is in the path: characters
/// that are not letters, such as the end of a line or what turns the text around it, are escaped.
///
/// ```
/// use invar_ir::diagnostic::path_text;
///
/// assert_eq!(path_text("a folder/k.inv".as_ref()), "a folder/k.inv");
/// assert_eq!(path_text("two\nlines".as_ref()), r"two\nlines");
/// ```
pub fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                text.extend(c.escape_unicode());
            }
            c if c.is_control() => text.extend(c.escape_debug()),
            c => text.push(c),
        }
    }
    text
}
