//! What becomes of shaders.

mod advice;
mod comments;
mod files;
mod lints;
mod refusals;
mod structure;
mod words;
