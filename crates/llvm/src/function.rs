//! The function of a kernel while it is made: what all parts of the compiler share of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, IntValue, PointerValue, VectorValue};
use inkwell::{AtomicOrdering, IntPredicate};
use invar_codegen::analysis::lanes::{Class, Classes, Shape};
use invar_ir::inst::{Memory, Value};
use invar_ir::memory_layout::Layouts;
use invar_ir::{Diagnostic, Inst, Kernel, Module};

use crate::detours::Detour;
use crate::emit::{BUILT, Emit};
use crate::object::Scratch;
use crate::plan::{InstKey, Plan};
use crate::state::{Anchor, Chunk, Grid, Group, Handover, Object, Proof, ThreadgroupLoop};
use crate::sums::Sums;
use crate::value::Parts;
use crate::zones::Zones;

/// Makes the function of one kernel.
pub(crate) struct FunctionLowering<'c, 'k> {
    pub e: Emit<'c>,
    pub module: &'k Module,
    pub kernel: &'k Kernel,
    pub plan: &'k Plan<'k>,
    /// The shape of what code is being made for: a chunk, or a piece of one.
    pub shape: Shape,
    /// The shape of chunks.
    pub full_shape: Shape,
    /// The shape of the pieces in which a chunk is gone through that is not full.
    pub slow_shape: Shape,
    /// How values are kept in slots.
    pub slots: &'k HashMap<Value, Class>,
    /// Classes in chunks that are full.
    pub fast: &'k Classes,
    /// Classes in pieces of any chunk.
    pub slow: &'k Classes,
    pub checks: bool,
    /// Threadgroups next to each other along x run as one.
    pub merges: bool,
    /// Threadgroups follow each other along y first.
    pub y_first: bool,
    /// One chunk holds a whole threadgroup, so that slots are variables of the function.
    pub slots_are_variables: bool,
    /// Those variables, by where the slot would be in a chunk's memory.
    pub slot_variables: HashMap<u64, Vec<PointerValue<'c>>>,
    /// Threads of a simdgroup.
    pub simdgroup_size: u32,
    /// The full size of threadgroups, if it is known.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Where `alloca`s stand.
    pub entry: BasicBlock<'c>,
    pub stopped: BasicBlock<'c>,
    pub group_end: BasicBlock<'c>,
    pub stop: PointerValue<'c>,
    pub budget: PointerValue<'c>,
    pub objects: HashMap<Memory, Object<'c>>,
    /// What `streams.rs` knows of buffers that are only written.
    pub streams: HashMap<Memory, IntValue<'c>>,
    pub grid: Grid<'c>,
    pub group: Group<'c>,
    /// Values that are kept once for the threadgroup, where no store is needed.
    pub values: HashMap<Value, Parts<'c>>,
    /// Where fields of structs are.
    pub layouts: Layouts,
    /// Those that are stored.
    pub variables: HashMap<Value, Vec<PointerValue<'c>>>,
    pub loops: Vec<ThreadgroupLoop<'c>>,
    /// The chunks' memory, and where things are in that of one.
    pub chunks: PointerValue<'c>,
    pub layout: ChunkLayout,
    pub scratch: Scratch,
    pub zones: Zones,
    pub chunk: Option<Chunk<'c>>,
    /// While code is made for pieces of a chunk, what all of them take from slots that the chunk has one of.
    pub of_whole_chunk: HashMap<Value, Parts<'c>>,
    /// The loop of the segment that full chunks leave to the code for any chunk.
    pub handover: Option<Handover<'c>>,
    /// The accesses of the segment that need no check in full chunks.
    pub proofs: HashMap<InstKey, Proof>,
    /// What [`crate::matrices::first_entries`] gives, once it was asked for.
    pub entries: Option<Option<VectorValue<'c>>>,
    /// What integers are known to differ by.
    pub sums: Sums<'c>,
    /// Addresses of rows in the block that code is being made for.
    pub anchors: RefCell<Vec<Anchor<'c>>>,
    /// What only chunks that are not full run.
    pub detours: Vec<Detour<'c>>,
    /// What cannot be compiled.
    pub refused: Vec<Diagnostic>,
}

