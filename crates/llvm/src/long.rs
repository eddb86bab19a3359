//! Long functions, made easier for LLVM: what some of its passes take grows faster than what they work on.
//!
//! - A scheduler takes most of a compilation for a block of tens of thousands of instructions, and where registers are
//!   told that are written over, each instruction follows a chain of those behind it to the end of the block. So a
//!   long block is divided. Pieces are blocks whose address is taken, though nobody uses it: others would be put
//!   together again. No instruction comes of it.
//! - A function that is longer still than any kernel whose time is worth it, or has more blocks, is translated
//!   instruction by instruction, without what improves machine code, and what lives longer than its block lives on
//!   the stack. Translation goes through the whole of a block again and again, so long ones are divided.
//! - For each sum of a product that has a constant, all uses of the constant in the block are looked at, as long as
//!   they are such sums. A constant of many of them is hidden: it is kept in a register by itself.
//! - Where more values are alive than there are registers, to find one for a value takes the square of its uses. A
//!   vector of very many uses in a block gets another name now and then, of which no instruction comes.
//! - Constants that are vectors are kept in a table, where each is compared with all of other types. The ones of a long
//!   function that has very many are made of numbers in the code.
//! - Where there are more blocks than any kernel has that people write, variables stay on the stack as well: each
//!   that is put in registers costs a walk through all blocks in which it may have a value.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::{
    LLVMConstBitCast, LLVMGetAggregateElement, LLVMGetNumSuccessors, LLVMGetSuccessor,
    LLVMSetSuccessor,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, AsTypeRef, BasicTypeEnum, VectorType};
use inkwell::values::{
    AsValueRef, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue,
    IntValue, VectorValue,
};

use crate::compile::PASSES;
use crate::emit::BUILT;

/// For functions that are too long for what improves them: what only makes them shorter.
const PASSES_OF_LONG: &str = "globaldce,function(sroa,early-cse,simplifycfg,adce)";

/// For functions of more than [`MOST_BLOCKS`]. Common subexpressions are not for them: where very many branches get one
/// condition, each goes through all of its uses to say what it is behind them.
const PASSES_OF_MANY_BLOCKS: &str = "globaldce,function(instsimplify,simplifycfg,adce)";

/// About how many of the machine's instructions a block has that is not divided. The longest block of an ordinary
/// kernel has fewer.
const DISTANCE: u32 = 2000;

/// What a block counts for, in the machine's instructions: for a value that is used blocks after its own, passes
/// go through all between them, so that they take about the square of what a function has of blocks. The most
/// of an ordinary kernel are a few hundred.
const OF_BLOCK: u32 = 25;

/// What a load where a function begins counts for besides: arguments are loaded there, and of thousands nearly all wait
/// on the stack for where they are used. The most of an ordinary kernel are a few dozen.
const OF_ARGUMENT: u32 = 4;

/// How many of LLVM's instructions a block of a long function has: these at most, and no more than make a function
/// long, so that tests for which all are long see many blocks.
const PIECE: u32 = 250;
const SHORTEST_PIECE: u32 = 8;

/// A function of more blocks than this, or than what makes it long, keeps its variables on the stack.
const MOST_BLOCKS: u32 = 10_000;

/// What an operation on masks is of a function's budget of these alone: combining instructions goes through chains
/// of them again and again, such as a loop with many ways out has. The most of an ordinary kernel are a few hundred.
const OF_MASK: u32 = 10;

/// Sums of products of a block that one constant may be part of before it is hidden. The most of an ordinary kernel are
/// a few hundred.
const MOST_FUSED: usize = 1000;

/// Vectors that are constants and the same in every lane, which a long function has before they are made of numbers.
const MOST_CONSTANTS: usize = 500;

/// Uses of a vector in a block before it gets another name. A filter of a hundred loads uses none as often.
const MOST_USES: usize = 256;

