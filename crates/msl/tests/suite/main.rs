//! What becomes of kernels in Metal's language.

#[path = "../../../wgsl/tests/suite/comments.rs"]
mod comments;
mod emitted;
mod files;
#[cfg(unix)]
mod kept;
mod refused;
