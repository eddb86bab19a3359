//! Divisions and shifts to which LLVM gives no meaning, and an operation here does: by 0, of the least number by -1, and
//! by as many bits as there are. What is made of one whose numbers it knows LLVM leaves out, and the way that leads there.
//!
//! So a division is a call of a function until its divisor is known and one of a meaning, and a shift's count is cut to
//! what the operation takes of it.

use std::ffi::CString;

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::{
    LLVMBuildAnd, LLVMBuildBinOp, LLVMBuildCall2, LLVMConstAllOnes, LLVMConstInt,
    LLVMConstIntGetZExtValue, LLVMConstNull, LLVMCreateBuilderInContext, LLVMDisposeBuilder,
    LLVMFunctionType, LLVMGetFirstUse, LLVMGetInstructionOpcode, LLVMGetIntTypeWidth,
    LLVMGetOperand, LLVMGetTypeKind, LLVMInstructionEraseFromParent, LLVMIsAConstantInt,
    LLVMIsAInstruction, LLVMPositionBuilderBefore, LLVMReplaceAllUsesWith, LLVMSetOperand,
    LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef};

use super::Binary;
use super::values::{callee, for_each, opaque};

/// The divisions, by the words for them in the names of the functions that stand for them.
const DIVISIONS: [(&str, LLVMOpcode, Binary); 4] = [
    ("sdiv", LLVMOpcode::LLVMSDiv, Binary::SDiv),
    ("srem", LLVMOpcode::LLVMSRem, Binary::SRem),
    ("udiv", LLVMOpcode::LLVMUDiv, Binary::UDiv),
    ("urem", LLVMOpcode::LLVMURem, Binary::URem),
];

/// The division that a function stands for, by its name.
pub(super) fn division(name: &str) -> Option<Binary> {
    Some(by_name(name)?.1)
}

fn by_name(name: &str) -> Option<(LLVMOpcode, Binary)> {
    let word = name.strip_prefix("invar.divided.")?.split('.').next()?;
    let mut all = DIVISIONS.iter();
    let (_, opcode, binary) = all.find(|(known, ..)| *known == word)?;
    Some((*opcode, *binary))
}

/// Puts calls in the place of a function's divisions, but for those by a number that has a meaning, and cuts the counts
/// of shifts.
///
/// # Safety
/// It is a function of the module, and that of the context.
pub(super) unsafe fn hide(context: LLVMContextRef, module: LLVMModuleRef, function: LLVMValueRef) {
    // SAFETY: the caller's promise; instructions are replaced when all are found.
    unsafe {
        let (mut divisions, mut shifts) = (Vec::new(), Vec::new());
        for_each(function, |inst| {
            let opcode = LLVMGetInstructionOpcode(inst);
            if LLVMGetTypeKind(LLVMTypeOf(inst)) != LLVMTypeKind::LLVMIntegerTypeKind {
                return;
            }
            if let Some((word, ..)) = DIVISIONS.iter().find(|(_, known, _)| *known == opcode) {
                if !has_meaning(opcode, LLVMGetOperand(inst, 1)) {
                    divisions.push((inst, *word));
                }
            } else if is_shift(opcode) && !is_within(inst) {
                shifts.push(inst);
            }
        });
        let builder = LLVMCreateBuilderInContext(context);
        for (inst, word) in divisions {
            let int = LLVMTypeOf(inst);
            let name = format!("invar.divided.{word}.i{}", LLVMGetIntTypeWidth(int));
            let Ok(name) = CString::new(name) else {
                continue;
            };
            let mut params = [int, int];
            let ty = LLVMFunctionType(int, params.as_mut_ptr(), 2, 0);
            let called = opaque(context, module, &name, ty);
            LLVMPositionBuilderBefore(builder, inst);
            let mut given = [LLVMGetOperand(inst, 0), LLVMGetOperand(inst, 1)];
            let call = LLVMBuildCall2(builder, ty, called, given.as_mut_ptr(), 2, c"".as_ptr());
            LLVMReplaceAllUsesWith(inst, call);
            LLVMInstructionEraseFromParent(inst);
        }
        for inst in shifts {
            let int = LLVMTypeOf(inst);
            let most = LLVMConstInt(int, u64::from(LLVMGetIntTypeWidth(int)) - 1, 0);
            LLVMPositionBuilderBefore(builder, inst);
            let cut = LLVMBuildAnd(builder, LLVMGetOperand(inst, 1), most, c"".as_ptr());
            LLVMSetOperand(inst, 1, cut);
        }
        LLVMDisposeBuilder(builder);
    }
}

