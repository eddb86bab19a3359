//! Invar: GPU kernels with one enforced memory model.
//!
//! This is the crate to depend on. It gathers the parts and adds what every front end shares:
//! reports with the author's own lines ([`report`]), NumPy's array files ([`npy`]) and how results
//! are written ([`files`]). Devices, buffers, programs and queues stand here by their own names.

pub mod build;
pub mod files;
pub mod kernel;
pub mod npy;
pub mod prelude;
pub mod report;

pub use invar_codegen as codegen;
pub use invar_interp as interp;
pub use invar_ir as ir;
pub use invar_layout as layout;
#[cfg(feature = "cpu")]
pub use invar_llvm as llvm;
pub use invar_prove as prove;
pub use invar_runtime as runtime;
pub use invar_wgsl as wgsl;

pub use invar_runtime::{
    Arg, Buffer, ByteBuffer, Capabilities, CompileOptions, Device, Dispatch, Error, Feature, Grid,
    Program, Queue, Submission, Timestamps, scope,
};

/// What may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Runs the examples of the page on running kernels.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/running.md")]
struct Running;

/// Runs the examples of the page on kernels in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Rust;
