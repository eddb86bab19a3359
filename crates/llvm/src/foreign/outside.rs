//! Accesses of a variable's array or of a table at a known place that it does not have. LLVM leaves them out, as what
//! C++ gives no meaning to, and so their findings with them; a number that it does not know keeps them.

use std::ffi::{CStr, CString};
use std::ptr;

use inkwell::llvm_sys::core::{
    LLVMAddFunction, LLVMBuildCall2, LLVMBuildGEP2, LLVMConstInt, LLVMConstIntGetSExtValue,
    LLVMCreateBuilderInContext, LLVMDisposeBuilder, LLVMFunctionType, LLVMGetAllocatedType,
    LLVMGetArrayLength2, LLVMGetFirstUse, LLVMGetGEPSourceElementType, LLVMGetInstructionOpcode,
    LLVMGetIntTypeWidth, LLVMGetNamedFunction, LLVMGetNextUse, LLVMGetNumOperands, LLVMGetOperand,
    LLVMGetPreviousInstruction, LLVMGetTypeKind, LLVMGetUser, LLVMGlobalGetValueType,
    LLVMInt8TypeInContext, LLVMInt64TypeInContext, LLVMIsAAllocaInst, LLVMIsAConstantInt,
    LLVMIsAGetElementPtrInst, LLVMPositionBuilderBefore, LLVMSetOperand, LLVMTypeOf,
    LLVMVoidTypeInContext,
};
use inkwell::llvm_sys::prelude::{
    LLVMBuilderRef, LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef,
};
use inkwell::llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMStoreSizeOfType};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};

use super::unroll::is_for_registers;
use super::values::{callee, for_each, known_place, opaque};

/// What marks an access outside of what has to be in registers.
pub(super) const OUTSIDE: &CStr = c"invar.outside";

/// Hides from LLVM that a function accesses variables outside of what they have: its indices beyond arrays, and its
/// places beyond whole variables. What has to be in registers gets a mark there.
///
/// # Safety
/// It is a function of the module, and that of the context.
pub(super) unsafe fn keep(context: LLVMContextRef, module: LLVMModuleRef, function: LLVMValueRef) {
    // SAFETY: the caller's promise.
    unsafe {
        let builder = LLVMCreateBuilderInContext(context);
        keep_indices(context, module, builder, function);
        keep_places(context, module, builder, function);
        LLVMDisposeBuilder(builder);
    }
}

unsafe fn keep_indices(
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    function: LLVMValueRef,
) {
    // SAFETY: as in `keep`; calls are put in when all are found.
    unsafe {
        let mut found = Vec::new();
        for_each(function, |inst| {
            if LLVMGetInstructionOpcode(inst) == LLVMOpcode::LLVMGetElementPtr
                && let Some(operand) = outside(inst)
                && is_accessed(inst)
            {
                found.push((inst, operand));
            }
        });
        for (inst, operand) in found {
            LLVMPositionBuilderBefore(builder, inst);
            let array = LLVMGetGEPSourceElementType(inst);
            if is_for_registers(array) {
                // Templates access arrays of no element where nothing comes of it.
                if LLVMGetArrayLength2(array) > 0 {
                    mark(context, module, builder, inst);
                }
                continue;
            }
            let index = LLVMGetOperand(inst, operand);
            LLVMSetOperand(inst, operand, kept(context, module, builder, index));
        }
    }
}

unsafe fn keep_places(
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    function: LLVMValueRef,
) {
    // SAFETY: as in `keep`; calls are put in when all are found.
    unsafe {
        let layout = LLVMGetModuleDataLayout(module);
        let mut found = Vec::new();
        for_each(function, |inst| {
            let (operand, accessed) = match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMLoad => (0, inst),
                LLVMOpcode::LLVMStore => (1, LLVMGetOperand(inst, 0)),
                _other => return,
            };
            if let Some((base, at)) = known_place(layout, LLVMGetOperand(inst, operand)) {
                let has = LLVMABISizeOfType(layout, type_of(base)) as i64;
                let needs = LLVMStoreSizeOfType(layout, LLVMTypeOf(accessed)) as i64;
                if has > 0 && (at < 0 || at > has - needs) {
                    found.push((inst, operand, base, at));
                }
            }
        });
        for (inst, operand, base, at) in found {
            LLVMPositionBuilderBefore(builder, inst);
            if is_for_registers(type_of(base)) {
                mark(context, module, builder, inst);
                continue;
            }
            let at = LLVMConstInt(LLVMInt64TypeInContext(context), at as u64, 1);
            let mut index = [kept(context, module, builder, at)];
            let byte = LLVMInt8TypeInContext(context);
            let place = LLVMBuildGEP2(builder, byte, base, index.as_mut_ptr(), 1, c"".as_ptr());
            LLVMSetOperand(inst, operand, place);
        }
    }
}

