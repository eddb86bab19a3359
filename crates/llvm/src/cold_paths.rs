//! Cold paths: the code that only chunks that are not full run, moved out of the kernel's function. It is most of
//! what a compilation would take, and many launches never come there, so it is compiled when a chunk first does.
//!
//! A cold path begins in one block and goes back to few. It becomes a function of a *frame*: there the kernel's
//! function puts what the cold path uses of it, and the cold path leaves the variables of both that it wrote, and gives
//! the number of the block to go back to. Before any of LLVM's passes, values of a function are known in no
//! other way than by its variables, so nothing else comes back.
//!
//! All of it happens within one module; [`split_module`] makes two of it.

use std::collections::{HashMap, HashSet};

use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::{LLVMGetModuleDataLayout, LLVMStoreSizeOfType};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, FunctionValue, InstructionValue, PointerValue,
};

use crate::abi;
use crate::emit::{BUILT, Emit};
use crate::program::{COLD_PATHS_NAME, ENTRY_NAME};
use crate::tuning::SMALL_APART;

/// No value needs its place in a frame aligned more.
const MOST_ALIGNED: u64 = 64;

/// Code that few chunks run.
pub(crate) struct ColdPath<'c> {
    /// Where it begins; nothing but this block is entered from elsewhere.
    pub first: BasicBlock<'c>,
    /// Where it may go back to.
    pub back: Vec<BasicBlock<'c>>,
}

/// A variable that the kernel's function and a cold path share.
struct Shared {
    variable: LLVMValueRef,
    ty: LLVMTypeRef,
    /// The cold path writes it.
    is_written: bool,
}

/// A cold path that can be moved.
struct Body {
    first: LLVMBasicBlockRef,
    /// All of its blocks, in the function's order.
    blocks: Vec<LLVMBasicBlockRef>,
    /// Those that it does go back to.
    back: Vec<LLVMBasicBlockRef>,
    /// Variables of its own.
    own: Vec<LLVMValueRef>,
    shared: Vec<Shared>,
    /// Other values that it uses.
    taken: Vec<LLVMValueRef>,
    instructions: usize,
}

/// Moves cold paths of the function that is being made out of it, if all of them have at least so many instructions,
/// and says whether. Where one cannot be had the function goes on at `failed`. `launch` is the function's own.
pub(crate) fn outline<'c>(
    e: &Emit<'c>,
    cold_paths: &[ColdPath<'c>],
    least: usize,
    launch: PointerValue<'c>,
    failed: BasicBlock<'c>,
) -> bool {
    let function = e.function.get();
    let unreached = empty_unreached(e, function);
    let order: HashMap<_, usize> = function
        .get_basic_blocks()
        .iter()
        .map(|b| b.as_mut_ptr())
        .zip(0..)
        .collect();
    let bodies: Vec<Body> = cold_paths
        .iter()
        .filter_map(|cold_path| Body::find(cold_path, &order, &unreached))
        .filter(|body| body.instructions >= least / SMALL_APART)
        .collect();
    let all: usize = bodies.iter().map(|body| body.instructions).sum();
    if bodies.is_empty() || all < least {
        return false;
    }
    let layouts: Vec<Layout> = bodies.iter().map(|body| Layout::of(e, body)).collect();
    let bytes = layouts.iter().map(|layout| layout.bytes).max().unwrap_or(0);
    let frame = spill_frame(e, bytes);
    let functions: Vec<FunctionValue<'c>> = bodies
        .iter()
        .zip(&layouts)
        .enumerate()
        .map(|(n, (body, layout))| {
            let call = Call {
                launch,
                frame,
                number: n as u32,
                failed,
            };
            body.leave(e, layout, &call);
            body.enter(e, layout, n)
        })
        .collect();
    by_number(e, &functions);
    e.function.set(function);
    true
}

/// How long what is improved may be ([`crate::CompileOptions::most_improved`]): an attribute of the one function for the
/// caller of cold paths, which are compiled as the rest was.
const MOST_IMPROVED: &str = "most-improved";

