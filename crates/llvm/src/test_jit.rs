//! For the tests of this crate: functions built one by one, compiled together and called on columns
//! of scalars. A scalar lies in memory as the language lays it out (L3).

use std::cell::Cell;

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::types::BasicType;
use inkwell::values::{BasicValue, BasicValueEnum, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use invar_ir::Scalar;

use crate::emit::{BUILT, Emit, vector_of};
use crate::tables::Tables;
use crate::target::Features;

/// What tests compile for.
pub(crate) struct Processor {
    cpu: String,
    flags: String,
    features: Features,
}

/// A context of LLVM, which is loaded by now.
pub(crate) fn context() -> Context {
    crate::library::load().expect("LLVM's library");
    Context::create()
}

/// The processor that this runs on.
pub(crate) fn native() -> Processor {
    crate::library::load().expect("LLVM's library");
    let flags = TargetMachine::get_host_cpu_features().to_string();
    let has = |name: &str| flags.split(',').any(|f| f == name);
    let is_x86 = cfg!(target_arch = "x86_64");
    let has_avx512 = has("+avx512f") && has("+avx512bw") && has("+avx512dq") && has("+avx512vl");
    Processor {
        features: Features {
            vector_bits: if has_avx512 { 512 } else { 128 },
            has_fma: !is_x86 || has("+fma"),
            has_f16_conversions: !is_x86 || has("+f16c"),
            has_f16: false,
            has_bf16: false,
            has_avx512,
            has_avx2: has("+avx2"),
            is_x86,
            forwards_halves: false,
        },
        cpu: TargetMachine::get_host_cpu_name().to_string(),
        flags,
    }
}

/// Any x86-64.
pub(crate) fn baseline() -> Processor {
    Processor {
        cpu: "x86-64".to_string(),
        flags: String::new(),
        features: Features {
            vector_bits: 128,
            has_fma: false,
            has_f16_conversions: false,
            has_f16: false,
            has_bf16: false,
            has_avx512: false,
            has_avx2: false,
            is_x86: true,
            forwards_halves: false,
        },
    }
}

/// Tests on an x86-64 with AVX2 and no more, if this processor can run what is compiled for it.
#[allow(clippy::print_stderr, reason = "a test says that it was skipped")]
pub(crate) fn with_avx2(test: impl FnOnce(&Processor)) {
    let native = native().features;
    if !(native.has_avx2 && native.has_fma && native.has_f16_conversions) {
        eprintln!("skipped: this processor has no AVX2");
        return;
    }
    test(&Processor {
        cpu: "x86-64-v3".to_string(),
        flags: String::new(),
        features: Features {
            vector_bits: 256,
            has_fma: true,
            has_f16_conversions: true,
            has_avx2: true,
            ..baseline().features
        },
    });
}

/// Functions under construction.
pub(crate) struct Jit<'c> {
    emit: Option<Emit<'c>>,
    processor: &'c Processor,
}