/// LLVM's passes for a module that has been through none: some look for each condition at all that were met on the
/// way, so there are fewer where a function is too long for all. `most_improved` is
/// [`crate::CompileOptions::most_improved`].
pub(crate) fn passes(module: &Module<'_>, most_improved: u32) -> &'static str {
    let mut functions = module.get_functions();
    let most_blocks = MOST_BLOCKS.min(most_improved);
    if functions.any(|function| function.count_basic_blocks() > most_blocks) {
        PASSES_OF_MANY_BLOCKS
    } else if is_long(module, most_improved) {
        PASSES_OF_LONG
    } else {
        PASSES
    }
}

/// Whether a function is too long for all passes.
fn is_long(module: &Module<'_>, most_improved: u32) -> bool {
    module.get_functions().any(|function| {
        let entry = function.get_first_basic_block();
        let is_load = |inst: &InstructionValue<'_>| inst.get_opcode() == InstructionOpcode::Load;
        let loads = entry.map_or(0, |entry| entry.get_instructions().filter(is_load).count());
        let (mut weight, mut masks) = (OF_ARGUMENT * loads as u32, 0);
        function.get_basic_block_iter().any(|block| {
            let insts = || block.get_instructions();
            weight += OF_BLOCK + insts().map(self::weight).sum::<u32>();
            masks += OF_MASK * insts().filter(|&inst| joins_masks(inst)).count() as u32;
            weight.max(masks) > most_improved
        })
    })
}

fn joins_masks(inst: InstructionValue<'_>) -> bool {
    let joins = matches!(
        inst.get_opcode(),
        InstructionOpcode::And | InstructionOpcode::Or | InstructionOpcode::Xor
    );
    joins
        && matches!(inst.get_type(), AnyTypeEnum::VectorType(ty) if {
            let element = ty.get_element_type();
            element.is_int_type() && element.into_int_type().get_bit_width() == 1
        })
}

/// Prepares a module that has been through LLVM's passes on its own form for those on the machine's; whether one of
/// its functions is too long for what improves machine code. `most_improved` is
/// [`crate::CompileOptions::most_improved`].
pub(crate) fn ease(module: &Module<'_>, most_improved: u32) -> bool {
    let is_long = is_long(module, most_improved);
    if is_long {
        let most = MOST_CONSTANTS.min(most_improved as usize);
        for function in module.get_functions() {
            spread_constants(function, most);
        }
        let piece = most_improved.clamp(SHORTEST_PIECE, PIECE);
        for function in module.get_functions() {
            cut(function, piece, |_| 1);
        }
    } else {
        hide_constants(module);
        rename_vectors(module);
        for function in module.get_functions() {
            for piece in cut(function, DISTANCE, weight) {
                // SAFETY: it is not a function's first block.
                let _ = unsafe { piece.get_address() };
            }
        }
    }
    is_long
}

/// Puts a value in the place of a constant that very many sums of products of a block have, which is the constant and
/// which nothing knows to be one.
fn hide_constants(module: &Module<'_>) {
    let blocks = module
        .get_functions()
        .flat_map(FunctionValue::get_basic_block_iter);
    for block in blocks {
        let mut found: Vec<Fused<'_>> = Vec::new();
        let mut numbers: HashMap<LLVMValueRef, usize> = HashMap::new();
        for inst in block.get_instructions().filter(|&inst| is_fused(inst)) {
            for operand in 0..3 {
                let value = inst.get_operand(operand).and_then(|o| o.value());
                let Some(BasicValueEnum::VectorValue(constant)) = value else {
                    continue;
                };
                if !constant.is_const() {
                    continue;
                }
                let number = *numbers.entry(constant.as_value_ref()).or_insert_with(|| {
                    found.push(Fused {
                        constant,
                        uses: Vec::new(),
                    });
                    found.len() - 1
                });
                found[number].uses.push((inst, operand));
            }
        }
        for Fused { constant, uses } in found {
            if uses.len() <= MOST_FUSED {
                continue;
            }
            let hidden = fenced(module, constant, uses[0].0);
            for (inst, operand) in uses {
                inst.set_operand(operand, hidden);
            }
        }
    }
}

/// Makes the vectors of a function that are one constant in every lane of that number, in front of each use, if there
/// are more than so many.
fn spread_constants(function: FunctionValue<'_>, most: usize) {
    let mut numbers = HashMap::new();
    let mut uses = Vec::new();
    for inst in function
        .get_basic_block_iter()
        .flat_map(|block| block.get_instructions())
    {
        // Calls that give nothing may have operands that are not values, behind those that are.
        if inst.get_opcode() == InstructionOpcode::Phi {
            continue;
        }
        for operand in 0..inst.get_num_operands() {
            let value = inst.get_operand(operand).and_then(|o| o.value());
            let Some(BasicValueEnum::VectorValue(vector)) = value else {
                continue;
            };
            let number = numbers
                .entry(vector.as_value_ref())
                .or_insert_with(|| number_of(vector));
            if let Some(number) = *number {
                uses.push((inst, operand, vector.get_type(), number));
            }
        }
    }
    if numbers.values().flatten().count() <= most {
        return;
    }
    for (inst, operand, ty, number) in uses {
        inst.set_operand(operand, spread(inst, ty, number));
    }
}

/// The bits of each lane of a constant that are the same in every lane, of 32 or 64 bits, unless all are 0 or all 1,
/// of which code makes vectors without a table.
fn number_of(vector: VectorValue<'_>) -> Option<IntValue<'_>> {
    if !vector.is_const() {
        return None;
    }
    let context = vector.get_type().get_context();
    let bits = match vector.get_type().get_element_type() {
        BasicTypeEnum::IntType(ty) => ty.get_bit_width(),
        BasicTypeEnum::FloatType(ty) => ty.get_bit_width(),
        _no_number => return None,
    };
    let ty = match bits {
        32 => context.i32_type(),
        64 => context.i64_type(),
        _other => return None,
    };
    // SAFETY: it is a constant, and of one of another kind there is no element.
    let element = |lane| unsafe { LLVMGetAggregateElement(vector.as_value_ref(), lane) };
    let first = element(0);
    let lanes = vector.get_type().get_size();
    if first.is_null() || !(1..lanes).all(|lane| element(lane) == first) {
        return None;
    }
    // SAFETY: a number of so many bits.
    let number = unsafe { IntValue::new(LLVMConstBitCast(first, ty.as_type_ref())) };
    let bits = number.get_zero_extended_constant()?;
    (bits != 0 && bits != u64::MAX >> (64 - ty.get_bit_width())).then_some(number)
}

/// A vector of one number in front of an instruction, of which LLVM does not know that it is a constant.
fn spread<'c>(
    before: InstructionValue<'c>,
    ty: VectorType<'c>,
    number: IntValue<'c>,
) -> VectorValue<'c> {
    let int = number.get_type();
    let context = int.get_context();
    let builder = context.create_builder();
    builder.position_before(&before);
    let same = int.fn_type(&[int.into()], false);
    let nothing = String::new();
    let hide =
        context.create_inline_asm(same, nothing, "=r,0".to_string(), false, false, None, false);
    let call = builder.build_indirect_call(same, hide, &[number.into()], "");
    let hidden = call.expect(BUILT).try_as_basic_value().basic();
    let element = ty.get_element_type();
    let lane = builder
        .build_bit_cast(hidden.expect("a value"), element, "")
        .expect(BUILT);
    let zero = context.i32_type().const_zero();
    let first = builder
        .build_insert_element(ty.get_poison(), lane, zero, "")
        .expect(BUILT);
    let lanes = context.i32_type().vec_type(ty.get_size()).const_zero();
    builder
        .build_shuffle_vector(first, ty.get_poison(), lanes, "")
        .expect(BUILT)
}