/// The result of a function that gives back what it gets, of which LLVM knows nothing.
unsafe fn kept(
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    index: LLVMValueRef,
) -> LLVMValueRef {
    // SAFETY: it is an integer, and the builder is in a function of the module.
    unsafe {
        let int = LLVMTypeOf(index);
        let name = CString::new(format!("invar.kept.i{}", LLVMGetIntTypeWidth(int)));
        let Ok(name) = name else {
            return index;
        };
        let mut params = [int];
        let ty = LLVMFunctionType(int, params.as_mut_ptr(), 1, 0);
        let function = opaque(context, module, &name, ty);
        let mut given = [index];
        LLVMBuildCall2(builder, ty, function, given.as_mut_ptr(), 1, c"".as_ptr())
    }
}

/// Marks an access, once.
unsafe fn mark(
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    inst: LLVMValueRef,
) {
    // SAFETY: the builder is in front of the instruction, in a function of the module.
    unsafe {
        let before = LLVMGetPreviousInstruction(inst);
        if !before.is_null()
            && callee(before).is_some_and(|name| *name == *OUTSIDE.to_string_lossy())
        {
            return;
        }
        let nothing = LLVMVoidTypeInContext(context);
        let ty = LLVMFunctionType(nothing, ptr::null_mut(), 0, 0);
        let mut function = LLVMGetNamedFunction(module, OUTSIDE.as_ptr());
        if function.is_null() {
            function = LLVMAddFunction(module, OUTSIDE.as_ptr(), ty);
        }
        LLVMBuildCall2(builder, ty, function, ptr::null_mut(), 0, c"".as_ptr());
    }
}

/// The type of a variable, of a function or outside.
unsafe fn type_of(base: LLVMValueRef) -> LLVMTypeRef {
    // SAFETY: it is one.
    unsafe {
        match LLVMIsAAllocaInst(base).is_null() {
            true => LLVMGlobalGetValueType(base),
            false => LLVMGetAllocatedType(base),
        }
    }
}

/// The operand of an address that is an index of a variable's array and outside of it.
unsafe fn outside(inst: LLVMValueRef) -> Option<u32> {
    // SAFETY: it computes an address, of operands that are a base and indices.
    unsafe {
        let base = LLVMGetOperand(inst, 0);
        let ty = LLVMGetGEPSourceElementType(inst);
        if !is_array(ty) || !is_of_variable(base) {
            return None;
        }
        let length = LLVMGetArrayLength2(ty) as i64;
        let index = match LLVMGetNumOperands(inst) {
            0..=2 => return None,
            _more => LLVMGetOperand(inst, 2),
        };
        let is_outside = !LLVMIsAConstantInt(index).is_null()
            && !(0..length).contains(&LLVMConstIntGetSExtValue(index));
        is_outside.then_some(2)
    }
}

/// Whether an address is of a variable of the function, or of a part of one.
unsafe fn is_of_variable(mut base: LLVMValueRef) -> bool {
    // SAFETY: it is a value; what computes an address has a base.
    unsafe {
        for _ in 0..8 {
            if !LLVMIsAAllocaInst(base).is_null() {
                return true;
            }
            if !is_address(base) {
                return false;
            }
            base = LLVMGetOperand(base, 0);
        }
    }
    false
}

/// Whether something is read or written at an address, or at one that is computed of it.
unsafe fn is_accessed(inst: LLVMValueRef) -> bool {
    // SAFETY: it is an instruction, and so is what uses it.
    unsafe {
        let mut used = LLVMGetFirstUse(inst);
        while !used.is_null() {
            let user = LLVMGetUser(used);
            let is_access = match LLVMGetInstructionOpcode(user) {
                LLVMOpcode::LLVMLoad => true,
                LLVMOpcode::LLVMStore => LLVMGetOperand(user, 1) == inst,
                LLVMOpcode::LLVMGetElementPtr => is_accessed(user),
                _other => false,
            };
            if is_access {
                return true;
            }
            used = LLVMGetNextUse(used);
        }
    }
    false
}

unsafe fn is_array(ty: LLVMTypeRef) -> bool {
    // SAFETY: it is a type.
    unsafe { LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMArrayTypeKind }
}

unsafe fn is_address(value: LLVMValueRef) -> bool {
    // SAFETY: it is a value.
    unsafe { !LLVMIsAGetElementPtrInst(value).is_null() }
}
