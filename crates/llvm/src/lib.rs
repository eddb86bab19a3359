//! Kernels compiled for CPUs: SPMD on vectors, by LLVM.
//!
//! [`compile`] makes an object file of a kernel, [`Program::load`] links it into the process (`link.rs`), and
//! [`Program::entry`] is what a worker calls for a range of threadgroups ([`abi`]).
//!
//! A value that is the same for a threadgroup is a scalar; any other is a vector over threads, or stands
//! for one. From a kernel to code:
//! - [`compile`] writes operations out by their definitions and chooses the shape of a chunk of
//!   threads (`cost.rs`);
//! - `plan.rs` finds what runs once for a threadgroup and what for each chunk, and
//!   [`invar_codegen::analysis::lanes`] how values differ over a chunk;
//! - `kernel.rs` makes the loop over threadgroups, `segment.rs` those over chunks, `control.rs` branches,
//!   loops and masks (`iterations.rs` the rounds that all lanes make), `memory.rs` accesses (`places.rs` says
//!   where, `arrays.rs` has those of thread arrays), `streams.rs` stores past the caches, `guards.rs` bounds
//!   checks in front of loops, `instructions.rs` the rest, with `ops` for
//!   elementwise operations, `lanes.rs` and `atomics.rs`;
//! - `detours.rs` moves what chunks that are not full run into functions of their own, which are compiled when
//!   they are needed; `zones.rs` leaves room around objects in scratch memory, for tests.
//!
//! LLVM itself is loaded when it is first needed (`library.rs`), or part of the program (`inside.rs`).
//! Deliberately absent: threads, memory of the host, caches. The runtime has them.

pub mod abi;
mod arrays;
mod atomics;
mod called;
mod cells;
mod chunk;
mod classes;
mod compile;
mod components;
mod control;
mod cost;
mod counting;
mod detours;
mod emit;
mod function;
#[cfg(not(feature = "static"))]
mod functions;
mod gather;
mod guards;
mod instructions;
mod iterations;
mod kernel;
mod lanes;
#[cfg_attr(feature = "static", path = "inside.rs")]
mod library;
mod link;
mod long;
mod loops;
mod matrices;
mod memory;
mod neighbour_rows;
mod object;
mod objects;
mod ops;
mod places;
mod plan;
mod positions;
mod prefetch;
mod program;
mod registers;
mod segment;
mod simdgroup_matrices;
mod simdgroups;
mod slots;
mod state;
mod streams;
mod sums;
mod tables;
mod target;
#[cfg(test)]
mod test_jit;
mod threadgroup;
mod value;
pub mod workarounds;
mod zones;

pub use compile::{CompileOptions, SIMDGROUP_SIZE, Text, compile, compile_detours, emit};
pub use library::look_for;
pub use object::{KernelInfo, Object};
pub use program::{LoadError, Program};
pub use target::Target;