impl<'c> Jit<'c> {
    pub fn new(context: &'c Context, processor: &'c Processor) -> Jit<'c> {
        let module = context.create_module("test");
        let unused = context.void_type().fn_type(&[], false);
        let function = module.add_function("unused", unused, None);
        Jit {
            emit: Some(Emit {
                context,
                module,
                builder: context.create_builder(),
                function: Cell::new(function),
                tables: Tables::default(),
                target: processor.features,
                inline_scatters: Cell::new(u32::MAX),
            }),
            processor,
        }
    }

    /// Adds a function of that many pointers.
    pub fn function(
        &mut self,
        name: &str,
        pointers: usize,
        body: impl FnOnce(&Emit<'c>, &[PointerValue<'c>]),
    ) {
        let Some(e) = self.emit.as_mut() else {
            unreachable!("it is there until the end")
        };
        let pointer = e.context.ptr_type(AddressSpace::default());
        let ty = e.context.void_type().fn_type(&[pointer.into()], false);
        let function = e.module.add_function(name, ty, None);
        e.function.set(function);
        for (key, value) in [
            ("target-cpu", &self.processor.cpu),
            ("target-features", &self.processor.flags),
        ] {
            let attribute = e.context.create_string_attribute(key, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        let entry = e.context.append_basic_block(function, "entry");
        e.builder.position_at_end(entry);
        let list = function.get_first_param().expect("one parameter");
        let list = list.into_pointer_value();
        let pointers: Vec<PointerValue<'c>> = (0..pointers as u64)
            .map(|k| {
                let at = e.byte_offset(list, e.i64(8 * k));
                let loaded = e.builder.build_load(pointer, at, "").expect(BUILT);
                loaded.into_pointer_value()
            })
            .collect();
        body(e, &pointers);
        e.builder.build_return(None).expect(BUILT);
    }

    /// The bits of 1 in a float type.
    pub fn one(scalar: Scalar) -> u64 {
        match scalar {
            Scalar::F16 => 0x3c00,
            Scalar::BF16 => 0x3f80,
            Scalar::F32 => 1f32.to_bits().into(),
            _ => 1f64.to_bits(),
        }
    }

    /// Loads a scalar, or a vector of them.
    pub fn load(
        e: &Emit<'c>,
        pointer: PointerValue<'c>,
        scalar: Scalar,
        lanes: Option<u32>,
    ) -> BasicValueEnum<'c> {
        let ty = match scalar {
            Scalar::Bool => e.context.i8_type().as_basic_type_enum(),
            _ => e.scalar_type(scalar),
        };
        let ty = lanes.map_or(ty, |n| vector_of(ty, n).as_basic_type_enum());
        let value = e.builder.build_load(ty, pointer, "").expect(BUILT);
        let instruction = value.as_instruction_value().expect("a load");
        instruction
            .set_alignment(scalar.size_bytes() as u32)
            .expect("a power of two");
        match (scalar, value) {
            (Scalar::Bool, BasicValueEnum::VectorValue(v)) => {
                let zero = v.get_type().const_zero();
                let compared = e.builder.build_int_compare(IntPredicate::NE, v, zero, "");
                compared.expect(BUILT).into()
            }
            (Scalar::Bool, v) => {
                let v = v.into_int_value();
                let zero = v.get_type().const_zero();
                let compared = e.builder.build_int_compare(IntPredicate::NE, v, zero, "");
                compared.expect(BUILT).into()
            }
            // As it comes out of other instructions: not one with the load, as bits.
            (_, v) if scalar.is_float() && scalar != Scalar::BF16 => {
                let fence = e.intrinsic("llvm.arithmetic.fence", &[v.get_type()], &[v]);
                fence.expect("an intrinsic with a result")
            }
            (_, v) => v,
        }
    }

    /// Stores a scalar, or a vector of them.
    pub fn store(
        e: &Emit<'c>,
        pointer: PointerValue<'c>,
        scalar: Scalar,
        value: BasicValueEnum<'c>,
    ) {
        let byte = e.context.i8_type();
        let value = match (scalar, value) {
            (Scalar::Bool, BasicValueEnum::VectorValue(v)) => {
                let bytes = byte.vec_type(v.get_type().get_size());
                e.builder
                    .build_int_z_extend(v, bytes, "")
                    .expect(BUILT)
                    .into()
            }
            (Scalar::Bool, v) => {
                let v = v.into_int_value();
                e.builder
                    .build_int_z_extend(v, byte, "")
                    .expect(BUILT)
                    .into()
            }
            (_, v) => v,
        };
        let store = e.builder.build_store(pointer, value).expect(BUILT);
        store
            .set_alignment(scalar.size_bytes() as u32)
            .expect("a power of two");
    }

    /// What was built, as LLVM prints it.
    pub fn text(&self) -> String {
        let module = self
            .emit
            .as_ref()
            .map(|e| e.module.print_to_string().to_string());
        module.unwrap_or_default()
    }

    /// Compiles what was built.
    ///
    /// # Panics
    /// If LLVM finds it malformed.
    pub fn finish(mut self) -> Compiled<'c> {
        let Some(e) = self.emit.take() else {
            unreachable!("it is there until the end")
        };
        // SAFETY: nothing calls this declaration.
        unsafe {
            e.module
                .get_function("unused")
                .expect("it was added")
                .delete()
        };
        e.module
            .verify()
            .unwrap_or_else(|message| panic!("{}", message.to_string()));
        crate::Target::Native
            .processor()
            .initialise()
            .expect("code for this processor");
        // As kernels are compiled: passes find patterns in what is emitted.
        let machine = crate::target::Processor {
            triple: TargetMachine::get_default_triple()
                .as_str()
                .to_string_lossy()
                .into_owned(),
            cpu: self.processor.cpu.clone(),
            features: self.processor.flags.clone(),
        };
        let machine = machine
            .machine(OptimizationLevel::Default)
            .expect("a native target");
        let triple = machine.get_triple();
        e.module.set_triple(&triple);
        e.module
            .set_data_layout(&machine.get_target_data().get_data_layout());
        e.module
            .run_passes(
                crate::compile::PASSES,
                &machine,
                PassBuilderOptions::create(),
            )
            .expect("the passes of kernels");
        let engine = e
            .module
            .create_jit_execution_engine(OptimizationLevel::Default)
            .expect("a compiler for this machine");
        Compiled {
            engine,
            _module: e.module,
        }
    }
}

