//! The Invar kernel language: what a kernel is, how it is built, written down and checked.
//!
//! A front end drives a [`KernelBuilder`] and gets a [`Module`]; the verifier turns it into a
//! `Verified` one, which is all that devices take. This crate knows no device.
//!
//! - [`types`], [`memory_layout`]: types of values and of memory, and how elements lie in memory;
//! - [`ops`]: the op table, the only list of elementwise, simdgroup and query operations;
//! - [`inst`], [`module`]: structured SSA;
//! - [`imageblock`]: what of imageblocks is written out when a kernel is built;
//! - [`mod@texture`]: textures and the functions that reach them;
//! - [`operands`], [`effects`]: what instructions are made of, and what they do: what passes ask;
//! - [`builder`]: the one way in;
//! - [`text`], [`binary`]: the text form and the binary form;
//! - [`mod@print`]: what `print` means; [`requires`]: what kernels require of launches;
//! - [`rewrite`], [`contract`], [`expand`]: rebuilding a kernel, fusing products with sums (A8), and
//!   writing operations out by their definitions;
//! - [`mod@verify`], [`uniformity`]: what a module must obey, and over which threads values are the same;
//! - [`diagnostic`], [`rules`], [`span`]: what is wrong, by which rule, and where;
//! - [`mod@room`]: room on the stack for walks over blocks, whatever thread they are on.

pub mod binary;
pub mod builder;
pub mod contract;
pub mod diagnostic;
pub mod effects;
pub mod expand;
mod gradient;
pub mod imageblock;
mod imageblock_formats;
pub mod inst;
pub mod literal;
pub mod memory_layout;
pub mod module;
pub mod once;
pub mod operands;
pub mod ops;
mod place_type;
pub mod print;
pub mod random;
pub mod requires;
pub mod rewrite;
pub mod room;
pub mod rules;
pub mod span;
pub mod text;
pub mod texture;
pub mod types;
pub mod uniformity;
pub mod verify;

pub use builder::{KernelBuilder, Mark};
pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity};
pub use effects::{AccessMode, Elements, Exit, Exits, MemoryAccess};
pub use imageblock::ImageblockSlice;
pub use inst::{
    AtomicOp, Const, CopyOperands, CopyShape, Inst, InstKind, MatrixPlace, Memory, Order, Place,
    Region, Scope, Spaces, Step, Value, ValueInfo, Values, Width,
};
pub use literal::{Literal, ScalarLiteral};
pub use module::{
    Access, AddressSpace, Alloc, Binding, ConstantArray, FloatMode, FunctionConstant, Kernel,
    MemoryInfo, Module, Param, ParamKind,
};
pub use operands::{Purpose, Role};
pub use ops::{Dim, Imm, Op, Swizzle};
pub use requires::{LaunchNumber, Required, Requirement};
pub use rules::{Rule, Stage};
pub use span::{Call, CallId, Position, Source, SourceId, Span};
pub use texture::{
    Dimension, SamplerSource, Sampling, TextureAccess, TextureFunction, TextureOperands,
    TextureType,
};
pub use types::{ElementType, Scalar, StructDef, StructId, Type};
pub use uniformity::{Level, RegionUniformity, Uniformity, analyse};
pub use verify::{ConstantKey, Verified, verify};
