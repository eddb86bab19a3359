//! From a verified kernel to an object file.

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
use invar_codegen::analysis::lanes::{Class, Positions, Question, Shape, analyse as classify};
use invar_codegen::pipeline::for_cpu;
use invar_ir::{Diagnostic, Diagnostics, Kernel, Level, Module, Rule, Span, Verified, analyse};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use crate::cost::interleave;
use crate::detours::{move_out, separate};
use crate::emit::Emit;
use crate::function::FunctionLowering;
use crate::kernel::Setup;
use crate::library;
use crate::long::{ease, is_long};
use crate::object::{KernelInfo, Object};
use crate::plan::Plan;
use crate::program::ENTRY_NAME;
use crate::tables::Tables;
use crate::target::{Features, Processor, Target};
use crate::zones::Zones;

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// For which processor.
    pub target: Target,
    /// The only threadgroup size that the kernel will be launched with; `None` reads it from the
    /// launch. A kernel that requires a size is always compiled for it.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Whether accesses are checked. Without, an access out of bounds is undefined: this is for
    /// measuring what checks cost, and for nothing else.
    pub checks: bool,
    /// How many vectors of threads a chunk has along x and how many rows; `None` leaves it to the
    /// compiler. Kernels with simdgroup functions have whole simdgroups along x, and one row.
    pub interleave: Option<[u32; 2]>,
    /// What only chunks of threads that are not full run is compiled apart, when it is first needed, if it has
    /// at least so many of LLVM's instructions before its passes.
    pub least_apart: usize,
    /// Whether the objects of threadgroup and thread memory have room around them that nothing may change
    /// ([`crate::Program::red_zones`]): for tests.
    pub red_zones: bool,
    /// A function of more of the machine's instructions than about this is compiled without the passes that
    /// improve machine code: for long ones some of them take much longer than for short ones.
    pub most_improved: u32,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            target: Target::Native,
            threadgroup_size: None,
            checks: true,
            interleave: None,
            least_apart: LEAST_APART,
            red_zones: false,
            most_improved: MOST_IMPROVED,
        }
    }
}

/// What a kernel may have at most, functions and copies written out: compiling as many may take a minute.
const MOST_INSTRUCTIONS: usize = 65_536;

/// Where there is less of it, compiling it takes less than it takes to begin.
const LEAST_APART: usize = 150;

/// Longer than any kernel whose time is worth more than its compilation's.
const MOST_IMPROVED: u32 = 50_000;

/// What [`emit`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// LLVM's intermediate form, after its passes.
    Llvm,
    /// Assembly.
    Asm,
}

/// Lanes of a simdgroup on this device.
pub const SIMDGROUP_SIZE: u32 = 32;

/// Compiles a kernel of a module.
///
/// # Errors
/// What this device does not offer, and function constants without a value.
pub fn compile(
    module: &Verified,
    kernel: &str,
    options: &CompileOptions,
) -> Result<Object, Diagnostics> {
    let ((bytes, detours), info) = generate(module, kernel, options, |compiled| {
        let detours = compiled.has_detours.then(|| separate(&compiled.module));
        Ok((compiled.object()?, detours))
    })?;
    Ok(Object {
        bytes,
        detours,
        info,
    })
}

/// Compiles [`Object::detours`] for the target of its object, to what [`crate::Program::detours`] takes: how much
/// of the stack they take, in bytes (8 bytes, little-endian), and an object file.
///
/// # Errors
/// If these are no detours, or LLVM fails.
pub fn compile_detours(detours: &[u8], target: Target) -> Result<Vec<u8>, String> {
    library::load()?;
    let machine = target.processor().machine()?;
    let told = Told::default();
    let context = told.context();
    let buffer = MemoryBuffer::create_from_memory_range_copy(detours, "detours");
    let module = LlvmModule::parse_bitcode_from_buffer(&buffer, &context);
    let compiled = CompiledModule {
        machine,
        module: module.map_err(|e| e.to_string())?,
        has_detours: false,
        most_improved: MOST_IMPROVED,
    };
    let object = compiled.object().map_err(|e| e.to_string());
    let object = object.and_then(|object| told.failed().map_or(Ok(object), Err));
    let object = object.map_err(|e| format!("LLVM failed: {e}"))?;
    Ok([&told.stack_bytes().to_le_bytes(), &object[..]].concat())
}

