//! From a verified kernel to an object file.

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module as LlvmModule;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use invar_codegen::passes::textures::NOT_WRITTEN;
use invar_codegen::pipeline::{accesses_of_copies, for_cpu};
use invar_ir::once::Making;
use invar_ir::room::{COMPILER_BYTES, with_room};
use invar_ir::{
    Diagnostic, Diagnostics, InstKind, Kernel, Module, Op, ParamKind, Rule, Span, Verified, verify,
};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};

use crate::analysis::Analysis;
use crate::cold_paths::{most_improved, outline, split_module};
use crate::defined::Calls;
use crate::emit::Emit;
use crate::far_indices;
use crate::function::FunctionLowering;
use crate::library;
use crate::long::{ease, passes};
use crate::object::{KernelInfo, Object};
use crate::options::{CompileOptions, SIMDGROUP_SIZE};
use crate::program::ENTRY_NAME;
use crate::tables::Tables;
use crate::target::{Processor, Target};
use crate::tuning::MOST_INLINE_SCATTERS;

/// What a kernel may have at most, functions, copies, prints and textures written out: compiling as many may take a minute.
const MOST_INSTRUCTIONS: usize = 65_536;

/// What [`emit`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// LLVM's intermediate form, after its passes.
    Llvm,
    /// Assembly.
    Asm,
}

/// Compiles a kernel of a module.
///
/// # Errors
/// What this device does not offer, and function constants without a value.
pub fn compile(
    module: &Verified,
    kernel: &str,
    options: &CompileOptions,
) -> Result<Object, Diagnostics> {
    let ((bytes, cold_paths), info) = with_room(COMPILER_BYTES, || {
        generate(module, kernel, options, |compiled| {
            let cold_paths = compiled
                .has_cold_paths
                .then(|| split_module(&compiled.module, compiled.most_improved));
            Ok((compiled.object()?, cold_paths))
        })
    })?;
    Ok(Object {
        bytes,
        cold_paths,
        info,
    })
}

/// Compiles [`Object::cold_paths`] for the target of its object, to what [`crate::Program::cold_paths`] takes: how much
/// of the stack they take, in bytes (8 bytes, little-endian), and an object file.
///
/// # Errors
/// If these are not cold paths, or LLVM fails.
pub fn compile_cold_paths(cold_paths: &[u8], target: Target) -> Result<Vec<u8>, String> {
    with_room(COMPILER_BYTES, || cold_paths_compiled(cold_paths, target))
}

fn cold_paths_compiled(cold_paths: &[u8], target: Target) -> Result<Vec<u8>, String> {
    let _making = Making::begin();
    library::load()?;
    let machine = target.processor().machine(OptimizationLevel::Default)?;
    let diagnostics = LlvmDiagnostics::default();
    let context = diagnostics.context();
    let buffer = MemoryBuffer::create_from_memory_range_copy(cold_paths, "cold paths");
    let module = LlvmModule::parse_bitcode_from_buffer(&buffer, &context);
    let module = module.map_err(|e| e.to_string())?;
    let compiled = CompiledModule {
        target,
        machine,
        most_improved: most_improved(&module).ok_or("these are not cold paths")?,
        module,
        has_cold_paths: false,
    };
    let object = compiled.object().map_err(|e| e.to_string());
    let object = object.and_then(|object| diagnostics.failed().map_or(Ok(object), Err));
    let object = object.map_err(|e| format!("LLVM failed: {e}"))?;
    Ok([&diagnostics.stack_bytes().to_le_bytes(), &object[..]].concat())
}

/// What LLVM reports while it makes code.
#[derive(Default)]
struct LlvmDiagnostics {
    /// Of the frame of each function, in bytes.
    frames: RefCell<Vec<u64>>,
    error: RefCell<Option<String>>,
}

/// LLVM tells of the frame of a function that has this attribute where it is larger than the attribute's value.
const TELLS_FRAME: &str = "warn-stack-size";