/// The same floats, in front of an instruction, of which LLVM does not know that they are.
fn fenced<'c>(
    module: &Module<'c>,
    floats: VectorValue<'c>,
    before: InstructionValue<'c>,
) -> VectorValue<'c> {
    let builder = module.get_context().create_builder();
    let fence = Intrinsic::find("llvm.arithmetic.fence");
    let fence = fence.and_then(|i| i.get_declaration(module, &[floats.get_type().into()]));
    builder.position_before(&before);
    let fence = fence.expect("an intrinsic of LLVM");
    let call = builder.build_call(fence, &[floats.into()], "");
    let fenced = call.expect(BUILT).try_as_basic_value().basic();
    fenced.expect("a value").into_vector_value()
}

/// Gives vectors of floats that a block uses very often other names on the way.
fn rename_vectors(module: &Module<'_>) {
    let blocks = module
        .get_functions()
        .flat_map(FunctionValue::get_basic_block_iter);
    for block in blocks {
        // The name that a value has now, and how often it was used.
        let mut names: HashMap<LLVMValueRef, (VectorValue<'_>, usize)> = HashMap::new();
        for inst in block.get_instructions() {
            // Calls that give nothing may have operands that are not values.
            let gives_nothing = matches!(inst.get_type(), AnyTypeEnum::VoidType(_));
            match inst.get_opcode() {
                InstructionOpcode::Phi => continue,
                InstructionOpcode::Call if gives_nothing => continue,
                _of_values => {}
            }
            for operand in 0..inst.get_num_operands() {
                let value = inst.get_operand(operand).and_then(|o| o.value());
                let Some(BasicValueEnum::VectorValue(floats)) = value else {
                    continue;
                };
                if floats.is_const() || !is_of_f32(floats) {
                    continue;
                }
                let own = floats.as_value_ref();
                let (name, uses) = names.entry(own).or_insert((floats, 0));
                *uses += 1;
                if *uses > MOST_USES {
                    (*name, *uses) = (fenced(module, *name, inst), 1);
                }
                if name.as_value_ref() != own {
                    inst.set_operand(operand, *name);
                }
            }
        }
    }
}

fn is_of_f32(vector: VectorValue<'_>) -> bool {
    match vector.get_type().get_element_type() {
        BasicTypeEnum::FloatType(ty) => ty == ty.get_context().f32_type(),
        _no_float => false,
    }
}

/// A constant, and the operands that it is of sums of products.
struct Fused<'c> {
    constant: VectorValue<'c>,
    uses: Vec<(InstructionValue<'c>, u32)>,
}

/// Whether an instruction is a product and a sum in one, of vectors of floats.
fn is_fused(inst: InstructionValue<'_>) -> bool {
    let call = CallSiteValue::try_from(inst).ok();
    call.and_then(|call| call.get_called_fn_value())
        .is_some_and(|called| {
            let name = called.get_name().to_bytes();
            name.starts_with(b"llvm.fma.v") && name.ends_with(b"f32")
        })
}

/// Divides the blocks of a function that weigh more than twice `length`. Gives the pieces behind the first ones.
fn cut<'c>(
    function: FunctionValue<'c>,
    length: u32,
    weight: impl Fn(InstructionValue<'c>) -> u32,
) -> Vec<BasicBlock<'c>> {
    let mut behind = Vec::new();
    let blocks = function.get_basic_blocks();
    let mut into: HashMap<BasicBlock<'_>, Vec<(LLVMValueRef, u32)>> = HashMap::new();
    for end in blocks.iter().filter_map(|block| block.get_terminator()) {
        let end = end.as_value_ref();
        // SAFETY: it ends a block.
        let successors = unsafe { LLVMGetNumSuccessors(end) };
        for i in 0..successors {
            // SAFETY: counted above, and a successor is a block.
            let to = unsafe { BasicBlock::new(LLVMGetSuccessor(end, i)) };
            into.entry(to.expect("a block")).or_default().push((end, i));
        }
    }
    for block in blocks {
        let insts: Vec<InstructionValue<'_>> = block.get_instructions().collect();
        // What must stand first stays together.
        let leads = |inst: &InstructionValue<'_>| {
            let opcode = inst.get_opcode();
            matches!(opcode, InstructionOpcode::Phi | InstructionOpcode::Alloca)
        };
        let first = insts.iter().rposition(leads).map_or(0, |at| at + 1);
        let mut left: u32 = insts.iter().map(|&inst| weight(inst)).sum();
        // The last piece stays in the block, which its successors know; those before go to blocks in front.
        let context = block.get_context();
        let builder = context.create_builder();
        let (mut begin, mut passed) = (0, 0);
        let mut pieces = Vec::new();
        for (at, &inst) in insts.iter().enumerate() {
            if at >= first && passed >= length && left > length {
                let to = context.prepend_basic_block(block, "piece");
                builder.position_at_end(to);
                for inst in &insts[begin..at] {
                    inst.remove_from_basic_block();
                    builder.insert_instruction(inst, None);
                }
                pieces.push(to);
                (begin, passed) = (at, 0);
            }
            passed += weight(inst);
            left -= weight(inst);
        }
        if pieces.is_empty() {
            continue;
        }
        behind.extend(pieces.iter().skip(1).chain([&block]));
        for (i, piece) in pieces.iter().enumerate() {
            builder.position_at_end(*piece);
            let next = pieces.get(i + 1).unwrap_or(&block);
            builder.build_unconditional_branch(*next).expect(BUILT);
        }
        for (end, i) in into.remove(&block).unwrap_or_default() {
            // SAFETY: counted above; pieces end with branches of their own.
            unsafe { LLVMSetSuccessor(end, i, pieces[0].as_mut_ptr()) };
        }
    }
    behind
}

/// About how many of the machine's instructions one of LLVM's becomes.
fn weight(inst: InstructionValue<'_>) -> u32 {
    // A gather or a scatter becomes a few for each lane where the machine has none, as of bytes.
    const EACH_LANE: u32 = 3;
    if inst.get_opcode() != InstructionOpcode::Call {
        return 1;
    }
    let lanes = |i: u32| {
        let operand = inst.get_operand(i)?.value()?;
        match operand.get_type() {
            BasicTypeEnum::VectorType(ty) if ty.get_element_type().is_pointer_type() => {
                Some(ty.get_size())
            }
            _one => None,
        }
    };
    (0..inst.get_num_operands().min(2))
        .find_map(lanes)
        .map_or(1, |lanes| lanes * EACH_LANE)
}
