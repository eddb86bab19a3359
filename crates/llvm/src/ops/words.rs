//! Instructions on a scalar or on each lane of a vector alike.
//!
//! Every operand of one operation has the same shape: one scalar, or vectors of one length.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, VectorValue};
use inkwell::{FloatPredicate, IntPredicate};
use invar_ir::Scalar;

use crate::emit::{BUILT, Emit, vector_of};

/// A scalar, or a vector of them.
pub(super) type Any<'c> = BasicValueEnum<'c>;

/// Builds instructions on values of one shape.
#[derive(Clone, Copy)]
pub(super) struct Words<'e, 'c> {
    pub e: &'e Emit<'c>,
    lanes: Option<u32>,
}

impl<'e, 'c> Words<'e, 'c> {
    /// For values of the shape of this one.
    pub fn like(e: &'e Emit<'c>, value: Any<'c>) -> Words<'e, 'c> {
        let lanes = match value {
            BasicValueEnum::VectorValue(v) => Some(v.get_type().get_size()),
            BasicValueEnum::IntValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::ScalableVectorValue(_) => None,
        };
        Words { e, lanes }
    }

    /// How many lanes; none for one scalar.
    pub fn lanes(self) -> Option<u32> {
        self.lanes
    }

    fn shaped(self, element: BasicTypeEnum<'c>) -> BasicTypeEnum<'c> {
        self.lanes
            .map_or(element, |lanes| vector_of(element, lanes).into())
    }

    /// The type of a scalar in this shape.
    pub fn ty(self, scalar: Scalar) -> BasicTypeEnum<'c> {
        self.shaped(self.e.scalar_type(scalar))
    }