/// What LLVM tells while it makes code.
#[derive(Default)]
struct Told {
    /// Of the frame of each function, in bytes.
    frames: RefCell<Vec<u64>>,
    error: RefCell<Option<String>>,
}

/// LLVM tells of the frame of a function that has this attribute where it is larger than the attribute's value.
const TELLS_FRAME: &str = "warn-stack-size";

impl Told {
    /// A context that tells. It must not outlive this.
    fn context(&self) -> Context {
        let context = Context::create();
        let this = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: whoever calls this drops the context first.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(hear), this) };
        context
    }

    fn hear(&self, severity: LLVMDiagnosticSeverity, text: &str) {
        if severity == LLVMDiagnosticSeverity::LLVMDSError {
            self.error.borrow_mut().get_or_insert(text.to_string());
        } else if let Some(bytes) = frame_bytes(text) {
            self.frames.borrow_mut().push(bytes);
        }
    }

    fn failed(&self) -> Option<String> {
        self.error.borrow().clone()
    }

    /// The most that the code takes of the stack: one function calls another, which calls none.
    fn stack_bytes(&self) -> u64 {
        let mut frames = self.frames.borrow().clone();
        frames.sort_unstable();
        frames.iter().rev().take(2).sum()
    }
}

/// "stack frame size (N) exceeds limit (0) in function 'f'"
fn frame_bytes(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("stack frame size (")?;
    rest.split_once(')')?.0.parse().ok()
}

/// LLVM's way to tell; what it tells goes to a [`Told`].
extern "C" fn hear(info: LLVMDiagnosticInfoRef, told: *mut c_void) {
    // SAFETY: LLVM hands on a diagnostic and the pointer that `Told::context` gave it.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(info);
        let text = LLVMGetDiagInfoDescription(info);
        let told = &*told.cast::<Told>();
        told.hear(severity, &CStr::from_ptr(text).to_string_lossy());
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
    let (text, _) = generate(module, kernel, options, |compiled| {
        compiled.run_passes()?;
        Ok(match text {
            Text::Llvm => compiled.module.print_to_string().to_string(),
            Text::Asm => {
                let buffer = compiled.written(FileType::Assembly)?;
                String::from_utf8_lossy(buffer.as_slice())
                    .trim_end_matches('\0')
                    .to_string()
            }
        })
    })?;
    Ok(text)
}

type LlvmError = inkwell::support::LLVMString;

/// A module before LLVM's passes, and what makes machine code of it.
struct CompiledModule<'c> {
    machine: TargetMachine,
    module: LlvmModule<'c>,
    /// It calls detours, which are in it.
    has_detours: bool,
    /// [`CompileOptions::most_improved`].
    most_improved: u32,
}

