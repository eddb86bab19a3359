//! What is known of kernels beyond single instructions: one analysis a question, which passes, writers and the
//! CPU compiler ask. None changes a kernel.
//!
//! | module | says |
//! |---|---|
//! | [`affine`] | what each integer is a sum of: positions, iterations of loops, other values |
//! | [`blocks`] | which loads of a thread lie side by side and can be made together |
//! | [`ranges`] | the interval in which each integer lies |
//! | [`floats`] | the interval in which each float lies unless it is NaN |
//! | [`control_dependence`] | what reaches an index, a bound or a branch |
//! | [`distances`] | how far the lanes of vectors lie apart where they do not grow evenly |
//! | [`lanes`] | how values differ over the lanes of vectors, and which loops need masks |
//! | [`low_bits`] | which bits of integers count |
//! | [`order`] | in which order threadgroups are best launched |
//! | [`planes`] | which stencils gain nothing by rows that run together |
//! | [`quotients`] | which quotients of small integers products are |
//! | [`streams`] | which buffers are only written, each element once |
//! | [`zeroing`] | the threadgroup memory of which somebody may see an initial zero |
//!
//! Over which threads a value is the same is [`invar_ir::uniformity`]'s question, since the verifier asks it.
//!
//! Deliberately absent: devices, and what is cheap on them.

pub mod affine;
pub mod blocks;
pub mod control_dependence;
pub mod distances;
pub mod floats;
pub mod lanes;
pub mod low_bits;
pub mod order;
pub mod planes;
pub mod quotients;
pub mod ranges;
pub mod streams;
pub mod zeroing;