    /// Integers of that many bits in this shape.
    pub fn int(self, bits: u32) -> BasicTypeEnum<'c> {
        self.shaped(self.e.int_type(bits).into())
    }

    fn everywhere(self, value: Any<'c>) -> Any<'c> {
        match (self.lanes, value) {
            (Some(lanes), BasicValueEnum::IntValue(v)) => {
                VectorType::const_vector(&vec![v; lanes as usize]).into()
            }
            (Some(lanes), BasicValueEnum::FloatValue(v)) => {
                VectorType::const_vector(&vec![v; lanes as usize]).into()
            }
            (_, value) => value,
        }
    }

    /// An integer of that many bits, at most 64 of them given.
    pub fn integer(self, bits: u32, value: u64) -> Any<'c> {
        self.everywhere(self.e.int_type(bits).const_int(value, false).into())
    }

    /// A float of f32 or f64, from a number that the type has.
    pub fn float(self, scalar: Scalar, value: f64) -> Any<'c> {
        self.everywhere(
            self.e
                .scalar_type(scalar)
                .into_float_type()
                .const_float(value)
                .into(),
        )
    }

    /// An instruction of two operands.
    pub fn binary(self, opcode: InstructionOpcode, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.e.builder.build_binop(opcode, a, b, "").expect(BUILT)
    }

    /// A conversion.
    pub fn convert(self, opcode: InstructionOpcode, x: Any<'c>, to: BasicTypeEnum<'c>) -> Any<'c> {
        self.e.builder.build_cast(opcode, x, to, "").expect(BUILT)
    }

    /// The same bits as another type of the same width.
    pub fn bits_as(self, x: Any<'c>, to: BasicTypeEnum<'c>) -> Any<'c> {
        self.convert(InstructionOpcode::BitCast, x, to)
    }

    pub fn add(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::Add, a, b)
    }

    pub fn sub(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::Sub, a, b)
    }

    pub fn mul(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::Mul, a, b)
    }

    pub fn and(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::And, a, b)
    }

    pub fn or(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::Or, a, b)
    }

    pub fn xor(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::Xor, a, b)
    }

    /// Every bit the other way, of integers of that many bits.
    pub fn not(self, bits: u32, x: Any<'c>) -> Any<'c> {
        self.xor(x, self.integer(bits, u64::MAX >> (64 - bits)))
    }

    /// `x << count`, of integers of that many bits; the count is less.
    pub fn up(self, bits: u32, x: Any<'c>, count: u32) -> Any<'c> {
        let count = self.integer(bits, count.into());
        self.binary(InstructionOpcode::Shl, x, count)
    }

    /// `x >> count`, zeros coming in, of integers of that many bits; the count is less.
    pub fn down(self, bits: u32, x: Any<'c>, count: u32) -> Any<'c> {
        let count = self.integer(bits, count.into());
        self.binary(InstructionOpcode::LShr, x, count)
    }

    pub fn fadd(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::FAdd, a, b)
    }

    pub fn fsub(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::FSub, a, b)
    }

    pub fn fmul(self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.binary(InstructionOpcode::FMul, a, b)
    }

    /// To integers of that many bits: the low ones, or extended by zeros.
    pub fn resize(self, from: u32, to: u32, x: Any<'c>) -> Any<'c> {
        match from.cmp(&to) {
            std::cmp::Ordering::Less => self.convert(InstructionOpcode::ZExt, x, self.int(to)),
            std::cmp::Ordering::Equal => x,
            std::cmp::Ordering::Greater => self.convert(InstructionOpcode::Trunc, x, self.int(to)),
        }
    }

    pub fn compare(self, predicate: IntPredicate, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        let builder = &self.e.builder;
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => builder
                .build_int_compare(predicate, a, b, "")
                .expect(BUILT)
                .into(),
            (a, b) => builder
                .build_int_compare(predicate, a.into_int_value(), b.into_int_value(), "")
                .expect(BUILT)
                .into(),
        }
    }

    pub fn compare_floats(self, predicate: FloatPredicate, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        let builder = &self.e.builder;
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => builder
                .build_float_compare(predicate, a, b, "")
                .expect(BUILT)
                .into(),
            (a, b) => builder
                .build_float_compare(predicate, a.into_float_value(), b.into_float_value(), "")
                .expect(BUILT)
                .into(),
        }
    }

    /// `condition ? yes : no`, lane by lane.
    pub fn choose(self, condition: Any<'c>, yes: Any<'c>, no: Any<'c>) -> Any<'c> {
        match condition {
            BasicValueEnum::VectorValue(c) => self.e.builder.build_select(c, yes, no, ""),
            one => {
                self.e
                    .builder
                    .build_select::<_, IntValue<'c>>(one.into_int_value(), yes, no, "")
            }
        }
        .expect(BUILT)
    }

    /// An intrinsic overloaded on the type of its first operand.
    pub fn call(self, name: &str, args: &[Any<'c>]) -> Any<'c> {
        self.call_for(name, &[args[0].get_type()], args)
    }

    /// An intrinsic overloaded on these types.
    pub fn call_for(
        self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        args: &[Any<'c>],
    ) -> Any<'c> {
        self.e
            .intrinsic(name, overloads, args)
            .expect("an intrinsic with a result")
    }

    /// A `i1` flag that an intrinsic takes beside values.
    pub fn flag(self, set: bool) -> Any<'c> {
        let ty = self.e.context.bool_type();
        ty.const_int(set.into(), false).into()
    }
}

/// The value, if it is known and the same in every lane.
pub(super) fn known<'c>(value: Any<'c>) -> Option<Any<'c>> {
    match value {
        BasicValueEnum::IntValue(v) => v.is_constant_int().then_some(value),
        BasicValueEnum::FloatValue(v) => v.is_const().then_some(value),
        BasicValueEnum::VectorValue(v) => known_lanes(v),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => None,
    }
}

fn known_lanes(vector: VectorValue<'_>) -> Option<Any<'_>> {
    if !vector.is_const() {
        return None;
    }
    if vector == vector.get_type().const_zero() {
        return Some(match vector.get_type().get_element_type() {
            BasicTypeEnum::IntType(t) => t.const_zero().into(),
            BasicTypeEnum::FloatType(t) => t.const_zero().into(),
            BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::PointerType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_) => return None,
        });
    }
    if !vector.is_constant_data_vector() {
        return None;
    }
    let first = vector.get_element_as_constant(0);
    (1..vector.get_type().get_size())
        .all(|lane| vector.get_element_as_constant(lane) == first)
        .then_some(first)
}

/// An integer that is known and the same in every lane, extended by zeros.
pub(super) fn known_integer(value: Any<'_>) -> Option<u64> {
    match known(value)? {
        BasicValueEnum::IntValue(v) => v.get_zero_extended_constant(),
        BasicValueEnum::FloatValue(_)
        | BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => None,
    }
}

/// A float that is known and the same in every lane, as f64.
pub(super) fn known_float(value: Any<'_>) -> Option<f64> {
    match known(value)? {
        BasicValueEnum::FloatValue(v) => v.get_constant().map(|(number, _)| number),
        BasicValueEnum::IntValue(_)
        | BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => None,
    }
}
