//! Long functions, made easier for LLVM: what some of its passes take grows faster than what they work on.
//!
//! - A scheduler takes most of a compilation for a block of tens of thousands of instructions. It moves nothing
//!   past a label, so a block that is long gets one now and then. The label is of no use to anybody else, and no
//!   instruction comes of it.
//! - A function that is longer still than any kernel whose time is worth it, or has more blocks, is translated
//!   instruction by instruction, without what improves machine code.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, InstructionOpcode, InstructionValue};

use crate::emit::BUILT;

/// About how many of the machine's instructions stand between two labels. The longest block of an ordinary
/// kernel has fewer.
const DISTANCE: u32 = 2000;

/// What a block counts for, in the machine's instructions: for a value that is used blocks after its own, passes
/// go through all between them, so that they take about the square of what a function has of blocks. The most
/// of an ordinary kernel are a few hundred.
const OF_BLOCK: u32 = 25;

/// What an operation on masks is of a function's budget of these alone: combining instructions goes through chains
/// of them again and again, such as a loop with many ways out has. The most of an ordinary kernel are a few hundred.
const OF_MASK: u32 = 10;

/// Whether a module that has been through none of LLVM's passes has a function too long for all of them: some
/// look for each condition at all that were met on the way. `most_improved` is
/// [`crate::CompileOptions::most_improved`].
pub(crate) fn is_long(module: &Module<'_>, most_improved: u32) -> bool {
    module.get_functions().any(|function| {
        let mut weight = 0;
        let mut masks = 0;
        let mut blocks = function.get_basic_block_iter();
        blocks.any(|block| {
            weight += OF_BLOCK + block.get_instructions().map(self::weight).sum::<u32>();
            masks += OF_MASK
                * block
                    .get_instructions()
                    .filter(|&inst| joins_masks(inst))
                    .count() as u32;
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

/// Prepares a module that has been through LLVM's passes on its own form for those on the machine's.
/// `most_improved` is [`crate::CompileOptions::most_improved`].
pub(crate) fn ease(module: &Module<'_>, most_improved: u32) {
    let context = module.get_context();
    let builder = context.create_builder();
    let mut label = None;
    for function in module.get_functions() {
        let mut whole = 0;
        for block in function.get_basic_block_iter() {
            let mut passed = 0;
            whole += OF_BLOCK;
            for inst in block.get_instructions() {
                let weight = weight(inst);
                passed += weight;
                whole += weight;
                // Nothing stands between the `phi`s of a block.
                if passed < DISTANCE || inst.get_opcode() == InstructionOpcode::Phi {
                    continue;
                }
                passed = 0;
                let (function, name) = *label.get_or_insert_with(|| {
                    let found = Intrinsic::find("llvm.codeview.annotation");
                    let function = found.and_then(|i| i.get_declaration(module, &[]));
                    let name = context.metadata_string("part");
                    let name = context.metadata_node(&[name.into()]);
                    (function.expect("an intrinsic of LLVM"), name)
                });
                builder.position_before(&inst);
                let args = [BasicMetadataValueEnum::MetadataValue(name)];
                builder.build_call(function, &args, "").expect(BUILT);
            }
        }
        if whole > most_improved {
            for name in ["noinline", "optnone"] {
                let kind = Attribute::get_named_enum_kind_id(name);
                let attribute = context.create_enum_attribute(kind, 0);
                function.add_attribute(AttributeLoc::Function, attribute);
            }
        }
    }
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
