//! Indices of gathers that are shifted so far that LLVM takes the shift into the scale of the address.
//!
//! For x86 LLVM writes `base + (i << 63) * 4` as `base + i * s` where the scale `s` is at most 8, and looks at
//! `4 << 63` in 64 bits, where it is 0. Lanes that are in bounds have indices of fewer than [`BITS`] bits, so the
//! others go before LLVM sees the shift: nothing changes for a lane whose mask is on.
//!
//! Invariants
//! - Run behind LLVM's passes on its own form, which would undo it.
//! - Pointers that come of a bounded index are only used by lanes that are in bounds, as those of the index were.
//!
//! Deliberately absent: shifts by what only runs tell, which LLVM leaves alone.

use inkwell::module::Module;
use inkwell::types::VectorType;
use inkwell::values::{
    BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, VectorValue,
};

use crate::emit::BUILT;

/// Bits of an index that lies in memory: a shift by as many or more times the bytes of an element may be no number
/// of 64 bits.
const BITS: u32 = 60;

/// How deep in an index a shift is looked for.
const DEPTH: u32 = 6;

/// Bounds the indices of gathers and scatters that may be shifted too far.
pub(crate) fn bound(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    let blocks = module
        .get_functions()
        .flat_map(FunctionValue::get_basic_block_iter);
    for place in blocks.flat_map(|block| block.get_instructions()) {
        let is_place = place.get_opcode() == InstructionOpcode::GetElementPtr;
        let index = is_place.then(|| operand(place, 1)).flatten();
        let Some(index) = index.filter(|index| is_shifted_far(*index, DEPTH)) else {
            continue;
        };
        let lanes = index.get_type().get_size() as usize;
        let word = index.get_type().get_element_type().into_int_type();
        let within = VectorType::const_vector(&vec![word.const_int((1 << BITS) - 1, false); lanes]);
        builder.position_before(&place);
        let bounded = builder.build_and(index, within, "").expect(BUILT);
        place.set_operand(1, bounded);
    }
}

/// An operand that is a vector of 64-bit numbers.
fn operand<'c>(inst: InstructionValue<'c>, number: u32) -> Option<VectorValue<'c>> {
    let value = inst.get_operand(number)?.value()?;
    let BasicValueEnum::VectorValue(vector) = value else {
        return None;
    };
    let element = vector.get_type().get_element_type();
    (element.is_int_type() && element.into_int_type().get_bit_width() == 64).then_some(vector)
}

/// Whether a number may be a sum or a product with a shift by [`BITS`] or more.
fn is_shifted_far(value: VectorValue<'_>, depth: u32) -> bool {
    let Some(inst) = value.as_instruction().filter(|_| depth > 0) else {
        return false;
    };
    let amount = operand(inst, 1);
    match inst.get_opcode() {
        InstructionOpcode::Shl => {
            amount.is_some_and(|by| any(by, |by| by >= u64::from(BITS)))
                || operand(inst, 0).is_some_and(|left| is_shifted_far(left, depth - 1))
        }
        InstructionOpcode::Mul => [0, 1]
            .into_iter()
            .filter_map(|side| operand(inst, side))
            .any(|side| {
                any(side, |by| by.trailing_zeros() >= BITS) || is_shifted_far(side, depth - 1)
            }),
        InstructionOpcode::Add | InstructionOpcode::Sub | InstructionOpcode::Or => [0, 1]
            .into_iter()
            .filter_map(|side| operand(inst, side))
            .any(|side| is_shifted_far(side, depth - 1)),
        _other => false,
    }
}

/// Whether something holds for a lane of a constant; of one whose number is not known it does not.
fn any(value: VectorValue<'_>, holds: impl Fn(u64) -> bool) -> bool {
    let lanes = value.get_type().get_size();
    value.is_const()
        && (0..lanes).any(|lane| {
            let lane = value
                .get_type()
                .get_context()
                .i32_type()
                .const_int(lane.into(), false);
            let BasicValueEnum::IntValue(number) = value.const_extract_element(lane) else {
                return false;
            };
            number.get_zero_extended_constant().is_some_and(&holds)
        })
}
