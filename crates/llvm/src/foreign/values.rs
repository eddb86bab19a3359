//! Small questions to LLVM's values.

use std::ffi::{CStr, c_uint};
use std::slice;

use inkwell::llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMAddFunction, LLVMConstIntGetSExtValue, LLVMCreateEnumAttribute,
    LLVMGetAggregateElement, LLVMGetAsString, LLVMGetCalledValue, LLVMGetConstOpcode,
    LLVMGetElementType, LLVMGetEnumAttributeKindForName, LLVMGetFirstBasicBlock,
    LLVMGetFirstInstruction, LLVMGetGEPSourceElementType, LLVMGetInitializer, LLVMGetNamedFunction,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetNumOperands, LLVMGetOperand,
    LLVMGetTypeKind, LLVMGetValueName2, LLVMIsAAllocaInst, LLVMIsACallInst, LLVMIsAConstantExpr,
    LLVMIsAConstantInt, LLVMIsAFunction, LLVMIsAGetElementPtrInst, LLVMIsAGlobalVariable,
    LLVMIsConstantString, LLVMStructGetTypeAtIndex,
};
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::{LLVMABISizeOfType, LLVMOffsetOfElement, LLVMTargetDataRef};
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode, LLVMTypeKind};

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

/// A function of which LLVM knows nothing but that its result is of its arguments alone.
///
/// # Safety
/// It is a module, of the context, and the type that of a function.
pub(super) unsafe fn opaque(
    context: LLVMContextRef,
    module: LLVMModuleRef,
    name: &CStr,
    ty: LLVMTypeRef,
) -> LLVMValueRef {
    // SAFETY: the caller's promise; the names have so many bytes.
    unsafe {
        let known = LLVMGetNamedFunction(module, name.as_ptr());
        if !known.is_null() {
            return known;
        }
        let function = LLVMAddFunction(module, name.as_ptr(), ty);
        for attribute in [c"memory", c"nounwind", c"willreturn"] {
            let kind =
                LLVMGetEnumAttributeKindForName(attribute.as_ptr(), attribute.to_bytes().len());
            // Of no memory is 0.
            let attribute = LLVMCreateEnumAttribute(context, kind, 0);
            LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
        }
        function
    }
}

/// How many bytes an address computation adds: a number, and values times numbers.
///
/// # Safety
/// It computes an address, as an instruction or a constant.
pub(super) unsafe fn offset(
    layout: LLVMTargetDataRef,
    gep: LLVMValueRef,
) -> (i64, Vec<(LLVMValueRef, i64)>) {
    let (mut constant, mut terms) = (0_i64, Vec::new());
    // SAFETY: the caller's promise; types of elements have a size.
    unsafe {
        let mut at = LLVMGetGEPSourceElementType(gep);
        for i in 1..LLVMGetNumOperands(gep) as c_uint {
            let index = LLVMGetOperand(gep, i);
            let number =
                (!LLVMIsAConstantInt(index).is_null()).then(|| LLVMConstIntGetSExtValue(index));
            let step = if i == 1 {
                LLVMABISizeOfType(layout, at)
            } else {
                match LLVMGetTypeKind(at) {
                    LLVMTypeKind::LLVMStructTypeKind => {
                        let field = number.unwrap_or(0) as c_uint;
                        constant += LLVMOffsetOfElement(layout, at, field) as i64;
                        at = LLVMStructGetTypeAtIndex(at, field);
                        continue;
                    }
                    _array_or_vector => {
                        at = LLVMGetElementType(at);
                        LLVMABISizeOfType(layout, at)
                    }
                }
            } as i64;
            match number {
                Some(number) => constant = constant.wrapping_add(number.wrapping_mul(step)),
                None => terms.push((index, step)),
            }
        }
    }
    (constant, terms)
}

/// The variable, of a function or outside, that an address leads to, and how many bytes behind its beginning, if that
/// is known.
///
/// # Safety
/// It is an address.
pub(super) unsafe fn known_place(
    layout: LLVMTargetDataRef,
    mut address: LLVMValueRef,
) -> Option<(LLVMValueRef, i64)> {
    let mut at = 0_i64;
    // SAFETY: the caller's promise.
    unsafe {
        loop {
            if !LLVMIsAAllocaInst(address).is_null() || is_variable(address) {
                return Some((address, at));
            }
            let computes = !LLVMIsAGetElementPtrInst(address).is_null()
                || !LLVMIsAConstantExpr(address).is_null()
                    && LLVMGetConstOpcode(address) == LLVMOpcode::LLVMGetElementPtr;
            if !computes {
                return None;
            }
            let (more, terms) = offset(layout, address);
            if !terms.is_empty() {
                return None;
            }
            at = at.wrapping_add(more);
            address = LLVMGetOperand(address, 0);
        }
    }
}
