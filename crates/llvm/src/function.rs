//! The function of a kernel while it is made: what all parts of the compiler share of it.
//!
//! Its methods stand with what they are about, in many modules. So that one can read these one after another, each
//! calls methods of those only that `lib.rs` names before it; a test looks.
//!
//! Deliberately absent: what is known before, which is [`Analysis`], and the making of any instruction of a kernel.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, PointerValue, VectorValue};
use inkwell::{AtomicOrdering, IntPredicate};
use invar_codegen::analysis::lanes::{Class, Classes, Shape};
use invar_ir::inst::Value;
use invar_ir::{Diagnostic, Inst};

use crate::analysis::Analysis;
use crate::cold_paths::ColdPath;
use crate::emit::{BUILT, Emit};
use crate::state::{Anchor, Blocks, Chunk, Group, Launch, Proof, SegmentState, ThreadgroupValues};
use crate::sums::Sums;
use crate::tuning::ITERATIONS_BETWEEN_POLLS;

/// Makes the function of one kernel.
pub(crate) struct FunctionLowering<'c, 'k> {
    pub e: Emit<'c>,
    pub analysis: &'k Analysis<'k>,
    /// The shape of what code is being made for: a chunk, or a piece of one.
    pub shape: Shape,
    pub blocks: Blocks<'c>,
    pub launch: Launch<'c>,
    /// The threadgroup that code is being made for.
    pub group: Group<'c>,
    pub shared: ThreadgroupValues<'c>,
    /// The variables of slots, by where the slot would be in a chunk's memory, where slots are variables.
    pub slot_variables: HashMap<u64, Vec<PointerValue<'c>>>,
    pub segment: SegmentState<'c>,
    pub chunk: Option<Chunk<'c>>,
    /// What [`crate::matrices::first_entries`] gives, once it was asked for.
    pub entries: Option<Option<VectorValue<'c>>>,
    /// What integers are known to differ by.
    pub sums: Sums<'c>,
    /// Addresses of rows in the block that code is being made for.
    pub anchors: RefCell<Vec<Anchor<'c>>>,
    /// Loads that may be rows, with code of their own for where they are not wholly in bounds.
    pub edges: Cell<u32>,
    /// Instructions of `if`s whose code was made once more, for chunks of which all lanes take them.
    pub made_twice: usize,
    /// What only chunks that are not full run.
    pub cold_paths: Vec<ColdPath<'c>>,
    /// What cannot be compiled.
    pub refused: Vec<Diagnostic>,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Memory of the function's frame.
    pub fn alloca(&self, ty: inkwell::types::BasicTypeEnum<'c>, align: u32) -> PointerValue<'c> {
        let here = self.e.here();
        self.e.go(self.blocks.entry);
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
        let value = self.e.load(ty, self.blocks.stop, 4);
        if let Some(inst) = value.as_instruction_value() {
            inst.set_atomic_ordering(AtomicOrdering::Monotonic)
                .expect("a load");
        }
        let zero = self.e.i32(0);
        let go_on = self
            .e
            .compare(IntPredicate::EQ, value.into_int_value(), zero);
        self.e.branch_if(go_on, on, self.blocks.stopped);
    }

    /// Looks whether the kernel is asked to end. In front of an iteration: behind it, LLVM would compute what the
    /// iteration carries on after the look, and hold everything that this needs until then.
    pub fn poll(&self) {
        let on = self.e.block("");
        self.branch_if_stopped(on);
        self.e.go(on);
    }

    /// Looks, once in many iterations of all counted loops, whether the kernel is asked to end.
    pub fn poll_sometimes(&self) {
        let ty = self.e.context.i32_type();
        let iterations = self
            .e
            .load(ty.into(), self.blocks.budget, 4)
            .into_int_value();
        let iterations = self.e.add(iterations, self.e.i32(1));
        self.e.store(iterations.into(), self.blocks.budget, 4);
        let low = self
            .e
            .and(iterations, self.e.i32(ITERATIONS_BETWEEN_POLLS - 1));
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
            &self.analysis.fast
        } else {
            &self.analysis.slow
        }
    }

    /// How a value differs over what code is being made for.
    pub fn class_of(&self, value: Value) -> Class {
        match self.chunk.as_ref() {
            Some(chunk) if chunk.one_lane => Class::Uniform,
            _whole => self.classes().of(value),
        }
    }

    /// Whether lanes leave a loop at different times.
    pub fn is_masked(&self, inst: &Inst) -> bool {
        let one_lane = self.chunk.as_ref().is_some_and(|chunk| chunk.one_lane);
        !one_lane && self.classes().is_masked(inst)
    }

    /// Whether the code that is being made is for the chunks that are not full, while another is for those
    /// that are.
    pub fn is_rare(&self) -> bool {
        self.analysis.has_fast() && self.chunk.as_ref().is_some_and(|c| !c.fast)
    }

    /// What is proved of an access.
    pub fn proof(&self, inst: &Inst) -> Option<Proof> {
        self.segment.proofs.get(&std::ptr::from_ref(inst)).copied()
    }

    /// Whether an access is known to be in bounds here, and then for which lanes.
    pub fn proved(&self, inst: &Inst) -> Option<Proof> {
        let fast = self.chunk.as_ref().is_some_and(|c| c.fast);
        self.proof(inst).filter(|_| fast).or_else(|| {
            let always = self.analysis.always_in_bounds(inst);
            // What is hoisted is made for threads that may never come to it.
            (always && !self.analysis.plan.is_hoisted(inst)).then_some(Proof::Active)
        })
    }
}
