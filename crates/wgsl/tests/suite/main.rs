//! What becomes of shaders.

mod files;
mod refusals;
mod structure;