impl LlvmDiagnostics {
    /// A context that tells. It must not outlive this.
    fn context(&self) -> Context {
        let context = Context::create();
        let this = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the caller drops the context first.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(receive), this) };
        context
    }

    fn receive(&self, severity: LLVMDiagnosticSeverity, text: &str) {
        if severity == LLVMDiagnosticSeverity::LLVMDSError {
            self.error.borrow_mut().get_or_insert(text.to_string());
        } else if let Some(bytes) = frame_bytes(text) {
            self.frames.borrow_mut().push(bytes);
        }
    }

    fn failed(&self) -> Option<String> {
        self.error.borrow().clone()
    }

    /// The most that the code takes of the stack: one function calls another, which may call a function of floats.
    fn stack_bytes(&self) -> u64 {
        let mut frames = self.frames.borrow().clone();
        frames.sort_unstable();
        frames.iter().rev().take(3).sum()
    }
}

/// "stack frame size (N) exceeds limit (0) in function 'f'"
fn frame_bytes(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("stack frame size (")?;
    rest.split_once(')')?.0.parse().ok()
}

/// LLVM calls it with a diagnostic, which goes to [`LlvmDiagnostics`].
extern "C" fn receive(info: LLVMDiagnosticInfoRef, diagnostics: *mut c_void) {
    // SAFETY: LLVM hands on a diagnostic and the pointer that `LlvmDiagnostics::context` gave it.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(info);
        let text = LLVMGetDiagInfoDescription(info);
        let diagnostics = &*diagnostics.cast::<LlvmDiagnostics>();
        diagnostics.receive(severity, &CStr::from_ptr(text).to_string_lossy());
        LLVMDisposeMessage(text);
    }
}

/// Compiles a kernel to text that can be read.
///
/// # Errors
/// As [`compile`].
pub fn emit(
    module: &Verified,
    kernel: &str,
    options: &CompileOptions,
    text: Text,
) -> Result<String, Diagnostics> {
    let (text, _) = with_room(COMPILER_BYTES, || {
        generate(module, kernel, options, |compiled| {
            Ok(match text {
                Text::Llvm => {
                    compiled.run_passes()?;
                    compiled.module.print_to_string().to_string()
                }
                Text::Asm => {
                    let buffer = compiled.written(FileType::Assembly)?;
                    String::from_utf8_lossy(buffer.as_slice())
                        .trim_end_matches('\0')
                        .to_string()
                }
            })
        })
    })?;
    Ok(text)
}

type LlvmError = inkwell::support::LLVMString;

/// A module before LLVM's passes, and what makes machine code of it.
struct CompiledModule<'c> {
    target: Target,
    machine: TargetMachine,
    module: LlvmModule<'c>,
    /// It calls cold paths, which are in it.
    has_cold_paths: bool,
    /// [`CompileOptions::most_improved`].
    most_improved: u32,
}

impl CompiledModule<'_> {
    /// Runs LLVM's passes; whether the module is too long for what improves machine code.
    fn run_passes(&self) -> Result<bool, LlvmError> {
        let options = PassBuilderOptions::create();
        let passes = passes(&self.module, self.most_improved);
        self.module.run_passes(passes, &self.machine, options)?;
        far_indices::bound(&self.module);
        Ok(ease(&self.module, self.most_improved))
    }

    /// Runs LLVM's passes, and writes machine code.
    fn written(&self, form: FileType) -> Result<MemoryBuffer<'static>, LlvmError> {
        let short;
        let machine = if self.run_passes()? {
            short = self.target.processor().machine(OptimizationLevel::None);
            short.as_ref().expect("another was made before")
        } else {
            &self.machine
        };
        machine.write_to_memory_buffer(&self.module, form)
    }

    fn object(&self) -> Result<Vec<u8>, LlvmError> {
        for function in self.module.get_functions() {
            let context = self.module.get_context();
            let tells = context.create_string_attribute(TELLS_FRAME, "0");
            function.add_attribute(AttributeLoc::Function, tells);
        }
        Ok(self.written(FileType::Object)?.as_slice().to_vec())
    }
}

fn refuse(span: Span, message: String) -> Diagnostics {
    let error = Diagnostic::error(Rule::UnsupportedFeature, span, message);
    Diagnostics(vec![error])
}

