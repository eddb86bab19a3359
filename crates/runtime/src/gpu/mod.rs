//! GPUs through wgpu, with memory of their own.
//!
//! [`Gpu`] is an adapter that was opened, [`GpuBuffer`] memory on it, [`GpuProgram`] a kernel compiled
//! for it; [`Gpu::dispatch`] records a dispatch and returns. Dispatches are submitted in batches, when
//! there are many or when somebody waits for what they do, and run in the order recorded (O3). As the
//! device of a queue a GPU is fed by its submission queue (`submission_queue.rs`), which does not wait for the one
//! before.
//!
//! Invariants
//! - Every guard is in the text that the WGSL writer made, so shader modules are built without wgpu's own
//!   checks; what the writer takes for granted of a dispatch (lengths, sizes, no overlap) is checked here.
//! - A buffer's memory is a multiple of 16 bytes, so that a last group of elements can be read whole.
//! - Failures of wgpu are kept and given to the next caller, the loss of a device to every one. wgpu panics
//!   where it waits for a device that is lost: whatever calls it does so within `guarded`.
//!
//! Deliberately absent: `ieee-float`, which no target promises; memory orders beyond relaxed; browsers,
//! whose GPUs answer only programs that return to them, while every call here waits.

mod adapters;
mod bind_groups;
mod buffer;
mod clock;
mod code;
mod constants;
mod dispatch;
mod feed;
mod handle;
mod host;
mod iteration_guard;
mod mapping;
mod no_contraction;
mod program;
mod recording;
mod resident;
mod send;
mod spares;
mod submission_queue;
mod variant;

pub(crate) use adapters::Gpus;
pub use buffer::{GpuArg, GpuBuffer};
pub use code::Shape;
pub use handle::Gpu;
pub use program::GpuProgram;