/// Divides a module whose cold paths were moved out: what stays is the kernel's function, and what is given has the
/// cold paths, in LLVM's binary form. `most_improved` is [`crate::CompileOptions::most_improved`].
pub(crate) fn split_module(module: &Module<'_>, most_improved: u32) -> Vec<u8> {
    let all = COLD_PATHS_NAME.to_string_lossy();
    let context = module.get_context();
    let kept = context.create_string_attribute(MOST_IMPROVED, &most_improved.to_string());
    let caller = module.get_function(&all).expect("cold paths");
    caller.add_attribute(AttributeLoc::Function, kept);
    let entry = module.get_function(&ENTRY_NAME.to_string_lossy());
    let entry = entry.expect("the kernel's function");
    // Shorter than a copy of the module without it.
    let blocks = take_blocks(entry);
    let cold_paths = module.write_bitcode_to_memory().as_slice().to_vec();
    for block in blocks {
        // SAFETY: the block is of this function, and in none now.
        unsafe { LLVMAppendExistingBasicBlock(entry.as_value_ref(), block) };
    }
    // First the one that calls the others.
    remove(module, |name| name == all);
    remove(module, |name| name.starts_with(PREFIX));
    cold_paths
}

/// What [`split_module`] was told; `None` if it did not make the module.
pub(crate) fn most_improved(cold_paths: &Module<'_>) -> Option<u32> {
    let caller = cold_paths.get_function(&COLD_PATHS_NAME.to_string_lossy())?;
    let kept = caller.get_string_attribute(AttributeLoc::Function, MOST_IMPROVED)?;
    kept.get_string_value().to_str().ok()?.parse().ok()
}

/// Takes all blocks out of a function, which is only declared then.
fn take_blocks(function: FunctionValue<'_>) -> Vec<LLVMBasicBlockRef> {
    let blocks = function.get_basic_blocks();
    let blocks: Vec<_> = blocks.iter().map(|block| block.as_mut_ptr()).collect();
    for block in &blocks {
        // SAFETY: the block is alive, and stays so.
        unsafe { LLVMRemoveBasicBlockFromParent(*block) };
    }
    blocks
}

/// What the names of cold paths begin with.
const PREFIX: &str = "cold.";

fn remove(module: &Module<'_>, is_gone: impl Fn(&str) -> bool) {
    let gone: Vec<FunctionValue<'_>> = module
        .get_functions()
        .filter(|f| f.get_name().to_str().is_ok_and(&is_gone))
        .collect();
    for function in gone {
        // SAFETY: nothing calls it, and nothing here holds what is in it.
        unsafe { function.delete() };
    }
}

/// The one function for the caller of cold paths: `abi::ColdPaths`.
fn by_number<'c>(e: &Emit<'c>, functions: &[FunctionValue<'c>]) {
    let word = e.context.i32_type();
    let pointer = e.pointer_type().into();
    let ty = word.fn_type(&[pointer, word.into(), pointer], false);
    let all = e.function_like(&COLD_PATHS_NAME.to_string_lossy(), ty, None);
    e.function.set(all);
    let parameter = |i: u32| all.get_nth_param(i).expect("three parameters");
    let (entry, none) = (e.block("entry"), e.block("none"));
    let mut cases = Vec::new();
    for (n, function) in functions.iter().enumerate() {
        let case = e.block("");
        e.go(case);
        let args = [parameter(2).into()];
        let call = e.builder.build_call(*function, &args, "").expect(BUILT);
        let back = call.try_as_basic_value().basic().expect("a number");
        e.builder.build_return(Some(&back)).expect(BUILT);
        cases.push((e.i32(n as u32), case));
    }
    e.go(entry);
    let number = parameter(1).into_int_value();
    e.builder.build_switch(number, none, &cases).expect(BUILT);
    e.go(none);
    e.builder
        .build_return(Some(&e.i32(abi::NO_COLD_PATH)))
        .expect(BUILT);
}

/// Memory of the function's frame for the largest frame of a cold path.
fn spill_frame<'c>(e: &Emit<'c>, bytes: u64) -> PointerValue<'c> {
    let entry = e.function.get().get_first_basic_block().expect("an entry");
    e.builder
        .position_before(&entry.get_terminator().expect("it goes on"));
    let ty = e.context.i8_type().array_type(bytes as u32);
    let frame = e.builder.build_alloca(ty, "frame").expect(BUILT);
    let inst = frame.as_instruction_value().expect("an instruction");
    inst.set_alignment(MOST_ALIGNED as u32)
        .expect("a power of two");
    frame
}

/// Where a cold path's values and variables are in its frame: first those of [`Body::taken`], then of
/// [`Body::shared`].
struct Layout {
    places: Vec<(u64, u32)>,
    bytes: u64,
}

