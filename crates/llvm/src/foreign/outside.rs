//! Accesses of a variable's array at a known place that it does not have. LLVM leaves them out, as what C++ gives no
//! meaning to, and so their findings with them; a number that it does not know keeps them.

use std::ffi::CStr;

use inkwell::llvm_sys::core::{
    LLVMAddFunction, LLVMBuildCall2, LLVMConstIntGetSExtValue, LLVMCreateBuilderInContext,
    LLVMDisposeBuilder, LLVMFunctionType, LLVMGetAllocatedType, LLVMGetArrayLength2,
    LLVMGetFirstUse, LLVMGetGEPSourceElementType, LLVMGetInstructionOpcode, LLVMGetNamedFunction,
    LLVMGetNextUse, LLVMGetNumOperands, LLVMGetOperand, LLVMGetTypeKind, LLVMGetUser,
    LLVMIsAAllocaInst, LLVMIsAConstantInt, LLVMIsAGetElementPtrInst, LLVMPositionBuilderBefore,
    LLVMSetOperand, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};

use super::unroll::is_for_registers;
use super::values::for_each;

/// The function whose result is its argument, of which LLVM knows nothing.
const KEPT: &CStr = c"invar.kept.i64";

/// Hides the indices of a function's accesses outside of arrays from LLVM. What has to be in registers is left.
///
/// # Safety
/// It is a function of the module, and that of the context.
pub(super) unsafe fn keep(context: LLVMContextRef, module: LLVMModuleRef, function: LLVMValueRef) {
    // SAFETY: the caller's promise; calls are put in when all are found.
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
        if found.is_empty() {
            return;
        }
        let builder = LLVMCreateBuilderInContext(context);
        for (inst, operand) in found {
            let index = LLVMGetOperand(inst, operand);
            let int = LLVMTypeOf(index);
            let mut params = [int];
            let ty = LLVMFunctionType(int, params.as_mut_ptr(), 1, 0);
            let mut kept = LLVMGetNamedFunction(module, KEPT.as_ptr());
            if kept.is_null() {
                kept = LLVMAddFunction(module, KEPT.as_ptr(), ty);
            }
            LLVMPositionBuilderBefore(builder, inst);
            let mut arguments = [index];
            let call = LLVMBuildCall2(builder, ty, kept, arguments.as_mut_ptr(), 1, c"".as_ptr());
            LLVMSetOperand(inst, operand, call);
        }
        LLVMDisposeBuilder(builder);
    }
}

/// The operand of an address that is an index of a variable's array and outside of it.
unsafe fn outside(inst: LLVMValueRef) -> Option<u32> {
    // SAFETY: it computes an address, of operands that are a base and indices.
    unsafe {
        let base = LLVMGetOperand(inst, 0);
        let ty = LLVMGetGEPSourceElementType(inst);
        if !is_array(ty) || is_for_registers(ty) || !is_of_variable(base) {
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
                return !is_for_registers(LLVMGetAllocatedType(base));
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