/// Makes the calls divisions again whose divisors are known by now and have a meaning; whether there were any.
///
/// # Safety
/// It is a function of the context.
pub(super) unsafe fn reveal(context: LLVMContextRef, function: LLVMValueRef) -> bool {
    // SAFETY: the caller's promise; instructions are replaced when all are found.
    unsafe {
        let mut known = Vec::new();
        for_each(function, |inst| {
            if let Some((opcode, _)) = callee(inst).and_then(|name| by_name(&name)) {
                known.push((inst, opcode));
            }
        });
        let builder = LLVMCreateBuilderInContext(context);
        let mut is_any = false;
        for (call, opcode) in known {
            let (by, of) = (LLVMGetOperand(call, 1), LLVMGetOperand(call, 0));
            if has_meaning(opcode, by) {
                LLVMPositionBuilderBefore(builder, call);
                let result = LLVMBuildBinOp(builder, opcode, of, by, c"".as_ptr());
                LLVMReplaceAllUsesWith(call, result);
                LLVMInstructionEraseFromParent(call);
                is_any = true;
            }
        }
        LLVMDisposeBuilder(builder);
        is_any
    }
}

/// Leaves the cuts of counts out that shifts have here by themselves.
///
/// # Safety
/// It is a function, which no pass goes over any more.
pub(super) unsafe fn leave_cuts_out(function: LLVMValueRef) {
    // SAFETY: the caller's promise; what is erased has no use.
    unsafe {
        let mut cuts = Vec::new();
        for_each(function, |inst| {
            let by = match is_shift(LLVMGetInstructionOpcode(inst)) {
                true => LLVMGetOperand(inst, 1),
                false => return,
            };
            if LLVMIsAInstruction(by).is_null()
                || LLVMGetInstructionOpcode(by) != LLVMOpcode::LLVMAnd
            {
                return;
            }
            let most = LLVMGetOperand(by, 1);
            let width = u64::from(LLVMGetIntTypeWidth(LLVMTypeOf(by)));
            if !LLVMIsAConstantInt(most).is_null() && LLVMConstIntGetZExtValue(most) == width - 1 {
                LLVMSetOperand(inst, 1, LLVMGetOperand(by, 0));
                cuts.push(by);
            }
        });
        cuts.sort_unstable();
        cuts.dedup();
        for cut in cuts {
            if LLVMGetFirstUse(cut).is_null() {
                LLVMInstructionEraseFromParent(cut);
            }
        }
    }
}

fn is_shift(opcode: LLVMOpcode) -> bool {
    matches!(
        opcode,
        LLVMOpcode::LLVMShl | LLVMOpcode::LLVMLShr | LLVMOpcode::LLVMAShr
    )
}

/// Whether the count of a shift is a number below the width; of a width that is no power of two no count is cut.
unsafe fn is_within(shift: LLVMValueRef) -> bool {
    // SAFETY: it is a shift of an integer.
    unsafe {
        let count = LLVMGetOperand(shift, 1);
        let width = width_of(LLVMTypeOf(shift));
        !width.is_power_of_two()
            || !LLVMIsAConstantInt(count).is_null() && LLVMConstIntGetZExtValue(count) < width
    }
}

unsafe fn width_of(int: LLVMTypeRef) -> u64 {
    // SAFETY: it is the type of integers.
    u64::from(unsafe { LLVMGetIntTypeWidth(int) })
}

/// Whether a division by this has a meaning for LLVM, whatever is divided.
unsafe fn has_meaning(opcode: LLVMOpcode, by: LLVMValueRef) -> bool {
    // SAFETY: it is an integer; constants are made once, so they are the same where they are equal.
    unsafe {
        let has_sign = matches!(opcode, LLVMOpcode::LLVMSDiv | LLVMOpcode::LLVMSRem);
        let int = LLVMTypeOf(by);
        !LLVMIsAConstantInt(by).is_null()
            && by != LLVMConstNull(int)
            && !(has_sign && by == LLVMConstAllOnes(int))
    }
}