impl Layout {
    fn of(e: &Emit<'_>, body: &Body) -> Layout {
        // SAFETY: the module is alive, and has the data layout of its target.
        let data = unsafe { LLVMGetModuleDataLayout(e.module.as_mut_ptr()) };
        let types = (body.taken.iter().map(|v| type_of(*v)))
            .chain(body.shared.iter().map(|shared| shared.ty));
        let mut bytes = 0u64;
        let places = types
            .map(|ty| {
                // SAFETY: the type is one of the module's that values have.
                let size = unsafe { LLVMStoreSizeOfType(data, ty) }.max(1);
                let align = size.next_power_of_two().min(MOST_ALIGNED);
                let at = bytes.next_multiple_of(align);
                bytes = at + size;
                (at, align as u32)
            })
            .collect();
        Layout { places, bytes }
    }
}

/// How the kernel's function calls a cold path.
struct Call<'c> {
    launch: PointerValue<'c>,
    frame: PointerValue<'c>,
    number: u32,
    failed: BasicBlock<'c>,
}

impl Body {
    /// Finds what a cold path is made of; `None` if it is not as the module says. Takes the places of the function's
    /// blocks, and those that control cannot come to.
    fn find(
        cold_path: &ColdPath<'_>,
        order: &HashMap<LLVMBasicBlockRef, usize>,
        unreached: &HashSet<LLVMBasicBlockRef>,
    ) -> Option<Body> {
        let first = cold_path.first.as_mut_ptr();
        let ends: Vec<_> = cold_path.back.iter().map(|b| b.as_mut_ptr()).collect();
        let mut inside = HashSet::from([first]);
        let mut open = vec![first];
        while let Some(block) = open.pop() {
            for next in successors(block) {
                if !ends.contains(&next) && inside.insert(next) {
                    open.push(next);
                }
            }
        }
        let lead_in = inside.iter().flat_map(|block| predecessors(*block));
        let beside: Vec<_> = lead_in.filter(|b| unreached.contains(b)).collect();
        inside.extend(beside);
        let mut blocks: Vec<_> = inside.iter().copied().collect();
        blocks.sort_by_key(|block| order[block]);
        let mut back = Vec::new();
        for block in &blocks {
            // Nothing but the first is entered, from outside only.
            let entered = predecessors(*block).any(|before| !inside.contains(&before));
            if entered && *block != first {
                return None;
            }
            for next in successors(*block) {
                let leaves = !inside.contains(&next);
                if next == first || leaves && begins_with_phi(next) {
                    return None;
                } else if leaves && !back.contains(&next) {
                    back.push(next);
                }
            }
        }
        if begins_with_phi(first) {
            return None;
        }
        Body::with_values(first, blocks, &inside, back)
    }

    /// Finds what it uses; `None` if something else uses its values.
    fn with_values(
        first: LLVMBasicBlockRef,
        blocks: Vec<LLVMBasicBlockRef>,
        inside: &HashSet<LLVMBasicBlockRef>,
        back: Vec<LLVMBasicBlockRef>,
    ) -> Option<Body> {
        let is_inside = |inst: LLVMValueRef| parent(inst).is_some_and(|b| inside.contains(&b));
        let mut body = Body {
            first,
            blocks,
            back,
            own: Vec::new(),
            shared: Vec::new(),
            taken: Vec::new(),
            instructions: 0,
        };
        let mut seen = HashSet::new();
        for block in body.blocks.clone() {
            for inst in instructions(block) {
                body.instructions += 1;
                if !users(inst).all(is_inside) {
                    return None;
                }
                for value in operands(inst) {
                    let outside =
                        is_argument(value) || parent(value).is_some_and(|b| !inside.contains(&b));
                    if outside && seen.insert(value) {
                        body.take(value, &is_inside);
                    }
                }
            }
        }
        Some(body)
    }

    /// Notes a value of the kernel's function that it uses.
    fn take(&mut self, value: LLVMValueRef, is_inside: &impl Fn(LLVMValueRef) -> bool) {
        if !is_variable(value) {
            self.taken.push(value);
        } else if users(value).all(is_inside) {
            self.own.push(value);
        } else if let Some(ty) = cell_type(value) {
            let is_written = users(value).any(|user| is_inside(user) && is_store(user));
            self.shared.push(Shared {
                variable: value,
                ty,
                is_written,
            });
        } else {
            // Its address does: it is not a register anyway.
            self.taken.push(value);
        }
    }

