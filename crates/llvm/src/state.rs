//! What is known while code is made: where objects of memory are, the loops around, and the chunk of threads that
//! code is being made for.
//!
//! Deliberately absent: what holds for the kernel as a whole (`analysis.rs`), and code that makes any of it.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::prelude::LLVMTypeRef;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::lanes::{Class, Positions};
use invar_ir::ElementType;
use invar_ir::inst::{Memory, Value};

use crate::matrices::RowsInMemory;
use crate::plan::InstKey;
use crate::value::{Mask, Parts};

/// A memory object as generated code sees it.
#[derive(Clone, Debug)]
pub(crate) struct Object<'c> {
    /// Its first byte; of a thread array see `arrays.rs`.
    pub base: PointerValue<'c>,
    /// Elements, 64 bits.
    pub length: IntValue<'c>,
    pub element: ElementType,
    /// Nothing writes it while the kernel runs.
    pub constant: bool,
    /// Other workers may access it at the same time.
    pub shared: bool,
    /// A thread array: its number.
    pub thread: Option<u32>,
}

/// Where the threadgroup stands; all of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'c> {
    /// Of the threadgroup in the grid.
    pub position: [IntValue<'c>; 3],
    /// Of its first thread in the grid.
    pub origin: [IntValue<'c>; 3],
    /// Its own size.
    pub size: [IntValue<'c>; 3],
    /// Its threads.
    pub threads: IntValue<'c>,
}

/// What does not change during a launch; all of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid<'c> {
    pub threads: [IntValue<'c>; 3],
    pub threadgroup: [IntValue<'c>; 3],
    pub threadgroups: [IntValue<'c>; 3],
}

/// Blocks and variables that the function has one of.
pub(crate) struct Blocks<'c> {
    /// Where `alloca`s stand.
    pub entry: BasicBlock<'c>,
    /// Where the function returns because the kernel is asked to end.
    pub stopped: BasicBlock<'c>,
    /// Behind a threadgroup.
    pub group_end: BasicBlock<'c>,
    /// Whether the kernel is asked to end: not 0.
    pub stop: PointerValue<'c>,
    /// How many iterations were made since that was looked at.
    pub budget: PointerValue<'c>,
}

/// What the function is called with.
pub(crate) struct Launch<'c> {
    pub grid: Grid<'c>,
    pub objects: HashMap<Memory, Object<'c>>,
    /// What `streams.rs` knows of buffers that are only written.
    pub streams: HashMap<Memory, IntValue<'c>>,
    /// The memory of all chunks.
    pub chunks: PointerValue<'c>,
}

/// What a threadgroup has one of.
#[derive(Default)]
pub(crate) struct ThreadgroupValues<'c> {
    /// Values that are kept once for the threadgroup, where no store is needed.
    pub values: HashMap<Value, Parts<'c>>,
    /// Those that are stored.
    pub variables: HashMap<Value, Vec<PointerValue<'c>>>,
    /// The loops that all threads go through together.
    pub loops: Vec<ThreadgroupLoop<'c>>,
}

/// What holds for the segment that code is being made for.
#[derive(Default)]
pub(crate) struct SegmentState<'c> {
    /// The accesses that need no check in full chunks.
    pub proofs: HashMap<InstKey, Proof>,
    /// Only the first threads do anything, so that chunks of which a part does are nothing rare.
    pub of_first_threads: bool,
    /// The loop that full chunks leave to the code for any chunk.
    pub handover: Option<Handover<'c>>,
    /// While code is made for pieces of a chunk, what all of them take from slots that the chunk has one of.
    pub of_whole_chunk: HashMap<Value, Parts<'c>>,
}

/// A loop that all threads go through together.
pub(crate) struct ThreadgroupLoop<'c> {
    /// The index of a counted loop.
    pub index: Option<Value>,
    pub next: BasicBlock<'c>,
    pub exit: BasicBlock<'c>,
    pub carried: Vec<Value>,
    pub results: Vec<Value>,
}

/// An access that is proved for the threadgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// For every lane of a full chunk.
    Lanes,
    /// For the lanes that make it.
    Active,
}

/// A value that changes: one cell for each lowered piece.
#[derive(Clone)]
pub(crate) struct Cells<'c> {
    pub class: Class,
    pub cells: Vec<(PointerValue<'c>, BasicTypeEnum<'c>)>,
}

impl<'c> Cells<'c> {
    /// How many of a chunk's vectors are kept apart.
    pub fn parts(&self, parts: u32) -> u32 {
        match self.class {
            Class::Uniform => 1,
            Class::Line(_) | Class::Varying => parts,
        }
    }

