//! Devices, buffers, programs and queues: how a verified kernel runs.
//!
//! [`Device::compile`] makes a [`Program`] of a kernel; [`Queue::dispatch`] runs it on arguments and
//! gives a [`Submission`] to wait for; [`Buffer`]s hold what kernels read and write.
//!
//! Invariants: every argument, size and limit is checked before anything runs; what goes wrong is an
//! [`Error`] that names a rule, never a panic; dispatches and accesses of the host that share memory
//! which one of them writes happen in the order submitted (O3).
//!
//! Deliberately absent: front ends, reports.

mod argument;
mod backend;
mod background;
mod buffer;
mod bytes;
mod capabilities;
mod checked;
#[cfg(feature = "proofs")]
mod compiling;
#[cfg(feature = "cpu")]
mod cpu;
mod device;
mod devices;
mod environment;
mod error;
mod executor;
mod faults;
mod fork;
#[cfg(feature = "gpu")]
pub mod gpu;
mod host;
mod interrupt;
mod memory;
#[cfg(test)]
mod null;
mod pages;
mod pending;
mod placement;
mod print;
mod program;
#[cfg(feature = "proofs")]
mod proof;
mod queue;
mod sync;
mod task;
mod texture;
mod uses;

pub use argument::{Arg, Components};
pub use backend::CompileOptions;
pub use background::{ends_now, leavable};
pub use buffer::{Buffer, Element, Scope, ScopedBuffer, scope};
pub use bytes::{BufferSlice, ByteBuffer};
pub use capabilities::{Capabilities, Feature};
pub use device::Device;
pub use devices::check_environment;
pub use environment::environment_time_limit;
pub use error::Error;
pub use executor::finish;
pub use fork::watch as watch_forks;
pub use interrupt::interruptible;
pub use invar_cache::cache_refusal;
pub use print::on_print;
pub use program::Program;
pub use queue::{Queue, Submission};
pub use task::Timestamps;
pub use texture::Texture;

pub use half::{bf16, f16};
pub use invar_interp::{CheckOptions, Dispatch, Grid, Report};
pub use invar_texture::{
    Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, PixelFormat, Sampler,
    TextureShape,
};