    /// Makes the call in the kernel's function, in place of the cold path.
    fn leave<'c>(&self, e: &Emit<'c>, layout: &Layout, call: &Call<'c>) {
        let block = e.block("detour");
        e.go(block);
        let place = |(at, _): (u64, u32)| e.byte_offset(call.frame, e.i64(at));
        let (taken, shared) = layout.places.split_at(self.taken.len());
        for (value, to) in self.taken.iter().zip(taken) {
            e.store(value_of(*value), place(*to), to.1);
        }
        for (shared, to) in self.shared.iter().zip(shared) {
            let now = e.load(shared.basic_type(), shared.pointer(), shared.align());
            e.store(now, place(*to), to.1);
        }
        let word = e.context.i32_type();
        let pointer = e.pointer_type();
        let at = std::mem::offset_of!(abi::Launch, cold_paths) as u64;
        let field = e.byte_offset(call.launch, e.i64(at));
        let cold_paths = e.load(pointer.into(), field, 8).into_pointer_value();
        let ty = word.fn_type(&[pointer.into(), word.into(), pointer.into()], false);
        let args = [
            call.launch.into(),
            e.i32(call.number).into(),
            call.frame.into(),
        ];
        let back = e
            .builder
            .build_indirect_call(ty, cold_paths, &args, "")
            .expect(BUILT);
        let back = back.try_as_basic_value().basic().expect("a number");
        let written = self.shared.iter().zip(shared).filter(|(s, _)| s.is_written);
        for (shared, from) in written {
            let now = e.load(shared.basic_type(), place(*from), from.1);
            e.store(now, shared.pointer(), shared.align());
        }
        let cases: Vec<_> = (0u32..)
            .zip(&self.back)
            // SAFETY: the block is one of the function's.
            .filter_map(|(n, b)| Some((e.i32(n), unsafe { BasicBlock::new(*b) }?)))
            .collect();
        e.builder
            .build_switch(back.into_int_value(), call.failed, &cases)
            .expect(BUILT);
        // All of them are outside.
        let before: Vec<_> = predecessors(self.first).collect();
        for outside in before {
            redirect(outside, &HashMap::from([(self.first, block.as_mut_ptr())]));
        }
    }

    /// Makes its function, and moves its blocks there.
    fn enter<'c>(&self, e: &Emit<'c>, layout: &Layout, number: usize) -> FunctionValue<'c> {
        let kernel = e.function.get();
        let ty = e
            .context
            .i32_type()
            .fn_type(&[e.pointer_type().into()], false);
        let function = e.function_like(&format!("{PREFIX}{number}"), ty, Some(Linkage::Internal));
        e.function.set(function);
        let entry = e.block("entry");
        e.go(entry);
        let frame = function
            .get_nth_param(0)
            .expect("one parameter")
            .into_pointer_value();
        let place = |(at, _): (u64, u32)| e.byte_offset(frame, e.i64(at));
        let (taken, shared) = layout.places.split_at(self.taken.len());
        for variable in &self.own {
            // SAFETY: only this function uses the variable, which leaves the other's entry for this one's.
            unsafe {
                LLVMInstructionRemoveFromParent(*variable);
                LLVMInsertIntoBuilder(e.builder.as_mut_ptr(), *variable);
            }
        }
        let mut here = HashMap::new();
        for (value, from) in self.taken.iter().zip(taken) {
            let now = e.load(value_of(*value).get_type(), place(*from), from.1);
            here.insert(*value, now.as_value_ref());
        }
        let mut variables = Vec::new();
        for (shared, from) in self.shared.iter().zip(shared) {
            let ty = shared.basic_type();
            let variable = e.builder.build_alloca(ty, "").expect(BUILT);
            let inst = variable.as_instruction_value().expect("an instruction");
            inst.set_alignment(shared.align()).expect("a power of two");
            let before = e.load(ty, place(*from), from.1);
            e.store(before, variable, shared.align());
            here.insert(shared.variable, variable.as_value_ref());
            variables.push(variable);
        }
        // SAFETY: the block is moved here next.
        let first = unsafe { BasicBlock::new(self.first) }.expect("a block");
        e.branch(first);
        for block in &self.blocks {
            // SAFETY: the block stands in the kernel's function, and nothing there leads to it any more.
            unsafe {
                LLVMRemoveBasicBlockFromParent(*block);
                LLVMAppendExistingBasicBlock(function.as_value_ref(), *block);
            }
        }
        let mut ways = HashMap::new();
        for (n, back) in (0u32..).zip(&self.back) {
            let end = e.block("back");
            e.go(end);
            for ((shared, variable), to) in self.shared.iter().zip(&variables).zip(shared) {
                if shared.is_written {
                    let after = e.load(shared.basic_type(), *variable, shared.align());
                    e.store(after, place(*to), to.1);
                }
            }
            e.builder.build_return(Some(&e.i32(n))).expect(BUILT);
            ways.insert(*back, end.as_mut_ptr());
        }
        for block in &self.blocks {
            redirect(*block, &ways);
            for inst in instructions(*block) {
                replace_operands(inst, &here);
            }
        }
        e.function.set(kernel);
        function
    }
}

