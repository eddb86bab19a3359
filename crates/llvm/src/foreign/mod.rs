//! LLVM IR that another front end made, as plain data.
//!
//! [`Module::read`] takes the IR, [`Module::functions`] functions of it after passes that make it easy to
//! read: every call inlined, variables in registers, loops that say so unrolled. What is given then has no
//! pointer of LLVM's in it.
//!
//! Invariant: no pass that runs adds an access to memory or moves one across a call, and so none across a
//! barrier; some leave out loads whose value is known. Deliberately absent: what the IR means, which the
//! front ends say.

mod blocks;
mod chains;
mod debug;
mod divisions;
mod outside;
mod passes;
mod read;
mod tables;
mod thread;
mod types;
mod unroll;
mod values;

pub use debug::{DebugField, DebugType, Location};
pub use passes::{MAX_LOOPS, Module, Unread};
pub use read::function_name;
pub use types::{
    Binary, Block, Compare, Convert, Element, Function, Global, Inst, Kind, Operand, Ordered,
    Param, Type,
};
