//! Functions that a round of passes leaves as they were, which further rounds leave out: passes over large functions
//! take their time also where there is nothing to do.
//!
//! What tells two states of a function apart are its instructions in their order, and the constants in them: values
//! may be made anew and be the same. Where that misses a change, a function is less simple than it could be, not wrong.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use inkwell::llvm_sys::LLVMAttributeFunctionIndex;
use inkwell::llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMCreateEnumAttribute, LLVMGetEnumAttributeKindForName,
    LLVMGetInstructionOpcode, LLVMGetNumOperands, LLVMGetOperand, LLVMIsConstant,
    LLVMRemoveEnumAttributeAtIndex, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMAttributeRef, LLVMContextRef, LLVMValueRef};

use super::read::Params;
use super::values::for_each;

/// Marks functions of a context as not to be changed.
pub(super) struct Settled {
    mark: LLVMAttributeRef,
    kind: u32,
}

/// What tells the states of functions apart.
pub(super) type Prints = HashMap<LLVMValueRef, u64>;

impl Settled {
    /// # Safety
    /// It is a context.
    pub unsafe fn new(context: LLVMContextRef) -> Settled {
        // SAFETY: the caller's promise; the name has so many bytes.
        unsafe {
            let name = c"optnone";
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr(), name.to_bytes().len());
            Settled {
                mark: LLVMCreateEnumAttribute(context, kind, 0),
                kind,
            }
        }
    }

    /// Leaves a function out.
    ///
    /// # Safety
    /// It is a function of the context.
    pub unsafe fn mark(&self, function: LLVMValueRef) {
        // SAFETY: the caller's promise.
        unsafe {
            LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, self.mark);
        }
    }

    /// What tells the states that functions are in apart.
    ///
    /// # Safety
    /// They are functions.
    pub unsafe fn prints(&self, functions: &HashMap<LLVMValueRef, Params>) -> Prints {
        // SAFETY: the caller's promise.
        let print = |function: &LLVMValueRef| (*function, unsafe { print(*function) });
        functions.keys().map(print).collect()
    }

    /// Leaves the functions out that are as they were before; gives how all are now.
    ///
    /// # Safety
    /// They are functions of the context.
    pub unsafe fn leave_out(
        &self,
        functions: &HashMap<LLVMValueRef, Params>,
        before: &Prints,
    ) -> Prints {
        // SAFETY: the caller's promise.
        unsafe {
            let now = self.prints(functions);
            for (function, print) in &now {
                if before.get(function) == Some(print) {
                    self.mark(*function);
                }
            }
            now
        }
    }

    /// Takes functions in again.
    ///
    /// # Safety
    /// They are functions of the context.
    pub unsafe fn take_in(&self, functions: &HashMap<LLVMValueRef, Params>) {
        for function in functions.keys() {
            // SAFETY: the caller's promise.
            unsafe {
                LLVMRemoveEnumAttributeAtIndex(*function, LLVMAttributeFunctionIndex, self.kind);
            }
        }
    }
}

unsafe fn print(function: LLVMValueRef) -> u64 {
    let mut hash = DefaultHasher::new();
    // SAFETY: the caller's promise; there are so many operands.
    unsafe {
        for_each(function, |inst| {
            (LLVMGetInstructionOpcode(inst) as u32, LLVMTypeOf(inst)).hash(&mut hash);
            for number in 0..LLVMGetNumOperands(inst) as u32 {
                let operand = LLVMGetOperand(inst, number);
                if !operand.is_null() && LLVMIsConstant(operand) != 0 {
                    operand.hash(&mut hash);
                }
            }
        });
    }
    hash.finish()
}
