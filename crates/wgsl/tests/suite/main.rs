//! What becomes of shaders.

mod files;
mod lints;
mod refusals;
mod structure;
