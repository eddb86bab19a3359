//! From verified kernels to what devices compile: passes over the IR, and the writers of shading
//! languages.
//!
//! Deliberately absent: devices, execution, LLVM.

pub mod analysis;
pub mod drivers;
pub mod msl;
pub mod passes;
pub mod pipeline;
mod shading;
mod tuning;
pub mod wgsl;
pub mod wide_indices;

pub use shading::comment::one_line;
