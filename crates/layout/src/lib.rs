//! Layout algebra: nested shapes and strides, and the functions that combine them.
//!
//! A [`Layout`] is a function from coordinates to offsets; the operations build new layouts from
//! old ones, so that a kernel can say how its threads map to memory without writing index
//! arithmetic. The rules are CuTe's (NVIDIA), read as mathematics; `docs/layouts.md` explains them.
//!
//! Every function is total: any input gives the right layout or an [`Error`] that names the
//! condition it fails. Numbers are 64-bit signed integers, and overflow is an error. Limits keep
//! hostile inputs cheap: [`MAX_LEAVES`] integers and [`MAX_DEPTH`] levels of nesting in a tuple
//! ([`MAX_NODES`] integers and parentheses together), [`MAX_CELLS`] cells in a table or picture,
//! [`MAX_ENUMERATED`] offsets where only counting them decides, [`MAX_LANES`] lanes in an access.
//!
//! Absent: values known only at a dispatch, and anything about types, devices or kernels.

mod algebra;
mod analysis;
mod error;
mod int_tuple;
mod layout;
mod nested;
mod parse;
mod picture;
mod svg;
mod swizzle;
mod table;
mod tile;

pub use analysis::{BankReport, Banks, MAX_ENUMERATED, MAX_LANES, common_vector, conflicts};
pub use error::{Error, Result};
pub use int_tuple::{Coord, IntTuple, Node};
pub use layout::{Layout, Mode};
pub use nested::{MAX_DEPTH, MAX_LEAVES, MAX_NODES};
pub use picture::{MAX_CELLS, Picture};
pub use swizzle::{Swizzle, SwizzledLayout};
pub use tile::{Tiler, thread_value_layout};

/// Runs the examples of the users' page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/layouts.md")]
struct Page;
