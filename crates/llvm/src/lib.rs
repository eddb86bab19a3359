//! Kernels compiled for CPUs: SPMD on vectors, by LLVM.
//!
//! [`compile`] makes an object file of a kernel, [`Program::load`] links it into the process (`link.rs`), and
//! [`Program::entry`] is what a worker calls for a range of threadgroups ([`abi`]).
//!
//! A value that is the same for a threadgroup is a scalar; any other is a vector over threads, or stands
//! for one. From a kernel to code, each step from what those before it say:
//! - `compile.rs` writes operations out by their definitions, and hands what follows makes to LLVM (`target.rs`,
//!   `options.rs`; `long.rs` what LLVM would take too long for,
//!   `far_indices.rs` what it gets wrong); `tuning.rs` has the numbers that decide what is worth it;
//! - `analysis.rs` is what is known of the kernel, and changes no more: `plan.rs` finds what runs once for a
//!   threadgroup and what for each chunk of its threads, `shapes.rs` how these are cut (`cost.rs`,
//!   `neighbour_rows.rs`), [`invar_codegen::analysis::lanes`] how values differ over a chunk, `segments.rs` what a loop
//!   over chunks takes and leaves, `borders.rs` where chunks may begin, and `pieces.rs` which accesses leave their rows
//!   of memory soon;
//! - `function.rs` is the function that is made, with what is known meanwhile (`state.rs`). Each of these needs only
//!   those before it:
//!   - `emit.rs` builds LLVM's instructions, and for values in registers `registers.rs`, `gather.rs`, `counting.rs`,
//!     `ops` (elementwise operations), `lanes.rs` (a simdgroup), `matrices.rs` and `atomics.rs`;
//!   - values: `value.rs`, `classes.rs` (in the form of their class), `threadgroup.rs` (one for the threadgroup),
//!     `slots.rs` and `chunk.rs`, `cells.rs` (variables and masks), `positions.rs` (where threads stand), `sums.rs`
//!     (what integers differ by);
//!   - accesses: `objects.rs`, `guards.rs` (bounds checks in front of loops) and `sides.rs` (what
//!     conditions leave of a threadgroup), `places.rs` (where), `arrays.rs` (of
//!     threads), `prefetch.rs`, `streams.rs` (stores past the caches), `windows.rs` (loads of lanes close together),
//!     `memory.rs`;
//!   - `instructions.rs` those without regions, with `components.rs`, `simdgroups.rs`, `simdgroup_matrices.rs`;
//!   - `lane_by_lane.rs` what loops that each lane makes by itself take and give;
//!   - `control.rs` branches, `loops.rs`, and `iterations.rs` those that all lanes make, which need one another;
//!   - `segment.rs` loops over chunks, and `kernel.rs` that over threadgroups;
//! - `cold_paths.rs` moves what chunks that are not full run into functions of their own, which are compiled when
//!   they are needed; `zones.rs` leaves room around objects in scratch memory, for tests.
//!
//! The result is an `object.rs`, which `link.rs` and `program.rs` put to use.
//!
//! LLVM itself is loaded when it is first needed (`library.rs`), or part of the program (`inside.rs`).
//! Deliberately absent: threads, memory of the host, caches. The runtime has them.

pub mod abi;
mod analysis;
mod apart;
mod arrays;
mod atomics;
mod blocks;
mod borders;
mod bounded;
mod broken_rows;
mod called;
mod cells;
mod chunk;
mod classes;
mod cold_paths;
mod compile;
mod components;
mod control;
mod cost;
mod counting;
mod defined;
mod emit;
mod far_indices;
pub mod foreign;
mod function;
#[cfg(not(feature = "static"))]
mod functions;
mod gather;
mod guards;
mod instructions;
mod iterations;
mod kernel;
mod lane_by_lane;
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
mod options;
mod pieces;
mod places;
mod plan;
mod positions;
mod prefetch;
mod program;
mod registers;
mod segment;
mod segments;
mod shapes;
mod sides;
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
mod tuning;
mod value;
mod widths;
mod windows;
pub mod workarounds;
mod zones;

pub use compile::{Text, compile, compile_cold_paths, emit, lowered};
pub use library::{identity, look_for};
pub use object::{KernelInfo, Object};
pub use options::{CompileOptions, SIMDGROUP_SIZE};
pub use program::{LoadError, Program};
pub use target::Target;
