//! Ways on which a condition is known go where it leads: `a && b` in the head of a loop is a block that asks what
//! the blocks before it found, so that the iterations of the loop cannot be counted.
//!
//! Invariant: no instruction but jumps and the values that ways bring is made, moved or left out, and no loop
//! gets a second way in.

use std::collections::HashSet;

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{
    LLVMAddIncoming, LLVMBuildPhi, LLVMConstIntGetZExtValue, LLVMCountIncoming,
    LLVMCreateBuilderInContext, LLVMDisposeBuilder, LLVMGetBasicBlockTerminator,
    LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetFirstUse, LLVMGetIncomingBlock,
    LLVMGetIncomingValue, LLVMGetInstructionOpcode, LLVMGetInstructionParent,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetNextUse, LLVMGetNumSuccessors,
    LLVMGetOperand, LLVMGetSuccessor, LLVMGetUndef, LLVMInstructionEraseFromParent,
    LLVMIsAConstantInt, LLVMIsAInstruction, LLVMIsConditional, LLVMPositionBuilderBefore,
    LLVMReplaceAllUsesWith, LLVMSetSuccessor, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMContextRef, LLVMValueRef};

use super::values::callee;

/// Leads every way of a function past the blocks that only ask for what is known on it.
///
/// # Safety
/// It is a function of the context. `heads` are the blocks that a jump leads back to.
pub(super) unsafe fn known_ways(
    context: LLVMContextRef,
    function: LLVMValueRef,
    heads: &HashSet<LLVMBasicBlockRef>,
) {
    // SAFETY: the caller's promise; blocks stay, and of their instructions only the phi that was asked goes.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            if !heads.contains(&block)
                && let Some((phi, branch)) = asks(block)
            {
                past(context, block, phi, branch);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
}

/// The phi and the branch of a block that is nothing else.
unsafe fn asks(block: LLVMBasicBlockRef) -> Option<(LLVMValueRef, LLVMValueRef)> {
    // SAFETY: it is a block with an end; questions about branches and phis are asked of these.
    unsafe {
        let phi = LLVMGetFirstInstruction(block);
        let branch = LLVMGetBasicBlockTerminator(block);
        let is_branch = LLVMGetInstructionOpcode(branch) == LLVMOpcode::LLVMBr
            && LLVMIsConditional(branch) != 0;
        let is_all = LLVMGetInstructionOpcode(phi) == LLVMOpcode::LLVMPHI && after(phi) == branch;
        if !is_branch || !is_all || LLVMGetOperand(branch, 0) != phi {
            return None;
        }
        let only = LLVMGetFirstUse(phi);
        let is_only = !only.is_null() && LLVMGetNextUse(only).is_null();
        is_only.then_some((phi, branch))
    }
}

/// The next instruction that is not a note for debuggers.
unsafe fn after(inst: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: it is an instruction that does not end its block.
    unsafe {
        let mut next = LLVMGetNextInstruction(inst);
        while callee(next).is_some_and(|name| name.starts_with("llvm.dbg.")) {
            next = LLVMGetNextInstruction(next);
        }
        next
    }
}

unsafe fn past(
    context: LLVMContextRef,
    block: LLVMBasicBlockRef,
    phi: LLVMValueRef,
    branch: LLVMValueRef,
) {
    // SAFETY: as in `asks`; the new phi has a way for each block that still leads here.
    unsafe {
        let count = LLVMCountIncoming(phi);
        let ways: Vec<_> = (0..count)
            .map(|i| (LLVMGetIncomingValue(phi, i), LLVMGetIncomingBlock(phi, i)))
            .collect();
        let mut rest = Vec::new();
        for (value, from) in &ways {
            let is_known = !LLVMIsAConstantInt(*value).is_null();
            let to = is_known.then(|| {
                LLVMGetSuccessor(branch, u32::from(LLVMConstIntGetZExtValue(*value) == 0))
            });
            match to {
                Some(to) if to != block && leads(*from, block) == 1 && leads(*from, to) == 0 => {
                    bring(block, *from, to);
                    redirect(*from, block, to);
                }
                _asked => rest.push((*value, *from)),
            }
        }
        if rest.len() == ways.len() {
            return;
        }
        let builder = LLVMCreateBuilderInContext(context);
        LLVMPositionBuilderBefore(builder, phi);
        let ty = LLVMTypeOf(phi);
        let new = match rest.is_empty() {
            // Nothing leads here any more.
            true => LLVMGetUndef(ty),
            false => LLVMBuildPhi(builder, ty, c"known".as_ptr()),
        };
        for (mut value, mut from) in rest {
            LLVMAddIncoming(new, &mut value, &mut from, 1);
        }
        LLVMReplaceAllUsesWith(phi, new);
        LLVMInstructionEraseFromParent(phi);
        LLVMDisposeBuilder(builder);
    }
}

/// How many ways lead from one block to another at once.
unsafe fn leads(from: LLVMBasicBlockRef, to: LLVMBasicBlockRef) -> usize {
    // SAFETY: a block with an end.
    unsafe {
        let end = LLVMGetBasicBlockTerminator(from);
        let ways = 0..LLVMGetNumSuccessors(end);
        ways.filter(|i| LLVMGetSuccessor(end, *i) == to).count()
    }
}

unsafe fn redirect(from: LLVMBasicBlockRef, old: LLVMBasicBlockRef, new: LLVMBasicBlockRef) {
    // SAFETY: as in `leads`.
    unsafe {
        let end = LLVMGetBasicBlockTerminator(from);
        for i in 0..LLVMGetNumSuccessors(end) {
            if LLVMGetSuccessor(end, i) == old {
                LLVMSetSuccessor(end, i, new);
            }
        }
    }
}

/// Gives the phis of a block, which came by way of another, what they are by way of `from`: the same, since that
/// other has no value of its own.
unsafe fn bring(by: LLVMBasicBlockRef, mut from: LLVMBasicBlockRef, to: LLVMBasicBlockRef) {
    // SAFETY: as in `asks`.
    unsafe {
        let mut phi = LLVMGetFirstInstruction(to);
        while LLVMGetInstructionOpcode(phi) == LLVMOpcode::LLVMPHI {
            let ways = 0..LLVMCountIncoming(phi);
            for way in ways {
                if LLVMGetIncomingBlock(phi, way) == by {
                    let mut value = LLVMGetIncomingValue(phi, way);
                    debug_assert!(
                        LLVMIsAInstruction(value).is_null()
                            || LLVMGetInstructionParent(value) != by
                    );
                    LLVMAddIncoming(phi, &mut value, &mut from, 1);
                    break;
                }
            }
            phi = LLVMGetNextInstruction(phi);
        }
    }
}
