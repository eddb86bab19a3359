//! How a compiled kernel is called.
//!
//! The layouts here are what the generated code reads; nothing else knows them. A worker runs a range
//! of threadgroups, numbered `x + y*nx + z*nx*ny`, one after another in its own scratch memory.

use std::sync::atomic::AtomicU32;

/// An argument, in the place of its parameter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// A buffer's memory, of any alignment at least that of its element; a `Scalar` parameter's
    /// value in its memory layout (L3); null for a threadgroup parameter.
    pub data: *mut u8,
    /// Elements: of a buffer its bytes divided by the element's size; of a threadgroup parameter its
    /// length; 1 for a `Scalar`.
    pub length: u64,
}

/// A dispatch, as every worker sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// One for each parameter.
    pub arguments: *const Argument,
    /// Nonzero asks the kernel to end early; it is looked at in every loop that may be long.
    pub stop: *const AtomicU32,
    /// From this size in bytes on, a buffer that the kernel only writes is better not kept in the caches: it is
    /// larger than they are.
    pub least_streamed_bytes: u64,
    /// Runs what chunks of threads that are not full go through, for kernels that have it compiled apart
    /// ([`crate::Object::cold_paths`]).
    pub cold_paths: ColdPaths,
    /// The grid in threads.
    pub threads: [u32; 3],
    /// A full threadgroup in threads.
    pub threadgroup: [u32; 3],
    /// The grid in threadgroups.
    pub threadgroups: [u32; 3],
}

/// A compiled kernel: runs threadgroups `first` to `first + count - 1`. `scratch` is the worker's own
/// memory, aligned to [`SCRATCH_ALIGNMENT`] and at least as large as the program says for this launch;
/// its contents on entry do not matter. Gives [`DONE`] or [`STOPPED`].
///
/// # Safety
/// The launch must be valid and fit the kernel's parameters; the scratch memory must be large enough
/// and no one else's during the call.
pub type Entry =
    unsafe extern "C" fn(launch: *const Launch, first: u64, count: u64, scratch: *mut u8) -> u32;

/// Cold paths of a kernel, by their number: runs one on what the kernel put into its frame, and gives where the kernel
/// goes on, or [`NO_COLD_PATH`], with which it ends as if it were asked to.
///
/// # Safety
/// Only for the code of the same compilation to call.
pub type ColdPaths =
    unsafe extern "C" fn(launch: *const Launch, number: u32, frame: *mut u8) -> u32;

/// The cold path cannot be had.
pub const NO_COLD_PATH: u32 = u32::MAX;

/// Every threadgroup ran to its end.
pub const DONE: u32 = 0;
/// The kernel ended early because it was asked to.
pub const STOPPED: u32 = 1;
/// Alignment of the scratch memory, in bytes.
pub const SCRATCH_ALIGNMENT: usize = 64;