/// Compiled functions.
pub(crate) struct Compiled<'c> {
    engine: ExecutionEngine<'c>,
    _module: inkwell::module::Module<'c>,
}

impl<'c> Compiled<'c> {
    pub fn function(&self, name: &str) -> Function<'_> {
        let address = self
            .engine
            .get_function_address(name)
            .expect("it was added");
        // SAFETY: every function of `Jit::function` has this type, and its code lives as long as
        // the engine, which `Function` borrows.
        let code =
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*const *mut u8)>(address) };
        Function {
            code,
            _engine: std::marker::PhantomData,
        }
    }
}

/// A compiled function.
pub(crate) struct Function<'e> {
    code: unsafe extern "C" fn(*const *mut u8),
    _engine: std::marker::PhantomData<&'e ()>,
}

impl Function<'_> {
    /// Calls it on memory; it may touch no more than its body was built to touch.
    pub fn call(&self, memory: &mut [&mut [u8]]) {
        let pointers: Vec<*mut u8> = memory.iter_mut().map(|m| m.as_mut_ptr()).collect();
        self.call_at(&pointers);
    }

    /// Calls it on memory that others may use at the same time, as far as its body is built for that.
    pub fn call_at(&self, pointers: &[*mut u8]) {
        // SAFETY: the test that built the function hands it memory of the sizes that it accesses.
        unsafe { (self.code)(pointers.as_ptr()) };
    }

    /// Calls it on `lanes` elements of each column after another, and gives the column of results.
    pub fn run(&self, columns: &[&[u64]], types: &[Scalar], to: Scalar, lanes: usize) -> Vec<u64> {
        let length = columns[0].len();
        let mut inputs: Vec<Vec<u8>> = columns
            .iter()
            .zip(types)
            .map(|(c, ty)| bytes(c, *ty))
            .collect();
        let mut output = vec![0; length * to.size_bytes() as usize];
        for start in (0..length).step_by(lanes) {
            let mut memory: Vec<&mut [u8]> = inputs
                .iter_mut()
                .zip(types)
                .map(|(m, ty)| {
                    let size = ty.size_bytes() as usize;
                    &mut m[start * size..(start + lanes) * size]
                })
                .collect();
            let size = to.size_bytes() as usize;
            memory.push(&mut output[start * size..(start + lanes) * size]);
            self.call(&mut memory);
        }
        scalars(&output, to)
    }
}

/// Whether the bits are those of a NaN.
pub(crate) fn is_nan(scalar: Scalar, bits: u64) -> bool {
    let infinity = match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0_0000_0000_0000,
        _ => return false,
    };
    bits & (u64::MAX >> (65 - scalar.bits())) > infinity
}

/// Scalars as they lie in memory.
pub(crate) fn bytes(column: &[u64], scalar: Scalar) -> Vec<u8> {
    let size = scalar.size_bytes() as usize;
    let all = column.iter().flat_map(|x| x.to_le_bytes()[..size].to_vec());
    all.collect()
}

/// What lies in memory as scalars.
pub(crate) fn scalars(memory: &[u8], scalar: Scalar) -> Vec<u64> {
    let size = scalar.size_bytes() as usize;
    let read = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    memory.chunks(size).map(read).collect()
}
