//! Kernels written as Rust functions: what [`crate::prelude::kernel`] makes of them, and what their
//! bodies are made of.
//!
//! The macro turns a body into calls of this module, each of which adds to the kernel that this thread
//! is defining. Values of the kernel are [`Val`]s, whose type says what they are; so rustc finds errors
//! of types on the author's own words. What only the whole kernel can tell, such as a barrier that not
//! all threads reach, is found when it is first compiled, and names file and line.
//!
//! Invariants: all that a body can hold is `Copy`; every instruction has the span of the author's words;
//! nothing folds.
//!
//! Deliberately absent: what Rust means by a body. That is the macro's, in `invar-macros`.

pub mod compare;
mod control;
mod define;
mod launch;
mod memory;
pub mod ops;
mod value;

pub use control::{for_, if_, loop_, while_};
pub use define::{Function, Kernel, Place4, at, break_, continue_, enter, module, return_, to_inv};
pub use launch::{Findings, IntoDispatch, LaunchOn, Prepared, findings, launch};
pub use memory::{
    Constants, Indexed, IndexedMut, PlaceMut, PlaceRef, Slice, SliceMut, ThreadArray,
    ThreadgroupArray, constants, current, load, place, place_mut, scalar, slice, slice_mut, store,
    thread_array, threadgroup_array,
};
pub use value::{
    Bits, Cast, Float, Index, Integer, IntoVal, Number, Scalar, Signed, Val, Vars, cast, lit,
    local, variable,
};
