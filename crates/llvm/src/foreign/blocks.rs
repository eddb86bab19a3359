//! Long blocks, which are divided before LLVM puts variables in registers: of each that is read before it is written,
//! as parts of structs are that begin as zeros, it looks through the block from its start. Where a block is all that
//! leads to another, LLVM makes one of them again later.
//!
//! Invariant: nothing is made, left out or put before or behind something else but for room for variables, which stays
//! in the first block.

use std::collections::HashMap;
use std::ffi::CString;

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{
    LLVMBuildBr, LLVMCreateBuilderInContext, LLVMDisposeBuilder, LLVMGetBasicBlockTerminator,
    LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetInstructionOpcode,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetNumSuccessors, LLVMGetSuccessor,
    LLVMInsertBasicBlockInContext, LLVMInsertIntoBuilderWithName, LLVMInstructionRemoveFromParent,
    LLVMPositionBuilderAtEnd, LLVMSetSuccessor,
};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMBuilderRef, LLVMContextRef, LLVMValueRef};

use super::values::name_of;

/// So many instructions are in a block of those that a long one is divided into.
const PIECE: usize = 256;
/// A block of more is long.
const LONG: usize = 4 * PIECE;

/// Divides the long blocks of a function.
///
/// # Safety
/// It is a function of the context, with blocks that end, and without notes for debuggers.
pub(super) unsafe fn divide(context: LLVMContextRef, function: LLVMValueRef) {
    // SAFETY: the caller's promise; the blocks are listed before any is made, and jumps stay what they are.
    unsafe {
        let first = LLVMGetFirstBasicBlock(function);
        let mut long: Vec<(LLVMBasicBlockRef, Vec<LLVMValueRef>)> = Vec::new();
        let mut jumps: HashMap<LLVMBasicBlockRef, Vec<(LLVMValueRef, u32)>> = HashMap::new();
        let mut block = first;
        while !block.is_null() {
            let end = LLVMGetBasicBlockTerminator(block);
            for way in 0..LLVMGetNumSuccessors(end) {
                let to = LLVMGetSuccessor(end, way);
                jumps.entry(to).or_default().push((end, way));
            }
            let all = instructions(block);
            if all.len() > LONG {
                long.push((block, all));
            }
            block = LLVMGetNextBasicBlock(block);
        }
        let builder = LLVMCreateBuilderInContext(context);
        for (block, all) in long {
            let (stays, moves): (Vec<_>, Vec<_>) = all
                .into_iter()
                .partition(|inst| begins(*inst, block == first));
            let mut pieces = moves.chunks(PIECE);
            // What is left of the block keeps its end, so that values which others get by it come by it still.
            pieces.next_back();
            let mut next = block_before(context, block);
            for (end, way) in jumps.get(&block).into_iter().flatten() {
                LLVMSetSuccessor(*end, *way, next);
            }
            LLVMPositionBuilderAtEnd(builder, next);
            stays.iter().for_each(|inst| append(builder, *inst));
            for piece in pieces {
                piece.iter().for_each(|inst| append(builder, *inst));
                next = block_before(context, block);
                LLVMBuildBr(builder, next);
                LLVMPositionBuilderAtEnd(builder, next);
            }
            LLVMBuildBr(builder, block);
        }
        LLVMDisposeBuilder(builder);
    }
}

unsafe fn instructions(block: LLVMBasicBlockRef) -> Vec<LLVMValueRef> {
    let mut all = Vec::new();
    // SAFETY: it is a block.
    unsafe {
        let mut inst = LLVMGetFirstInstruction(block);
        while !inst.is_null() {
            all.push(inst);
            inst = LLVMGetNextInstruction(inst);
        }
    }
    all
}

/// Whether an instruction stays where a block begins: what ways bring, and room for variables.
unsafe fn begins(inst: LLVMValueRef, is_first: bool) -> bool {
    // SAFETY: it is an instruction.
    match unsafe { LLVMGetInstructionOpcode(inst) } {
        LLVMOpcode::LLVMPHI => true,
        LLVMOpcode::LLVMAlloca => is_first,
        _other => false,
    }
}

unsafe fn block_before(context: LLVMContextRef, block: LLVMBasicBlockRef) -> LLVMBasicBlockRef {
    // SAFETY: it is a block of a function of the context.
    unsafe { LLVMInsertBasicBlockInContext(context, block, c"".as_ptr()) }
}

unsafe fn append(builder: LLVMBuilderRef, inst: LLVMValueRef) {
    // SAFETY: the instruction is in a block and the builder at the end of another. A name of LLVM's has no zero in it
    // that C would take for its end, or it is shortened.
    unsafe {
        let name = name_of(inst).replace('\0', "");
        let name = CString::new(name).unwrap_or_default();
        LLVMInstructionRemoveFromParent(inst);
        LLVMInsertIntoBuilderWithName(builder, inst, name.as_ptr());
    }
}
