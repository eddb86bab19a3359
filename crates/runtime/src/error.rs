//! What can go wrong, with the rule that it breaks.

use std::fmt;

use invar_ir::{Diagnostic, Diagnostics, Rule, Span};

/// Why something was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The kernel, an argument or a run breaks rules; with places in the author's text.
    Diagnostics(Diagnostics),
    /// What has no place in the author's text: a device or the host that cannot or has failed, or an
    /// argument that makes no sense.
    Runtime {
        /// The rule.
        rule: Rule,
        /// What is wrong and what to do, in one sentence.
        message: String,
    },
}

impl Error {
    pub(crate) fn new(rule: Rule, message: impl Into<String>) -> Error {
        Error::Runtime {
            rule,
            message: message.into(),
        }
    }

    /// The first rule that it names.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Error::Diagnostics(Diagnostics(all)) => all.first().map(|d| d.rule),
            Error::Runtime { rule, .. } => Some(*rule),
        }
    }

    /// The same for somebody who asked for something else than the dispatch that it is about.
    pub(crate) fn of_earlier_dispatch(&self) -> Error {
        let Some(rule) = self.rule() else {
            return self.clone();
        };
        let message = match self {
            // Their places are in another kernel's text.
            Error::Diagnostics(Diagnostics(all)) => {
                let sentences: Vec<&str> = all.iter().map(|d| d.message.as_str()).collect();
                sentences.join("; ")
            }
            Error::Runtime { message, .. } => message.clone(),
        };
        Error::new(
            rule,
            format!(
                "an earlier dispatch on the same memory failed, and its result was not asked for: {message}"
            ),
        )
    }

    /// The same as diagnostics, to be shown as a report.
    pub fn into_diagnostics(self) -> Diagnostics {
        match self {
            Error::Diagnostics(all) => all,
            Error::Runtime { rule, message } => {
                Diagnostics(vec![Diagnostic::error(rule, Span::NONE, message)])
            }
        }
    }
}

impl From<Diagnostics> for Error {
    fn from(all: Diagnostics) -> Error {
        Error::Diagnostics(all)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Diagnostics(all) => all.fmt(f),
            Error::Runtime { rule, message } => write!(f, "error[{rule}]: {message}"),
        }
    }
}

impl std::error::Error for Error {}

/// A fault of ours, as an error.
pub(crate) fn failed(part: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let what = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    fault(&format!("the {part} failed"), &what)
}

/// A fault of ours, as an error of one sentence: what happened, and the first line of the reason.
pub(crate) fn fault(what: &str, reason: &str) -> Error {
    let reason = reason.lines().map(str::trim).find(|line| !line.is_empty());
    Error::new(
        Rule::DeviceLost,
        format!(
            "{what}, which is a bug in Invar: {}",
            reason.unwrap_or("no reason is given")
        ),
    )
}
