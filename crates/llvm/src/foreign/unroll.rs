//! Loops that have to be written out: those of a function with arrays whose elements have to be in registers.
//! These are vectors, which stand for what is spread over a simdgroup, so that no memory of one thread can hold
//! it; and addresses, of which what they lead to has to be known.
//!
//! LLVM writes a loop out that says so and whose rounds it can count; any other stays. So that it can, ways on
//! which the condition of a loop is known lead past the others (`thread.rs`).

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::iter;
use std::ptr;
use std::slice;

use inkwell::llvm_sys::core::{
    LLVMConstInt, LLVMConstIntGetZExtValue, LLVMCountStructElementTypes, LLVMGetAllocatedType,
    LLVMGetBasicBlockTerminator, LLVMGetElementType, LLVMGetFirstBasicBlock,
    LLVMGetInstructionOpcode, LLVMGetInstructionParent, LLVMGetMDKindIDInContext,
    LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands, LLVMGetMDString, LLVMGetMetadata,
    LLVMGetNextBasicBlock, LLVMGetNumSuccessors, LLVMGetOperand, LLVMGetSuccessor, LLVMGetTypeKind,
    LLVMInt32TypeInContext, LLVMIsAConstantInt, LLVMIsAMDNode, LLVMIsConditional,
    LLVMMDNodeInContext2, LLVMMDStringInContext2, LLVMMetadataAsValue, LLVMSetMetadata,
    LLVMStructGetTypeAtIndex, LLVMTypeOf, LLVMValueAsMetadata,
};
use inkwell::llvm_sys::debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMContextRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};

use super::thread;
use super::values::for_each;

/// Says of every loop of a function with such arrays that it is to be written out; whether it is one.
///
/// # Safety
/// It is a function of the context.
pub(super) unsafe fn loops_over_registers(context: LLVMContextRef, function: LLVMValueRef) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let mut has_such = false;
        for_each(function, |inst| {
            has_such |= match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMAlloca => is_for_registers(LLVMGetAllocatedType(inst)),
                LLVMOpcode::LLVMLoad => is_vector(LLVMTypeOf(inst)),
                LLVMOpcode::LLVMStore => is_vector(LLVMTypeOf(LLVMGetOperand(inst, 0))),
                _other => false,
            };
        });
        if !has_such {
            return false;
        }
        let heads = ways_back(function).into_iter().map(|(_, head)| head);
        thread::known_ways(context, function, &heads.collect());
        let kind = kind_of_notes(context);
        for (back, _) in ways_back(function) {
            // Where a loop was written stands there too, and may go; what the author says stays.
            if says_how(LLVMGetMetadata(back, kind)).is_none() {
                note(context, back, c"llvm.loop.unroll.full", None);
            }
        }
    }
    true
}

/// Adds one to how many iterations of a loop the author says are to be written as one, where the test stands in front:
/// LLVM counts how often it comes there, and of a loop of so many iterations that is once more. So it sees that it is
/// to write all of that loop out.
///
/// # Safety
/// It is a function of the context.
pub(super) unsafe fn count_tests_in_front(context: LLVMContextRef, function: LLVMValueRef) {
    // SAFETY: the caller's promise.
    unsafe {
        let kind = kind_of_notes(context);
        for (back, _) in ways_back(function) {
            let is_in_front = LLVMGetInstructionOpcode(back) == LLVMOpcode::LLVMBr
                && LLVMIsConditional(back) == 0;
            if let Some(Some(iterations)) = says_how(LLVMGetMetadata(back, kind))
                && is_in_front
            {
                note(
                    context,
                    back,
                    c"llvm.loop.unroll.count",
                    Some(iterations + 1),
                );
            }
        }
    }
}

/// The number of what is noted of loops.
unsafe fn kind_of_notes(context: LLVMContextRef) -> u32 {
    let name = c"llvm.loop";
    // SAFETY: the name has so many bytes.
    unsafe { LLVMGetMDKindIDInContext(context, name.as_ptr(), name.to_bytes().len() as u32) }
}

/// Notes of the loop of a jump how it is to be written out, and nothing else.
unsafe fn note(context: LLVMContextRef, back: LLVMValueRef, what: &CStr, iterations: Option<u64>) {
    // SAFETY: the node that stands for itself is made as LLVM's readers make it.
    unsafe {
        let what = LLVMMDStringInContext2(context, what.as_ptr(), what.to_bytes().len());
        let iterations = iterations.map(|iterations| {
            LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), iterations, 0))
        });
        let mut how: Vec<_> = iter::once(what).chain(iterations).collect();
        let how = LLVMMDNodeInContext2(context, how.as_mut_ptr(), how.len());
        let itself = LLVMTemporaryMDNode(context, ptr::null_mut(), 0);
        let mut parts = [itself, how];
        let node = LLVMMDNodeInContext2(context, parts.as_mut_ptr(), parts.len());
        LLVMMetadataReplaceAllUsesWith(itself, node);
        LLVMSetMetadata(
            back,
            kind_of_notes(context),
            LLVMMetadataAsValue(context, node),
        );
    }
}

