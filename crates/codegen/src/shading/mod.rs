//! What the writers of shading languages share: names, quotes of the author's lines, control flow by variables,
//! and which functions stand before a kernel.
//!
//! Both languages have structured control flow and no values of an `if` or a loop, so both writers hand values on
//! in variables. Deliberately absent: anything that one language alone needs.

pub(crate) mod comment;
pub(crate) mod flow;
pub(crate) mod helpers;
pub(crate) mod names;
