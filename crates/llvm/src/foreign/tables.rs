//! Tables: variables outside functions whose values are written with them and never change.
//!
//! LLVM puts what a table holds in the place of what is read of it at a known place, and of what is read beyond its end
//! nothing at all. So it is not to know that tables are constant, and what they hold is put in here.

use std::collections::HashSet;
use std::ffi::CStr;
use std::ptr;

use inkwell::llvm_sys::core::{
    LLVMConstBitCast, LLVMConstNull, LLVMGetAggregateElement, LLVMGetElementType,
    LLVMGetFirstGlobal, LLVMGetInitializer, LLVMGetInstructionOpcode, LLVMGetMDKindIDInContext,
    LLVMGetNextGlobal, LLVMGetOperand, LLVMGetSection, LLVMGetTypeKind,
    LLVMInstructionEraseFromParent, LLVMIsAConstantAggregateZero, LLVMIsGlobalConstant,
    LLVMIsUndef, LLVMMDNodeInContext2, LLVMMetadataAsValue, LLVMReplaceAllUsesWith,
    LLVMSetGlobalConstant, LLVMSetMetadata, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::{
    LLVMABISizeOfType, LLVMElementAtOffset, LLVMGetModuleDataLayout, LLVMOffsetOfElement,
    LLVMStoreSizeOfType, LLVMTargetDataRef,
};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};

use super::values::{for_each, global_of, known_place};

/// The tables of a module.
pub(super) struct Tables {
    module: LLVMModuleRef,
    all: HashSet<LLVMValueRef>,
}

impl Tables {
    /// Finds a module's tables, and hides from LLVM that they are constant.
    ///
    /// # Safety
    /// It is a module.
    pub unsafe fn hide(module: LLVMModuleRef) -> Tables {
        let mut all = HashSet::new();
        // SAFETY: the caller's promise.
        unsafe {
            let mut global = LLVMGetFirstGlobal(module);
            while !global.is_null() {
                if LLVMIsGlobalConstant(global) != 0
                    && !LLVMGetInitializer(global).is_null()
                    && !is_metadata(global)
                {
                    LLVMSetGlobalConstant(global, 0);
                    all.insert(global);
                }
                global = LLVMGetNextGlobal(global);
            }
        }
        Tables { module, all }
    }

    /// Says again that they are constant.
    ///
    /// # Safety
    /// The module is still there.
    pub unsafe fn reveal(&self) {
        // SAFETY: the caller's promise; passes may have left some of the tables out, which are not met.
        unsafe {
            let mut global = LLVMGetFirstGlobal(self.module);
            while !global.is_null() {
                if self.all.contains(&global) {
                    LLVMSetGlobalConstant(global, 1);
                }
                global = LLVMGetNextGlobal(global);
            }
        }
    }

    /// Puts what tables hold in the place of what a function reads of them at known places; whether there was any.
    ///
    /// # Safety
    /// It is a function of the module, and that of the context.
    pub unsafe fn put_in(&self, context: LLVMContextRef, function: LLVMValueRef) -> bool {
        // SAFETY: the caller's promise; instructions are replaced when all are found.
        unsafe {
            let layout = LLVMGetModuleDataLayout(self.module);
            let kind = LLVMGetMDKindIDInContext(context, c"invariant.load".as_ptr(), 14);
            let mut known = Vec::new();
            for_each(function, |inst| {
                if LLVMGetInstructionOpcode(inst) != LLVMOpcode::LLVMLoad {
                    return;
                }
                let address = LLVMGetOperand(inst, 0);
                if let Some((base, at)) = known_place(layout, address) {
                    if self.all.contains(&base)
                        && let Ok(at) = u64::try_from(at)
                        && let Some(value) =
                            part(layout, LLVMGetInitializer(base), at, LLVMTypeOf(inst))
                    {
                        known.push((inst, value));
                    }
                } else if global_of(address).is_some_and(|base| self.all.contains(&base)) {
                    // What is written elsewhere does not change it.
                    let none = LLVMMDNodeInContext2(context, ptr::null_mut(), 0);
                    LLVMSetMetadata(inst, kind, LLVMMetadataAsValue(context, none));
                }
            });
            let is_any = !known.is_empty();
            for (load, value) in known {
                LLVMReplaceAllUsesWith(load, value);
                LLVMInstructionEraseFromParent(load);
            }
            is_any
        }
    }
}

/// Whether a variable is for compilers only.
unsafe fn is_metadata(global: LLVMValueRef) -> bool {
    // SAFETY: it is a variable.
    unsafe {
        let section = LLVMGetSection(global);
        !section.is_null() && CStr::from_ptr(section) == c"llvm.metadata"
    }
}

/// The scalar at a place of a constant, if one begins and ends there.
unsafe fn part(
    layout: LLVMTargetDataRef,
    mut value: LLVMValueRef,
    mut at: u64,
    wanted: LLVMTypeRef,
) -> Option<LLVMValueRef> {
    // SAFETY: it is a constant of a type with a size.
    unsafe {
        let size = LLVMStoreSizeOfType(layout, wanted);
        let is_scalar = |ty| {
            matches!(
                LLVMGetTypeKind(ty),
                LLVMTypeKind::LLVMIntegerTypeKind
                    | LLVMTypeKind::LLVMHalfTypeKind
                    | LLVMTypeKind::LLVMBFloatTypeKind
                    | LLVMTypeKind::LLVMFloatTypeKind
                    | LLVMTypeKind::LLVMDoubleTypeKind
            )
        };
        let is_address = LLVMGetTypeKind(wanted) == LLVMTypeKind::LLVMPointerTypeKind;
        if !(is_address || is_scalar(wanted))
            || at + size > LLVMABISizeOfType(layout, LLVMTypeOf(value))
        {
            return None;
        }
        loop {
            let ty = LLVMTypeOf(value);
            if !LLVMIsAConstantAggregateZero(value).is_null() {
                return Some(LLVMConstNull(wanted));
            }
            if value.is_null() || LLVMIsUndef(value) != 0 {
                return None;
            }
            match LLVMGetTypeKind(ty) {
                LLVMTypeKind::LLVMArrayTypeKind => {
                    let step = LLVMABISizeOfType(layout, LLVMGetElementType(ty));
                    let number = u32::try_from(at.checked_div(step)?).ok()?;
                    value = LLVMGetAggregateElement(value, number);
                    at %= step;
                }
                LLVMTypeKind::LLVMStructTypeKind => {
                    let number = LLVMElementAtOffset(layout, ty, at);
                    value = LLVMGetAggregateElement(value, number);
                    at -= LLVMOffsetOfElement(layout, ty, number);
                }
                _scalar if ty == wanted && at == 0 => return Some(value),
                _scalar => {
                    let is_same = at == 0
                        && is_scalar(ty)
                        && is_scalar(wanted)
                        && LLVMStoreSizeOfType(layout, ty) == size
                        && size > 1;
                    return is_same.then(|| LLVMConstBitCast(value, wanted));
                }
            }
            if value.is_null() {
                return None;
            }
        }
    }
}
