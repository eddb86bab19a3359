//! Chains of calls, in which LLVM's inliner copies what it has already copied: it takes functions in the order of the
//! module, and where that is from the last callee up, each holds the bodies of all below it when it is copied in turn.
//!
//! So every second function of a long chain is inlined first, which halves it and copies each body once; and so on,
//! until it is short.

use std::collections::HashMap;

use inkwell::llvm_sys::core::{
    LLVMGetCalledValue, LLVMGetFirstFunction, LLVMGetNextFunction, LLVMIsACallInst,
    LLVMIsAFunction, LLVMIsDeclaration,
};
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};

use super::values::for_each;

/// The most functions that call one another which are inlined at once.
pub(super) const SHORT: usize = 8;

/// The functions of a module that have blocks.
///
/// # Safety
/// It is a module.
pub(super) unsafe fn defined(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let mut all = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        let mut function = LLVMGetFirstFunction(module);
        while !function.is_null() {
            if LLVMIsDeclaration(function) == 0 {
                all.push(function);
            }
            function = LLVMGetNextFunction(function);
        }
    }
    all
}

/// How many calls lead to each function, at most, from those that nobody calls. What calls itself, by whatever way,
/// and what it calls, is left out.
///
/// # Safety
/// They are all functions of a module that have blocks.
pub(super) unsafe fn levels(functions: &[LLVMValueRef]) -> Vec<(LLVMValueRef, usize)> {
    let numbers: HashMap<LLVMValueRef, usize> =
        functions.iter().enumerate().map(|(n, f)| (*f, n)).collect();
    let mut callees = vec![Vec::new(); functions.len()];
    let mut callers = vec![0_usize; functions.len()];
    for (caller, function) in functions.iter().enumerate() {
        // SAFETY: the caller's promise; what a call calls is a value.
        unsafe {
            for_each(*function, |inst| {
                if !LLVMIsACallInst(inst).is_null()
                    && let called = LLVMGetCalledValue(inst)
                    && !LLVMIsAFunction(called).is_null()
                    && let Some(called) = numbers.get(&called)
                {
                    callees[caller].push(*called);
                    callers[*called] += 1;
                }
            });
        }
    }
    let mut open: Vec<usize> = (0..functions.len()).filter(|n| callers[*n] == 0).collect();
    let mut levels = vec![0; functions.len()];
    let mut found = Vec::new();
    while let Some(caller) = open.pop() {
        found.push((functions[caller], levels[caller]));
        for called in &callees[caller] {
            levels[*called] = levels[*called].max(levels[caller] + 1);
            callers[*called] -= 1;
            if callers[*called] == 0 {
                open.push(*called);
            }
        }
    }
    found
}