impl CompiledModule<'_> {
    fn run_passes(&self) -> Result<(), LlvmError> {
        let options = PassBuilderOptions::create();
        let passes = match is_long(&self.module, self.most_improved) {
            true => PASSES_OF_LONG,
            false => PASSES,
        };
        self.module.run_passes(passes, &self.machine, options)?;
        ease(&self.module, self.most_improved);
        Ok(())
    }

    fn written(&self, form: FileType) -> Result<MemoryBuffer<'static>, LlvmError> {
        self.machine.write_to_memory_buffer(&self.module, form)
    }

    fn object(&self) -> Result<Vec<u8>, LlvmError> {
        for function in self.module.get_functions() {
            let context = self.module.get_context();
            let tells = context.create_string_attribute(TELLS_FRAME, "0");
            function.add_attribute(AttributeLoc::Function, tells);
        }
        self.run_passes()?;
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
    library::load().map_err(|e| refuse(Span::NONE, e))?;
    let module = prepare(module, kernel)?;
    let kernel = &module.kernels[0];
    let processor = options.target.processor();
    let machine = processor.machine().map_err(|e| refuse(kernel.span, e))?;
    let told = Told::default();
    let context = told.context();
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
    };
    let (outcome, simdgroup_size, threadgroup_size) = build(&module, kernel, options, emit)?;
    let llvm = outcome.e.module;
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
        machine,
        module: llvm,
        has_detours: outcome.has_detours,
        most_improved: options.most_improved,
    };
    let failed = |e: String| refuse(kernel.span, format!("LLVM failed: {e}"));
    let written = write(&compiled).map_err(|e| failed(e.to_string()))?;
    if let Some(error) = told.failed() {
        return Err(failed(error));
    }
    let info = KernelInfo {
        target: options.target,
        threadgroup_size,
        simdgroup_size,
        threadgroup_bytes: outcome.scratch.fixed_bytes - outcome.scratch.apart_bytes,
        stack_bytes: told.stack_bytes(),
        scratch: outcome.scratch,
        zones: outcome.zones,
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

/// The same for functions that are too long for what improves them: what only makes them shorter.
const PASSES_OF_LONG: &str = "globaldce,function(sroa,early-cse,simplifycfg,adce)";

/// The one kernel, with what it is written by.
fn prepare(module: &Verified, kernel: &str) -> Result<Module, Diagnostics> {
    let Some(found) = module.kernel(kernel) else {
        return Err(Diagnostics(vec![Diagnostic::error(
            Rule::UndefinedName,
            Span::NONE,
            format!("there is no kernel `@{kernel}`"),
        )]));
    };
    let one = Module {
        kernels: vec![found.clone()],
        sources: Vec::new(),
        calls: Vec::new(),
        structs: module.structs.clone(),
        function_constants: module.function_constants.clone(),
        constants: module.constants.clone(),
    };
    let optimised = for_cpu(one)?;
    let mut count = 0;
    optimised.kernels[0].for_each_inst(&mut |_| count += 1);
    if count > MOST_INSTRUCTIONS {
        let message = format!(
            "kernel `{}` has {count} instructions, its functions and copies written out; the limit of the CPU \
             device is {MOST_INSTRUCTIONS}",
            found.name
        );
        let error = Diagnostic::error(Rule::LimitExceeded, found.span, message);
        let error = error.help("divide it into several kernels");
        return Err(Diagnostics(vec![error]));
    }
    Ok(optimised)
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

/// How many simdgroups a chunk has, if that many fill the rows of a threadgroup: one for kernels with
/// operations that a simdgroup makes as a whole.
fn simdgroups_of_chunk(
    kernel: &Kernel,
    size: Option<[u32; 3]>,
    natural: u32,
    [along, _]: [u32; 2],
) -> u32 {
    let mut alone = false;
    kernel.for_each_inst(&mut |inst| {
        alone |= inst.kind.is_of_whole_simdgroup();
    });
    let Some([x, _, _]) = size.filter(|_| !alone) else {
        return 1;
    };
    let most = (along * natural / SIMDGROUP_SIZE).max(1);
    let fits = |n: &u32| x.is_multiple_of(n * SIMDGROUP_SIZE);
    (0..=most.ilog2())
        .rev()
        .map(|k| 1 << k)
        .find(fits)
        .unwrap_or(1)
}

/// How threads are cut into chunks, in kernels that cannot tell simdgroups.
fn shape(target: &Features, size: Option<[u32; 3]>, [along, rows]: [u32; 2]) -> Shape {
    let natural = target.vector_bits / 32;
    let Some([x, y, _]) = size else {
        return Shape {
            width: natural,
            along,
            rows: 1,
            linear: false,
        };
    };
    const NARROWEST: u32 = 4;
    if x < NARROWEST {
        return Shape {
            width: natural,
            along,
            rows: 1,
            linear: true,
        };
    }
    let below = |n: u32| 1 << n.ilog2();
    let width = natural.min(below(x));
    Shape {
        width,
        along: along.min(below(x / width)),
        rows: rows.min(below(y)),
        linear: false,
    }
}

/// What is left of a [`FunctionLowering`].
struct Outcome<'c> {
    e: Emit<'c>,
    scratch: crate::object::Scratch,
    zones: Zones,
    has_detours: bool,
}

fn build<'c>(
    module: &Module,
    kernel: &Kernel,
    options: &CompileOptions,
    emit: Emit<'c>,
) -> Result<(Outcome<'c>, u32, Option<[u32; 3]>), Diagnostics> {
    let by_simdgroup = kernel.tells_simdgroups();
    let simdgroup_size = kernel.simdgroup_size.unwrap_or(SIMDGROUP_SIZE);
    if by_simdgroup && simdgroup_size != SIMDGROUP_SIZE {
        return Err(refuse(
            kernel.span,
            format!(
                "kernel `{}` requires simdgroups of {simdgroup_size}, and those of the CPU device \
                 have {SIMDGROUP_SIZE}",
                kernel.name
            ),
        ));
    }
    let threadgroup_size = kernel.threadgroup_size.or(options.threadgroup_size);
    let uniformity = analyse(module, kernel);
    let plan = Plan::new(module, kernel, threadgroup_size, &uniformity);
    let one_row = threadgroup_size.is_some_and(|[_, y, z]| y == 1 && z == 1);
    let question = |shape: Shape, positions, at_least: &HashMap<_, _>| {
        classify(&Question {
            kernel,
            uniformity: &uniformity,
            level: if by_simdgroup && shape.lanes() == SIMDGROUP_SIZE {
                Level::Simdgroup
            } else {
                Level::Threadgroup
            },
            shape,
            positions,
            together: &|inst| plan.is_collective(inst),
            at_least,
            threadgroup_size,
        })
    };
    let natural = emit.target.vector_bits / 32;
    let simple = Shape {
        width: natural,
        along: if by_simdgroup {
            SIMDGROUP_SIZE / natural
        } else {
            1
        },
        rows: 1,
        linear: by_simdgroup,
    };
    let interleave = options.interleave.unwrap_or_else(|| {
        let classes = question(simple, Positions::InRow, &HashMap::new());
        interleave(
            kernel,
            &classes,
            &plan,
            &emit.target,
            natural,
            threadgroup_size,
            by_simdgroup,
        )
    });
    let shape = if by_simdgroup {
        // Several simdgroups side by side, unless they would go separate ways.
        let several = Shape {
            along: simple.along
                * simdgroups_of_chunk(kernel, threadgroup_size, natural, interleave),
            ..simple
        };
        let masked = |shape| {
            let classes = question(shape, Positions::InRow, &HashMap::new());
            classes.masked_loops()
        };
        if several == simple || masked(several) > masked(simple) {
            simple
        } else {
            several
        }
    } else {
        shape(&emit.target, threadgroup_size, interleave)
    };
    let (fast, slow) = match (shape.linear, one_row) {
        (false, _) => (Positions::Rows, Positions::Rows),
        (true, true) => (Positions::InRow, Positions::InRow),
        (true, false) => (Positions::InRow, Positions::Anywhere),
    };
    // Chunks that are not full are gone through in pieces: less code. Where threads wait for each other there
    // is much of it, and threadgroups are mostly full.
    let most_rows = if plan.collective.is_empty() { 4 } else { 1 };
    let slow_shape = Shape {
        along: if by_simdgroup { simple.along } else { 1 },
        rows: shape.rows.min(most_rows),
        ..shape
    };
    // Slots are read in full chunks as they are written in others.
    let any = question(shape, slow, &HashMap::new());
    let slots: HashMap<_, Class> = plan.slots().into_iter().map(|v| (v, any.of(v))).collect();
    let slow = question(slow_shape, slow, &slots);
    let fast = question(shape, fast, &slots);
    let mut lowering = FunctionLowering::new(
        emit,
        Setup {
            module,
            kernel,
            plan: &plan,
            shape,
            slow_shape,
            slots: &slots,
            fast: &fast,
            slow: &slow,
            checks: options.checks,
            zones: if options.red_zones {
                Zones::asked()
            } else {
                Zones::default()
            },
            simdgroup_size,
            threadgroup_size,
        },
    );
    lowering.make();
    if !lowering.refused.is_empty() {
        return Err(Diagnostics(lowering.refused));
    }
    let launch = lowering.e.function.get().get_nth_param(0);
    let launch = launch.expect("four parameters").into_pointer_value();
    let least = options.least_apart;
    let has_detours = move_out(
        &lowering.e,
        &lowering.detours,
        least,
        launch,
        lowering.stopped,
    );
    let outcome = Outcome {
        e: lowering.e,
        scratch: lowering.scratch,
        zones: lowering.zones,
        has_detours,
    };
    Ok((outcome, simdgroup_size, threadgroup_size))
}