/// Whether what is noted of a loop says how it is to be written out, and then how many iterations as one, if that is
/// said.
unsafe fn says_how(note: LLVMValueRef) -> Option<Option<u64>> {
    // SAFETY: it is nothing or a node, whose parts are nodes or other metadata; there is room for all.
    unsafe {
        operands(note).into_iter().find_map(|part| {
            let said = operands(part);
            let mut length = 0;
            let text = LLVMGetMDString(*said.first()?, &mut length);
            if text.is_null() {
                return None;
            }
            let text = slice::from_raw_parts(text.cast::<u8>(), length as usize);
            let iterations = said.get(1).filter(|iterations| {
                text == b"llvm.loop.unroll.count" && !LLVMIsAConstantInt(**iterations).is_null()
            });
            let iterations = iterations.map(|iterations| LLVMConstIntGetZExtValue(*iterations));
            text.starts_with(b"llvm.loop.unroll").then_some(iterations)
        })
    }
}

/// The parts of a node of metadata; of anything else, none. A node that has itself as a part is there as one.
unsafe fn operands(node: LLVMValueRef) -> Vec<LLVMValueRef> {
    // SAFETY: it is nothing or metadata.
    unsafe {
        if node.is_null() || LLVMIsAMDNode(node).is_null() {
            return Vec::new();
        }
        let mut parts = vec![ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
        LLVMGetMDNodeOperands(node, parts.as_mut_ptr());
        parts.retain(|part| !part.is_null());
        parts
    }
}

unsafe fn is_vector(ty: LLVMTypeRef) -> bool {
    // SAFETY: it is a type.
    unsafe { LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind }
}

/// Whether a type is a vector or an address, or has one in it.
pub(super) unsafe fn is_for_registers(ty: LLVMTypeRef) -> bool {
    // SAFETY: it is a type.
    unsafe {
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVectorTypeKind | LLVMTypeKind::LLVMPointerTypeKind => true,
            LLVMTypeKind::LLVMArrayTypeKind => is_for_registers(LLVMGetElementType(ty)),
            LLVMTypeKind::LLVMStructTypeKind => (0..LLVMCountStructElementTypes(ty))
                .any(|i| is_for_registers(LLVMStructGetTypeAtIndex(ty, i))),
            _scalar => false,
        }
    }
}

/// How many loops a function has.
///
/// # Safety
/// It is a function with blocks.
pub(super) unsafe fn loops(function: LLVMValueRef) -> usize {
    // SAFETY: the caller's promise.
    let back = unsafe { ways_back(function) };
    let heads: HashSet<LLVMBasicBlockRef> = back.into_iter().map(|(_, head)| head).collect();
    heads.len()
}

/// How many ways lead out of the loop of a function that has the most.
///
/// # Safety
/// It is a function with blocks.
pub(super) unsafe fn most_ways_out(function: LLVMValueRef) -> usize {
    let mut before: HashMap<LLVMBasicBlockRef, Vec<LLVMBasicBlockRef>> = HashMap::new();
    let mut bodies: HashMap<LLVMBasicBlockRef, HashSet<LLVMBasicBlockRef>> = HashMap::new();
    // SAFETY: the caller's promise: each block ends with a jump.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            for to in successors(block) {
                before.entry(to).or_default().push(block);
            }
            block = LLVMGetNextBasicBlock(block);
        }
        for (back, head) in ways_back(function) {
            let body = bodies.entry(head).or_default();
            body.insert(head);
            let mut open = vec![LLVMGetInstructionParent(back)];
            while let Some(block) = open.pop() {
                if body.insert(block) {
                    open.extend(before.get(&block).into_iter().flatten());
                }
            }
        }
        let ways_out = bodies.values().map(|body| {
            let ways = body.iter().flat_map(|block| successors(*block));
            ways.filter(|to| !body.contains(to)).count()
        });
        ways_out.max().unwrap_or(0)
    }
}

/// What a block leads to.
unsafe fn successors(block: LLVMBasicBlockRef) -> Vec<LLVMBasicBlockRef> {
    // SAFETY: it is a block that ends with a jump.
    unsafe {
        let end = LLVMGetBasicBlockTerminator(block);
        let ways = 0..LLVMGetNumSuccessors(end);
        ways.map(|way| LLVMGetSuccessor(end, way)).collect()
    }
}

/// The jumps that lead back to where they came from, and the blocks that they lead to.
unsafe fn ways_back(function: LLVMValueRef) -> Vec<(LLVMValueRef, LLVMBasicBlockRef)> {
    // SAFETY: it is a function with blocks, each of which ends with a jump.
    unsafe {
        let first = LLVMGetFirstBasicBlock(function);
        // Whether a block that was seen is still on the way.
        let mut seen: HashMap<LLVMBasicBlockRef, bool> = HashMap::from([(first, true)]);
        let mut way = vec![(first, 0)];
        let mut back = Vec::new();
        while let Some((block, next)) = way.last_mut() {
            let end = LLVMGetBasicBlockTerminator(*block);
            if *next == LLVMGetNumSuccessors(end) {
                seen.insert(*block, false);
                way.pop();
                continue;
            }
            let to = LLVMGetSuccessor(end, *next);
            *next += 1;
            match seen.get(&to) {
                Some(true) => back.push((end, to)),
                Some(false) => {}
                None => {
                    seen.insert(to, true);
                    way.push((to, 0));
                }
            }
        }
        back
    }
}