fn generate<T>(
    module: &Verified,
    kernel: &str,
    options: &CompileOptions,
    write: impl FnOnce(&CompiledModule<'_>) -> Result<T, LlvmError>,
) -> Result<(T, KernelInfo), Diagnostics> {
    let _making = Making::begin();
    library::load().map_err(|e| refuse(Span::NONE, e))?;
    // Where nothing is checked, what was proved is of the kernel for threadgroups of any size.
    let size = options.threadgroup_size.filter(|_| options.checks);
    let module = prepare(module, kernel, size)?;
    let kernel = &module.kernels[0];
    let simdgroup_size = kernel.simdgroup_size.unwrap_or(SIMDGROUP_SIZE);
    if kernel.tells_simdgroups() && simdgroup_size != SIMDGROUP_SIZE {
        return Err(refuse(
            kernel.span,
            format!(
                "kernel `{}` requires simdgroups of {simdgroup_size}, and those of the CPU device \
                 have {SIMDGROUP_SIZE}",
                kernel.name
            ),
        ));
    }
    let processor = options.target.processor();
    let machine = processor.machine(OptimizationLevel::Default);
    let machine = machine.map_err(|e| refuse(kernel.span, e))?;
    let diagnostics = LlvmDiagnostics::default();
    let context = diagnostics.context();
    let llvm = context.create_module("kernel");
    llvm.set_triple(&machine.get_triple());
    llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    let pointer = context.ptr_type(inkwell::AddressSpace::default());
    let word = context.i64_type();
    let parameters = [pointer.into(), word.into(), word.into(), pointer.into()];
    let ty = context.i32_type().fn_type(&parameters, false);
    let function = llvm.add_function(&ENTRY_NAME.to_string_lossy(), ty, None);
    attributes(&context, function, &processor);
    let target = processor.capabilities();
    let emit = Emit {
        context: &context,
        builder: context.create_builder(),
        module: llvm,
        function: Cell::new(function),
        tables: Tables::default(),
        target,
        inline_scatters: Cell::new(MOST_INLINE_SCATTERS.min(options.most_improved)),
    };
    let analysis = Analysis::new(&module, kernel, options, &target);
    let (llvm, has_cold_paths) = build(&analysis, options, emit)?;
    if cfg!(debug_assertions)
        && let Err(error) = llvm.verify()
    {
        panic!(
            "the code of `{}` is not well formed: {error}\n{}",
            kernel.name,
            llvm.print_to_string()
        );
    }
    let compiled = CompiledModule {
        target: options.target,
        machine,
        module: llvm,
        has_cold_paths,
        most_improved: options.most_improved,
    };
    let failed = |e: String| refuse(kernel.span, format!("LLVM failed: {e}"));
    let written = write(&compiled).map_err(|e| failed(e.to_string()))?;
    if let Some(error) = diagnostics.failed() {
        return Err(failed(error));
    }
    let info = KernelInfo {
        target: options.target,
        threadgroup_size: analysis.threadgroup_size,
        simdgroup_size: analysis.simdgroup_size,
        threadgroup_bytes: analysis.scratch.fixed_bytes - analysis.scratch.apart_bytes,
        stack_bytes: diagnostics.stack_bytes(),
        scratch: analysis.scratch,
        zones: analysis.zones,
    };
    Ok((written, info))
}

/// LLVM's passes. What they cost is a quarter of a compilation, so there are few: cells become registers, what
/// is the same in a loop leaves it, and what then turns out alike, constant or without use goes. Combining and leaving
/// loops a second time cost a twentieth of a compilation, and no kernel measured gained by it.
pub(crate) const PASSES: &str = "globaldce,function(\
    sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,\
    loop-mssa(loop-rotate,licm),\
    early-cse<memssa>,simplifycfg,adce)";

/// The one kernel, with what it is written by.
/// The kernel as code is made of it, alone in its module: its accesses stand where code makes them, but for loads that
/// move to the front of a segment, which are always checked.
///
/// # Errors
/// As [`compile`], of what no code can be made of.
pub fn lowered(module: &Verified, kernel: &str) -> Result<Verified, Diagnostics> {
    // Where it was written nobody asks.
    verify(prepare(module, kernel, None)?.without_spans())
}

/// `size` is that of threadgroups, where the dispatch says it and not the kernel.
fn prepare(module: &Verified, kernel: &str, size: Option<[u32; 3]>) -> Result<Module, Diagnostics> {
    let Some(found) = module.kernel(kernel) else {
        return Err(Diagnostics(vec![Diagnostic::error(
            Rule::UndefinedName,
            Span::NONE,
            format!("there is no kernel `@{kernel}`"),
        )]));
    };
    let is_texture = |kind: &ParamKind| matches!(kind, ParamKind::Texture(_) | ParamKind::Sampler);
    if let Some(param) = found.params.iter().find(|p| is_texture(&p.kind)) {
        let message = format!("parameter `%{}`: {NOT_WRITTEN}", param.name);
        let error = Diagnostic::error(Rule::UnsupportedFeature, param.span, message);
        return Err(Diagnostics(vec![error]));
    }
    let mut own = found.clone();
    own.threadgroup_size = own.threadgroup_size.or(size);
    let one = Module {
        kernels: vec![own],
        sources: Vec::new(),
        calls: Vec::new(),
        structs: module.structs.clone(),
        function_constants: module.function_constants.clone(),
        constants: module.constants.clone(),
    };
    let check = |has: &str, count: usize| {
        if count <= MOST_INSTRUCTIONS {
            return Ok(());
        }
        let message = format!(
            "kernel `{}` has {has}{count} instructions, its functions, copies, prints and textures written out; the \
             limit of the CPU device is {MOST_INSTRUCTIONS}",
            found.name
        );
        let error = Diagnostic::error(Rule::LimitExceeded, found.span, message);
        let error = error.help("divide it into several kernels");
        Err(Diagnostics(vec![error]))
    };
    check("more than ", accesses_of_copies(&one))?;
    let calls = Calls::of(&one);
    let optimised = for_cpu(one, SIMDGROUP_SIZE, &|op, types| calls.keep(op, types))?;
    check("", instructions(&optimised.kernels[0]))?;
    Ok(optimised)
}

/// Instructions of a kernel that code is made of: what only takes components apart, or puts them together, and
/// constants are none.
fn instructions(kernel: &Kernel) -> usize {
    let mut count = 0;
    kernel.for_each_inst(&mut |inst| {
        let is_none = match &inst.kind {
            InstKind::Const(_) => true,
            InstKind::Op { op, .. } => matches!(op, Op::Construct | Op::Swizzle | Op::AsType),
            _others => false,
        };
        count += usize::from(!is_none);
    });
    count
}

fn attributes(
    context: &Context,
    function: inkwell::values::FunctionValue<'_>,
    processor: &Processor,
) {
    let text = |name: &str, value: &str| {
        let attribute = context.create_string_attribute(name, value);
        function.add_attribute(AttributeLoc::Function, attribute);
    };
    // Without them, a fused multiply-add is a call of the library's.
    text("target-cpu", &processor.cpu);
    text("target-features", &processor.features);
    let bits = processor.capabilities().vector_bits.to_string();
    text("prefer-vector-width", &bits);
    text("min-legal-vector-width", &bits);
    let kind = Attribute::get_named_enum_kind_id("nounwind");
    let attribute = context.create_enum_attribute(kind, 0);
    function.add_attribute(AttributeLoc::Function, attribute);
}

fn build<'c>(
    analysis: &Analysis<'_>,
    options: &CompileOptions,
    emit: Emit<'c>,
) -> Result<(LlvmModule<'c>, bool), Diagnostics> {
    let mut lowering = FunctionLowering::new(emit, analysis);
    lowering.make();
    if !lowering.refused.is_empty() {
        return Err(Diagnostics(lowering.refused));
    }
    let launch = lowering.e.function.get().get_nth_param(0);
    let launch = launch.expect("four parameters").into_pointer_value();
    let has_cold_paths = outline(
        &lowering.e,
        &lowering.cold_paths,
        options.least_apart,
        launch,
        lowering.blocks.stopped,
    );
    Ok((lowering.e.module, has_cold_paths))
}
