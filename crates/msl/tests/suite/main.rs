//! What becomes of kernels in Metal's language.

mod files;
