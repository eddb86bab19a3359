//! Small questions to LLVM's values.

use std::slice;

use inkwell::llvm_sys::core::{
    LLVMConstIntGetSExtValue, LLVMGetAggregateElement, LLVMGetAsString, LLVMGetCalledValue,
    LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetInitializer, LLVMGetNextBasicBlock,
    LLVMGetNextInstruction, LLVMGetOperand, LLVMGetValueName2, LLVMIsACallInst,
    LLVMIsAConstantExpr, LLVMIsAConstantInt, LLVMIsAFunction, LLVMIsAGlobalVariable,
    LLVMIsConstantString,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;

/// What is annotated: a name, and a number or text if it has one.
#[derive(Clone, Debug)]
pub(super) struct Annotation {
    pub name: String,
    pub number: Option<i64>,
    pub text: Option<String>,
}

/// Does something with each instruction of a function.
///
/// # Safety
/// It is a function, and `each` erases nothing.
pub(super) unsafe fn for_each(function: LLVMValueRef, mut each: impl FnMut(LLVMValueRef)) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut inst = LLVMGetFirstInstruction(block);
            while !inst.is_null() {
                each(inst);
                inst = LLVMGetNextInstruction(inst);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
}

/// Whether a value is a variable outside functions.
///
/// # Safety
/// It is a value.
pub(super) unsafe fn is_variable(value: LLVMValueRef) -> bool {
    // SAFETY: the caller's promise.
    unsafe { !LLVMIsAGlobalVariable(value).is_null() }
}

/// A value's name.
///
/// # Safety
/// It is a value.
pub(super) unsafe fn name_of(value: LLVMValueRef) -> String {
    let mut length = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let name = LLVMGetValueName2(value, &mut length);
        if name.is_null() || length == 0 {
            return String::new();
        }
        String::from_utf8_lossy(slice::from_raw_parts(name.cast(), length)).into_owned()
    }
}

/// The function that an instruction calls, if it is a call.
///
/// # Safety
/// It is an instruction.
pub(super) unsafe fn callee(inst: LLVMValueRef) -> Option<String> {
    // SAFETY: the caller's promise.
    unsafe {
        if LLVMIsACallInst(inst).is_null() {
            return None;
        }
        let called = LLVMGetCalledValue(inst);
        (!LLVMIsAFunction(called).is_null()).then(|| name_of(called))
    }
}

/// The variable outside functions that an address leads to.
///
/// # Safety
/// It is a value.
pub(super) unsafe fn global_of(mut value: LLVMValueRef) -> Option<LLVMValueRef> {
    // SAFETY: the caller's promise.
    unsafe {
        for _ in 0..8 {
            if !LLVMIsAGlobalVariable(value).is_null() {
                return Some(value);
            }
            if LLVMIsAConstantExpr(value).is_null() {
                return None;
            }
            value = LLVMGetOperand(value, 0);
        }
    }
    None
}

/// What an annotation says, of the two constants that hold it.
///
/// # Safety
/// They are values.
pub(super) unsafe fn annotation(name: LLVMValueRef, more: LLVMValueRef) -> Annotation {
    // SAFETY: the caller's promise.
    unsafe {
        let mut read = Annotation {
            name: text(name).unwrap_or_default(),
            number: None,
            text: None,
        };
        if let Some(global) = global_of(more) {
            let init = LLVMGetInitializer(global);
            let first = match init.is_null() {
                true => init,
                false => LLVMGetAggregateElement(init, 0),
            };
            if !first.is_null() && !LLVMIsAConstantInt(first).is_null() {
                read.number = Some(LLVMConstIntGetSExtValue(first));
            } else if !first.is_null() {
                read.text = text(first);
            }
        }
        read
    }
}

/// The text that a constant is the address of.
unsafe fn text(value: LLVMValueRef) -> Option<String> {
    // SAFETY: it is a value.
    unsafe {
        let init = LLVMGetInitializer(global_of(value)?);
        if init.is_null() || LLVMIsConstantString(init) == 0 {
            return None;
        }
        let mut length = 0;
        let bytes = LLVMGetAsString(init, &mut length);
        let bytes = slice::from_raw_parts(bytes.cast::<u8>(), length);
        let text = String::from_utf8_lossy(bytes);
        Some(text.trim_end_matches('\0').to_string())
    }
}