impl Shared {
    fn basic_type<'c>(&self) -> BasicTypeEnum<'c> {
        // SAFETY: it is a type of the module that is being made, which lives as long as its context.
        unsafe { BasicTypeEnum::new(self.ty) }
    }

    fn pointer<'c>(&self) -> PointerValue<'c> {
        value_of(self.variable).into_pointer_value()
    }

    fn align(&self) -> u32 {
        // SAFETY: it is an `alloca`.
        let inst = unsafe { InstructionValue::new(self.variable) };
        inst.get_alignment().expect("an `alloca` has one")
    }
}

// ---- what inkwell does not say of values and blocks ----

/// The blocks that control can come to.
fn reached(function: FunctionValue<'_>) -> HashSet<LLVMBasicBlockRef> {
    let entry = function.get_first_basic_block().expect("an entry");
    let mut found = HashSet::from([entry.as_mut_ptr()]);
    let mut open = vec![entry.as_mut_ptr()];
    while let Some(block) = open.pop() {
        open.extend(successors(block).into_iter().filter(|b| found.insert(*b)));
    }
    found
}

/// Empties the blocks that control cannot come to, which use values of anywhere, and gives them. Where they
/// lead to a choice by where control comes from, they still do.
fn empty_unreached<'c>(e: &Emit<'c>, function: FunctionValue<'c>) -> HashSet<LLVMBasicBlockRef> {
    let reached = reached(function);
    let mut unreached = function.get_basic_blocks();
    unreached.retain(|b| !reached.contains(&b.as_mut_ptr()));
    for block in &unreached {
        let insts: Vec<_> = instructions(block.as_mut_ptr()).collect();
        let stays = successors(block.as_mut_ptr())
            .into_iter()
            .any(begins_with_phi);
        for inst in insts.into_iter().rev().skip(stays.into()) {
            // SAFETY: the instruction is of a live function; only what control does not come to uses it, and
            // that uses something else from here on.
            unsafe {
                if !LLVMGetFirstUse(inst).is_null() {
                    LLVMReplaceAllUsesWith(inst, LLVMGetPoison(type_of(inst)));
                }
                LLVMInstructionEraseFromParent(inst);
            }
        }
        if !stays {
            e.go(*block);
            e.builder.build_unreachable().expect(BUILT);
        }
    }
    unreached.iter().map(|b| b.as_mut_ptr()).collect()
}

fn successors(block: LLVMBasicBlockRef) -> Vec<LLVMBasicBlockRef> {
    // SAFETY: the block is one of a live function; a terminator has so many successors.
    unsafe {
        let end = LLVMGetBasicBlockTerminator(block);
        if end.is_null() {
            return Vec::new();
        }
        let count = LLVMGetNumSuccessors(end);
        (0..count).map(|i| LLVMGetSuccessor(end, i)).collect()
    }
}

/// The blocks that lead to one, some more than once.
fn predecessors(block: LLVMBasicBlockRef) -> impl Iterator<Item = LLVMBasicBlockRef> {
    // SAFETY: the block is one of a live function. What uses it are terminators.
    let value = unsafe { LLVMBasicBlockAsValue(block) };
    users(value).filter_map(parent)
}

/// Lets a block go on elsewhere.
fn redirect(block: LLVMBasicBlockRef, ways: &HashMap<LLVMBasicBlockRef, LLVMBasicBlockRef>) {
    for (i, next) in (0..).zip(successors(block)) {
        if let Some(way) = ways.get(&next) {
            // SAFETY: the block has a terminator of that many successors, and the other is of its function.
            unsafe { LLVMSetSuccessor(LLVMGetBasicBlockTerminator(block), i, *way) };
        }
    }
}

