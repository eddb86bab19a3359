//! What becomes of shaders.

mod comments;
mod files;
mod lints;
mod refusals;
mod structure;
