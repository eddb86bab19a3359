//! Invar: GPU kernels with one enforced memory model.
//!
//! This is the crate to depend on. Devices, buffers, programs and queues stand here by their own
//! names; modules, types and diagnostics in [`ir`]; reports with the author's own lines in
//! [`report`]; kernels as the code of a target in [`emit`]; shaders in [`wgsl`]. Absent: the parts
//! that make them, which are crates of their own and no interface to rely on.
//!
//! A kernel is a Rust function ([`kernel`]):
//!
//! ```
//! use invar::prelude::*;
//!
//! #[kernel]
//! fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
//!     let i = thread_position_in_grid().x;
//!     y[i] = a * x[i] + y[i];
//! }
//!
//! fn main() -> invar::Result<()> {
//!     let device = Device::default()?;
//!     let x = device.buffer_from(&vec![1.0f32; 1 << 20])?;
//!     let mut y = device.buffer_zeroed::<f32>(1 << 20)?;
//!     saxpy::launch(&device, Grid::threads(1 << 20), 2.0, &x, &mut y)?.wait()?;
//!     assert_eq!(y.read()?[0], 2.0);
//!     Ok(())
//! }
//! ```
//!
//! Programs that generate kernels use [`build`].

pub mod build;
mod build_closures;
mod build_textures;
#[cfg(feature = "cpu")]
pub mod emit;
pub mod ir;
pub mod kernel;
pub mod prelude;
pub mod report;

pub use invar_runtime::{
    Arg, Buffer, ByteBuffer, Capabilities, CompileOptions, Device, Dispatch, Element, Error,
    Feature, Grid, PixelFormat, Program, Queue, Sampler, Submission, Texture, TextureShape,
    Timestamps, bf16, cache_refusal, f16, finish, on_print, scope,
};

/// Compute shaders in WGSL as kernels.
pub mod wgsl {
    pub use invar_wgsl::{Entry, Kernels, Resource, Shader, directives, entries, read};
}

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

/// Runs the examples of the page on textures.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/textures.md")]
struct Textures;

/// Runs the examples of the page on kernels in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Rust;
