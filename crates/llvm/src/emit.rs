//! Where code is emitted, and the words that every part of the compiler shares.
//!
//! Invariants: no floating-point flag that makes a value poison is ever set; whatever this builds is
//! defined for all operands. Builder calls fail only when they are handed values of wrong types, which
//! is a defect of this crate, so they end in one `expect` here and in the files that use this.

use std::cell::Cell;

use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::{LLVMBuildFreeze, LLVMBuildGEP2};
use inkwell::module::{Linkage, Module};
use inkwell::types::{
    AsTypeRef, BasicType, BasicTypeEnum, FunctionType, IntType, PointerType, VectorType,
};
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, FunctionValue, IntMathValue, IntValue, PointerValue,
    VectorValue,
};
use inkwell::{AddressSpace, IntPredicate};
use invar_ir::Scalar;

use crate::library::release;
use crate::tables::Tables;
use crate::target::Features;

/// Where code is emitted: the LLVM context, module, builder, function and target features.
pub(crate) struct Emit<'c> {
    pub context: &'c Context,
    pub module: Module<'c>,
    pub builder: Builder<'c>,
    pub function: Cell<FunctionValue<'c>>,
    pub tables: Tables<'c>,
    pub target: Features,
    /// How many more vectors under masks may go to anywhere before functions do it.
    pub inline_scatters: Cell<u32>,
}

/// The one message of a builder call that was handed values of the wrong types.
pub(crate) const BUILT: &str = "operands of the right types";

