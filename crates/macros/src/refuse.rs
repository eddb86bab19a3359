//! Errors that rustc shows on the author's words.

use syn::spanned::Spanned;
use syn::{Error, Result};

/// An error on some words.
pub fn refuse<T>(words: impl Spanned, message: &str) -> Result<T> {
    Err(Error::new(words.span(), message))
}
