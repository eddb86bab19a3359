//! How commands end.

/// Why a command cannot go on: a sentence for the user, or several on lines of their own. Exit code 2.
pub struct Refusal(pub String);

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal(error.to_string())
    }
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to complain of.
    Clean,
    /// Errors were found.
    Errors,
}