impl<'c> Emit<'c> {
    /// The type of one component in registers: `bool` is `i1`, `f16` is `half`, `bf16` is its bits.
    pub fn scalar_type(&self, scalar: Scalar) -> BasicTypeEnum<'c> {
        match scalar {
            Scalar::F16 => self.context.f16_type().into(),
            // Its bits: LLVM makes calls of what moves `bfloat` vectors about on most processors.
            Scalar::BF16 => self.int_type(16).into(),
            Scalar::F32 => self.context.f32_type().into(),
            Scalar::F64 => self.context.f64_type().into(),
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => self.int_type(scalar.bits()).into(),
        }
    }

    /// The integer type of that many bits.
    pub fn int_type(&self, bits: u32) -> IntType<'c> {
        let bits = std::num::NonZeroU32::new(bits).expect("a width");
        self.context.custom_width_int_type(bits).expect("a width")
    }

    /// Pointers.
    pub fn pointer_type(&self) -> PointerType<'c> {
        self.context.ptr_type(AddressSpace::default())
    }

    /// `<lanes x T>`.
    pub fn vector_type(&self, scalar: Scalar, lanes: u32) -> VectorType<'c> {
        vector_of(self.scalar_type(scalar), lanes)
    }

    /// A constant of 64 bits.
    pub fn i64(&self, value: u64) -> IntValue<'c> {
        self.context.i64_type().const_int(value, false)
    }

    /// A constant of 32 bits.
    pub fn i32(&self, value: u32) -> IntValue<'c> {
        let value = u64::from(value);
        self.context.i32_type().const_int(value, false)
    }

    /// A scalar constant from its bits.
    pub fn constant(&self, scalar: Scalar, bits: u64) -> BasicValueEnum<'c> {
        let integer = self.int_type(scalar.bits()).const_int(bits, false);
        match self.scalar_type(scalar) {
            BasicTypeEnum::FloatType(ty) => self
                .builder
                .build_bit_cast(integer, ty, "")
                .expect("same width"),
            BasicTypeEnum::IntType(_)
            | BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::PointerType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_) => integer.into(),
        }
    }

    /// The same scalar in every lane.
    pub fn splat(&self, value: BasicValueEnum<'c>, lanes: u32) -> VectorValue<'c> {
        let ty = vector_of(value.get_type(), lanes);
        let zero = self.context.i32_type().const_zero();
        let first = self
            .builder
            .build_insert_element(ty.get_poison(), value, zero, "")
            .expect(BUILT);
        let indices = self.context.i32_type().vec_type(lanes).const_zero();
        self.builder
            .build_shuffle_vector(first, ty.get_poison(), indices, "")
            .expect(BUILT)
    }

    /// A new function for the same processor as the one that is being made.
    pub fn function_like(
        &self,
        name: &str,
        ty: FunctionType<'c>,
        linkage: Option<Linkage>,
    ) -> FunctionValue<'c> {
        let function = self.module.add_function(name, ty, linkage);
        for attribute in self.function.get().attributes(AttributeLoc::Function) {
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        function
    }

    /// Calls a function that is only for this module, and is made on its first call, by `body` from its
    /// parameters: for long code that rarely runs, and that many places would repeat.
    pub fn call_aside(
        &self,
        name: &str,
        args: &[BasicValueEnum<'c>],
        body: impl FnOnce(&[BasicValueEnum<'c>]),
    ) {
        self.call_for(name, args, None, |parameters| {
            body(parameters);
            None
        });
    }

    /// As [`Emit::call_aside`], of a function that gives a value of type `result`, if there is one.
    pub fn call_for(
        &self,
        name: &str,
        args: &[BasicValueEnum<'c>],
        result: Option<BasicTypeEnum<'c>>,
        body: impl FnOnce(&[BasicValueEnum<'c>]) -> Option<BasicValueEnum<'c>>,
    ) -> Option<BasicValueEnum<'c>> {
        let function = self.module.get_function(name).unwrap_or_else(|| {
            let types: Vec<_> = args.iter().map(|a| a.get_type().into()).collect();
            let ty = match result {
                Some(result) => result.fn_type(&types, false),
                None => self.context.void_type().fn_type(&types, false),
            };
            let function = self.function_like(name, ty, Some(Linkage::Internal));
            let (outside, here) = (self.function.replace(function), self.here());
            self.go(self.block("entry"));
            let given = body(&function.get_params());
            let given = given.as_ref().map(|value| value as &dyn BasicValue<'c>);
            self.builder.build_return(given).expect(BUILT);
            self.function.set(outside);
            self.go(here);
            function
        });
        let args: Vec<_> = args.iter().map(|a| (*a).into()).collect();
        let call = self.builder.build_call(function, &args, "").expect(BUILT);
        call.try_as_basic_value().basic()
    }

    /// Calls an intrinsic overloaded on these types.
    pub fn intrinsic(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Option<BasicValueEnum<'c>> {
        let function = Intrinsic::find(name)
            .and_then(|i| i.get_declaration(&self.module, overloads))
            .unwrap_or_else(|| panic!("LLVM has no intrinsic {name}"));
        let args: Vec<_> = args.iter().map(|a| (*a).into()).collect();
        let call = self.builder.build_call(function, &args, "").expect(BUILT);
        call.try_as_basic_value().basic()
    }

    /// A vector from memory that is aligned to `align` bytes; lanes that are off get those of `other`.
    pub fn masked_load(
        &self,
        pointer: PointerValue<'c>,
        align: u32,
        mask: VectorValue<'c>,
        other: BasicValueEnum<'c>,
    ) -> BasicValueEnum<'c> {
        let args = [pointer.into(), self.i32(align).into(), mask.into(), other];
        let overloads = [other.get_type(), self.pointer_type().into()];
        let value = self.masked("llvm.masked.load", &overloads, &args, 1);
        value.expect("a value")
    }

    /// Calls a masked intrinsic; LLVM from 22 on takes the alignment otherwise than as an operand.
    pub fn masked(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
        align_at: usize,
    ) -> Option<BasicValueEnum<'c>> {
        if release() >= 22 {
            let mut args = args.to_vec();
            args.remove(align_at);
            return self.intrinsic(name, overloads, &args);
        }
        self.intrinsic(name, overloads, args)
    }

    /// The pointer that many bytes on.
    pub fn byte_offset(&self, pointer: PointerValue<'c>, bytes: IntValue<'c>) -> PointerValue<'c> {
        let i8_type = self.context.i8_type();
        // SAFETY: building the instruction touches no memory; the user of the pointer has checked
        // that it is in bounds, and without `inbounds` a pointer beyond them is not poison.
        unsafe { self.builder.build_gep(i8_type, pointer, &[bytes], "") }.expect(BUILT)
    }
}

/// A vector of `lanes` of an element type.
pub(crate) fn vector_of(element: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match element {
        BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
        BasicTypeEnum::IntType(t) => t.vec_type(lanes),
        BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
        BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_) => unreachable!("a vector of {element}"),
    }
}

/// Short words for what is built all the time; each works on integers and on vectors of them.
impl<'c> Emit<'c> {
    pub fn add<T: IntMathValue<'c>>(&self, a: T, b: T) -> T {
        self.builder.build_int_add(a, b, "").expect(BUILT)
    }

    pub fn sub<T: IntMathValue<'c>>(&self, a: T, b: T) -> T {
        self.builder.build_int_sub(a, b, "").expect(BUILT)
    }

    pub fn mul<T: IntMathValue<'c>>(&self, a: T, b: T) -> T {
        self.builder.build_int_mul(a, b, "").expect(BUILT)
    }

    pub fn and<T: IntMathValue<'c>>(&self, a: T, b: T) -> T {
        self.builder.build_and(a, b, "").expect(BUILT)
    }

    pub fn or<T: IntMathValue<'c>>(&self, a: T, b: T) -> T {
        self.builder.build_or(a, b, "").expect(BUILT)
    }

    pub fn not<T: IntMathValue<'c>>(&self, a: T) -> T {
        self.builder.build_not(a, "").expect(BUILT)
    }

    pub fn divide(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.builder.build_int_unsigned_div(a, b, "").expect(BUILT)
    }

    pub fn remainder(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.builder.build_int_unsigned_rem(a, b, "").expect(BUILT)
    }

    pub fn compare(&self, how: IntPredicate, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.builder.build_int_compare(how, a, b, "").expect(BUILT)
    }

    pub fn compare_lanes(
        &self,
        how: IntPredicate,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> VectorValue<'c> {
        self.builder.build_int_compare(how, a, b, "").expect(BUILT)
    }

    /// The smaller of two unsigned integers.
    pub fn smaller(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let less = self.compare(IntPredicate::ULT, a, b);
        let smaller = self.builder.build_select(less, a, b, "").expect(BUILT);
        smaller.into_int_value()
    }

    /// To 64 bits, by zeros.
    pub fn widen(&self, a: IntValue<'c>) -> IntValue<'c> {
        let ty = self.context.i64_type();
        self.builder.build_int_z_extend(a, ty, "").expect(BUILT)
    }

    pub fn branch(&self, to: BasicBlock<'c>) {
        self.builder.build_unconditional_branch(to).expect(BUILT);
    }

    pub fn branch_if(&self, condition: IntValue<'c>, yes: BasicBlock<'c>, no: BasicBlock<'c>) {
        self.builder
            .build_conditional_branch(condition, yes, no)
            .expect(BUILT);
    }

    /// A new block of the function.
    pub fn block(&self, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(self.function.get(), name)
    }

    /// Where code is put now.
    pub fn here(&self) -> BasicBlock<'c> {
        self.builder
            .get_insert_block()
            .expect("a block to build in")
    }

    /// Whether code can still be put here.
    pub fn is_open(&self) -> bool {
        self.here().get_terminator().is_none()
    }

    pub fn go(&self, to: BasicBlock<'c>) {
        self.builder.position_at_end(to);
    }

    /// A load of a value that is aligned to `align` bytes.
    pub fn load(
        &self,
        ty: BasicTypeEnum<'c>,
        pointer: PointerValue<'c>,
        align: u32,
    ) -> BasicValueEnum<'c> {
        let value = self.builder.build_load(ty, pointer, "").expect(BUILT);
        if let Some(inst) = value.as_instruction_value() {
            inst.set_alignment(align).expect("a power of two");
        }
        value
    }

    /// A store of a value that is aligned to `align` bytes.
    pub fn store(&self, value: BasicValueEnum<'c>, pointer: PointerValue<'c>, align: u32) {
        let inst = self.builder.build_store(pointer, value).expect(BUILT);
        inst.set_alignment(align).expect("a power of two");
    }

    /// One value instead of `undef`, whatever raced (R2, B5).
    pub fn freeze(&self, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        // SAFETY: the builder is positioned, the value is of this function, and what comes back is an
        // instruction of the value's type.
        unsafe {
            BasicValueEnum::new(LLVMBuildFreeze(
                self.builder.as_mut_ptr(),
                value.as_value_ref(),
                c"".as_ptr(),
            ))
        }
    }

    /// The pointers `index * sizeof(element)` bytes on, lane by lane.
    pub fn pointers(
        &self,
        element: BasicTypeEnum<'c>,
        base: BasicValueEnum<'c>,
        index: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let mut indices = [index.as_value_ref()];
        // SAFETY: the builder is positioned and the operands are of this function; a `getelementptr` of
        // a vector gives a vector of pointers. Without `inbounds` no pointer is poison.
        unsafe {
            VectorValue::new(LLVMBuildGEP2(
                self.builder.as_mut_ptr(),
                element.as_type_ref(),
                base.as_value_ref(),
                indices.as_mut_ptr(),
                1,
                c"".as_ptr(),
            ))
        }
    }
}