/// Where values and arrays are in a chunk's memory, in bytes: first all of its first vector of threads,
/// then all of the next, so that pieces of chunks have theirs in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkLayout {
    pub slots: BTreeMap<Value, u64>,
    pub arrays: HashMap<u32, u64>,
    /// Thread arrays that one chunk at a time uses and that are too large for the function's frame: where they
    /// are in the worker's memory, of which a worker has one for all chunks.
    pub apart: HashMap<u32, u64>,
    /// Which threads have returned.
    pub returned: Option<u64>,
    /// Of one vector of threads.
    pub part_bytes: u64,
    /// Of a chunk.
    pub size: u64,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Memory of the function's frame.
    pub fn alloca(&self, ty: inkwell::types::BasicTypeEnum<'c>, align: u32) -> PointerValue<'c> {
        let here = self.e.here();
        self.e.go(self.entry);
        let pointer = self.e.builder.build_alloca(ty, "").expect(BUILT);
        if let Some(inst) = pointer.as_instruction_value() {
            inst.set_alignment(align).expect("a power of two");
        }
        self.e.go(here);
        pointer
    }

    /// Goes to `on` unless the kernel is asked to end.
    pub fn branch_if_stopped(&self, on: BasicBlock<'c>) {
        let ty = self.e.context.i32_type().into();
        let value = self.e.load(ty, self.stop, 4);
        if let Some(inst) = value.as_instruction_value() {
            inst.set_atomic_ordering(AtomicOrdering::Monotonic)
                .expect("a load");
        }
        let zero = self.e.i32(0);
        let go_on = self
            .e
            .compare(IntPredicate::EQ, value.into_int_value(), zero);
        self.e.branch_if(go_on, on, self.stopped);
    }

    /// Looks whether the kernel is asked to end.
    pub fn poll(&self) {
        let on = self.e.block("");
        self.branch_if_stopped(on);
        self.e.go(on);
    }

    /// Looks, once in many rounds of all counted loops, whether the kernel is asked to end.
    pub fn poll_sometimes(&self) {
        const ROUNDS: u32 = 1 << 16;
        let ty = self.e.context.i32_type();
        let rounds = self.e.load(ty.into(), self.budget, 4).into_int_value();
        let rounds = self.e.add(rounds, self.e.i32(1));
        self.e.store(rounds.into(), self.budget, 4);
        let low = self.e.and(rounds, self.e.i32(ROUNDS - 1));
        let due = self.e.compare(IntPredicate::EQ, low, self.e.i32(0));
        let (look, on) = (self.e.block(""), self.e.block(""));
        self.e.branch_if(due, look, on);
        self.e.go(look);
        self.branch_if_stopped(on);
        self.e.go(on);
    }

    /// Ends blocks that nothing leads to.
    pub fn close(&self, blocks: &[BasicBlock<'c>]) {
        for block in blocks {
            self.e.go(*block);
            self.e.builder.build_unreachable().expect(BUILT);
        }
    }

    /// The state of the chunk that code is being made for.
    pub fn chunk(&mut self) -> &mut Chunk<'c> {
        self.chunk.as_mut().expect("inside of a chunk")
    }

    /// As [`FunctionLowering::chunk`], to read.
    pub fn chunk_ref(&self) -> &Chunk<'c> {
        self.chunk.as_ref().expect("inside of a chunk")
    }

    /// The classes that hold in this chunk.
    pub fn classes(&self) -> &'k Classes {
        if self.chunk.as_ref().is_some_and(|c| c.fast) {
            self.fast
        } else {
            self.slow
        }
    }

    /// Whether the code that is being made is for the chunks that are not full, while another is for those
    /// that are.
    pub fn is_rare(&self) -> bool {
        self.has_fast() && self.chunk.as_ref().is_some_and(|c| !c.fast)
    }

    /// Whether full chunks have code of their own. Threads that have returned need the mask.
    pub fn has_fast(&self) -> bool {
        self.layout.returned.is_none()
    }

    /// What is proved of an access.
    pub fn proof(&self, inst: &Inst) -> Option<Proof> {
        self.proofs.get(&std::ptr::from_ref(inst)).copied()
    }

    /// Whether an access is known to be in bounds here, and then for which lanes.
    pub fn proved(&self, inst: &Inst) -> Option<Proof> {
        if !self.checks {
            return Some(Proof::Active);
        }
        let fast = self.chunk.as_ref().is_some_and(|c| c.fast);
        self.proof(inst).filter(|_| fast)
    }
}