fn instructions(block: LLVMBasicBlockRef) -> impl Iterator<Item = LLVMValueRef> {
    // SAFETY: the block is one of a live function.
    let first = unsafe { LLVMGetFirstInstruction(block) };
    let some = |inst: LLVMValueRef| (!inst.is_null()).then_some(inst);
    std::iter::successors(some(first), move |inst| {
        // SAFETY: the instruction stands in a block.
        some(unsafe { LLVMGetNextInstruction(*inst) })
    })
}

/// The values that an instruction uses; blocks are none.
fn operands(inst: LLVMValueRef) -> impl Iterator<Item = LLVMValueRef> {
    // SAFETY: it is an instruction of a live function.
    let count = unsafe { LLVMGetNumOperands(inst) } as u32;
    // SAFETY: it has so many operands.
    (0..count).map(move |i| unsafe { LLVMGetOperand(inst, i) })
}

fn replace_operands(inst: LLVMValueRef, by: &HashMap<LLVMValueRef, LLVMValueRef>) {
    for (i, value) in (0..).zip(operands(inst)) {
        if let Some(other) = by.get(&value) {
            // SAFETY: the other is of the same type, and stands in the entry of the instruction's function.
            unsafe { LLVMSetOperand(inst, i, *other) };
        }
    }
}

/// The instructions that use a value.
fn users(value: LLVMValueRef) -> impl Iterator<Item = LLVMValueRef> {
    // SAFETY: the value is of a live function; its uses are a list.
    let first = unsafe { LLVMGetFirstUse(value) };
    let uses = std::iter::successors((!first.is_null()).then_some(first), |used| {
        // SAFETY: as above.
        let next = unsafe { LLVMGetNextUse(*used) };
        (!next.is_null()).then_some(next)
    });
    // SAFETY: as above.
    uses.map(|used| unsafe { LLVMGetUser(used) })
}

/// The block of an instruction; other values stand in none.
fn parent(value: LLVMValueRef) -> Option<LLVMBasicBlockRef> {
    // SAFETY: the value is of a live module, and asked for its block only if it is an instruction.
    unsafe {
        let inst = LLVMIsAInstruction(value);
        (!inst.is_null()).then(|| LLVMGetInstructionParent(inst))
    }
}

fn is_argument(value: LLVMValueRef) -> bool {
    // SAFETY: the value is of a live module.
    unsafe { !LLVMIsAArgument(value).is_null() }
}

fn is_variable(value: LLVMValueRef) -> bool {
    // SAFETY: the value is of a live module.
    unsafe { !LLVMIsAAllocaInst(value).is_null() }
}

fn is_store(inst: LLVMValueRef) -> bool {
    // SAFETY: the value is of a live module.
    unsafe { !LLVMIsAStoreInst(inst).is_null() }
}

fn type_of(value: LLVMValueRef) -> LLVMTypeRef {
    // SAFETY: the value is of a live module.
    unsafe { LLVMTypeOf(value) }
}

fn begins_with_phi(block: LLVMBasicBlockRef) -> bool {
    let first = instructions(block).next();
    // SAFETY: it is an instruction of a live function.
    first.is_some_and(|inst| unsafe { LLVMGetInstructionOpcode(inst) } == LLVMOpcode::LLVMPHI)
}

fn value_of<'c>(value: LLVMValueRef) -> BasicValueEnum<'c> {
    // SAFETY: it is a value of the module that is being made, which lives as long as its context.
    unsafe { BasicValueEnum::new(value) }
}

/// The type of a variable that is only loaded and stored as a whole.
fn cell_type(variable: LLVMValueRef) -> Option<LLVMTypeRef> {
    // SAFETY: the variable is an `alloca` of a live function, and its users are instructions of that function,
    // of which loads have a type and stores two operands.
    unsafe {
        let ty = LLVMGetAllocatedType(variable);
        let is_array = LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMArrayTypeKind;
        let whole = |user: LLVMValueRef| {
            if !LLVMIsALoadInst(user).is_null() {
                return LLVMTypeOf(user) == ty;
            }
            is_store(user)
                && LLVMGetOperand(user, 1) == variable
                && LLVMTypeOf(LLVMGetOperand(user, 0)) == ty
        };
        (!is_array && users(variable).all(whole)).then_some(ty)
    }
}