    /// Components of the value.
    pub fn components(&self, parts: u32) -> u32 {
        self.cells.len() as u32 / self.parts(parts)
    }

    /// The type of its pieces.
    pub fn piece_type(&self) -> BasicTypeEnum<'c> {
        self.cells[0].1
    }
}

/// A loop around.
pub(crate) struct Frame<'c> {
    pub carried: Vec<Cells<'c>>,
    pub results: Vec<Cells<'c>>,
    pub masks: Option<FrameMasks<'c>>,
    pub next: BasicBlock<'c>,
    pub exit: BasicBlock<'c>,
}

/// The masks of a loop whose threads take different numbers of iterations.
#[derive(Clone)]
pub(crate) struct FrameMasks<'c> {
    /// How many divergent ifs and masked loops are around what its iterations do for all their lanes.
    pub divergence: u32,
    /// Whether lanes may continue early with the next iteration.
    pub continues: bool,
    /// Lanes that continue early with the next iteration.
    pub continued: Cells<'c>,
    /// Lanes that left the loop by its end or a `break`.
    pub left: Cells<'c>,
}

impl<'c> FrameMasks<'c> {
    pub fn cells(&self) -> [&Cells<'c>; 2] {
        [&self.continued, &self.left]
    }
}

/// A loop that the code for full chunks leaves to the code for any chunk once its lanes do not make as many
/// iterations.
#[derive(Clone)]
pub(crate) struct Handover<'c> {
    /// The loop.
    pub key: InstKey,
    /// Where the code for any chunk begins.
    pub any: BasicBlock<'c>,
    /// Whether iterations were made before.
    pub begun: PointerValue<'c>,
    /// The index and what is carried, after the last iteration that all made: vectors of the whole chunk, one after
    /// another. Known once the code for full chunks was made and leaves the loop.
    pub state: Option<PointerValue<'c>>,
    /// The first vector of the chunk of which code is being made, and vectors of the chunk along x.
    pub part: IntValue<'c>,
    pub along: u32,
    pub parts: u32,
}

/// The chunk that code is being made for.
pub(crate) struct Chunk<'c> {
    pub values: HashMap<Value, Parts<'c>>,
    /// Full: classes are the fast ones, and proved accesses are not checked.
    pub fast: bool,
    pub positions: Positions,
    /// The position of its first thread in the threadgroup.
    pub at: [IntValue<'c>; 3],
    /// The number of its first thread.
    pub number: IntValue<'c>,
    /// Its memory, and that of the chunk that it is a piece of.
    pub memory: PointerValue<'c>,
    pub whole_memory: PointerValue<'c>,
    /// Where the chunk's code ends.
    pub end: BasicBlock<'c>,
    /// How many divergent ifs and masked loops are around.
    pub divergence: u32,
    /// The code is for one lane, of which everything is known that it takes.
    pub one_lane: bool,
    /// How many ifs around have their code made twice, this for chunks of which all lanes take them.
    pub twice: u32,
    pub frames: Vec<Frame<'c>>,
    /// Variables of loops that are over, by their types.
    pub spare_cells: HashMap<LLVMTypeRef, Vec<PointerValue<'c>>>,
    /// Thread arrays that live in the chunk's registers or frame.
    pub arrays: HashMap<u32, PointerValue<'c>>,
    /// Where matrices were read, while nothing has been written since and the way has not parted.
    pub matrices: HashMap<Value, RowsInMemory<'c>>,
    /// Matrices that lie on the stack.
    pub stacks: HashMap<Value, PointerValue<'c>>,
    /// What loads were made with an earlier one (`blocks.rs`).
    pub ahead: HashMap<InstKey, Parts<'c>>,
    /// What is stored with a later store, by the first of them.
    pub behind: HashMap<InstKey, Vec<Parts<'c>>>,
    /// The threads that exist.
    pub exist: Mask<'c>,
    /// An `if` before which the segment has no effect, and where the code for any chunk begins: a full chunk
    /// whose threads do not all take that `if` can still go there.
    pub retreat: Option<(InstKey, BasicBlock<'c>)>,
}

/// The memory object, the bytes of an element, and the lanes that access it, if not all.
pub(crate) type AnchorKey<'c> = (PointerValue<'c>, u64, Option<VectorValue<'c>>);

/// A row's address that others are told from.
pub(crate) struct Anchor<'c> {
    pub block: BasicBlock<'c>,
    pub key: AnchorKey<'c>,
    /// Element index of lane 0, and its address.
    pub index: IntValue<'c>,
    pub pointer: PointerValue<'c>,
}
