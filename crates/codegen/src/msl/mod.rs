//! The MSL writer: one kernel of a verified module as Metal Shading Language.
//!
//! How things are bound. Buffers, constant buffers and scalar parameters are `[[buffer(0)]]` onwards in
//! the order of the parameters, threadgroup parameters `[[threadgroup(0)]]` onwards in theirs. Where the
//! kernel needs lengths, one more constant buffer follows: a `ulong` for each entry of
//! [`Lengths::params`], the number of elements bound, and the grid's size if [`Lengths::grid`] says so. A
//! buffer's address is a multiple of [`MslOptions::buffer_alignment`].
//!
//! What is relied upon, beside the language:
//! - the kernel is dispatched by `dispatchThreads` (or by threadgroups), so that edge threadgroups are
//!   smaller and threads outside the grid do not exist (X1), unless [`MslOptions::whole_threadgroups`] is set;
//! - simdgroups have 32 lanes and hold consecutive thread numbers, all full but the last (X2);
//! - the two entries of an 8x8 simdgroup matrix that a lane holds are those that Apple's devices give it
//!   (`invar_matrix_entry`), for matrices that lie in part outside their memory;
//! - the compiler is not in fast-math mode: what the text says by `#pragma` from Metal 3.2 on is to be
//!   set by the host before (A9).
//!
//! Invariants: every access is guarded by one value of its index (B1 to B5), unless the options say that all are
//! in bounds; a load from memory that others
//! may write, on whose value an index or a branch depends, is `volatile`, so that it happens once (B5, R2);
//! what is written is the same for the same input; every name that is not the author's begins with
//! `invar_`, is Metal's, or is one of `lengths`, `thread_count` and `lane_count`.
//!
//! Deliberately absent: Metal's imageblocks, as a kernel's became threadgroup arrays before this; f64 and 64-bit
//! atomics but for `min` and `max` without a result, which Metal does not have; analysis of what need not
//! be guarded beyond constant indices, since a guard costs next to nothing.
//!
//! Files: `mod.rs` the frame and the control flow, `interface.rs` options and what is given back, `writer.rs` the
//! state of writing, `operations.rs` rows of the op table, `lanes.rs` those
//! between lanes, `memory.rs` everything with a memory operand, `matrix.rs` simdgroup matrices, `copy.rs`
//! copies, `texture.rs` textures and samplers, `surplus.rs` threads outside the grid, `helpers.rs` the functions put before a kernel, `types.rs` spellings, `names.rs` names.

mod copy;
mod declarations;
mod helpers;
mod interface;
mod lanes;
mod matrix;
mod memory;
mod names;
mod operations;
mod surplus;
mod texture;
mod types;
mod writer;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use invar_ir::ops::{Meaning, Op};
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{
    Access, AddressSpace, Diagnostic, Diagnostics, ElementType, FloatMode, Inst, InstKind, Kernel,
    Memory, Module, ParamKind, Region, Rule, Scalar, Scope, Spaces, Span, Type, Value, Verified,
    analyse,
};

use crate::analysis::control_dependence::{self};
use crate::analysis::zeroing::{Threadgroups, observed};
use crate::pipeline::{Lowering, MSL};
use crate::shading::comment::Quotes;
use crate::shading::flow::{Frame, Frames, moves};
use crate::shading::names::Language as _;
use helpers::Helpers;
pub use interface::{Argument, AsyncCopies, Input, Language, Lengths, MslOptions, Source};
use names::{Msl, Names};
use writer::{LANES, Reach, Writer};

/// The most buffers that Metal binds to a kernel.
const MAX_BUFFERS: usize = 31;

/// Writes one kernel.
///
/// ```
/// use invar_codegen::msl::{MslOptions, write};
/// use invar_ir::{text, verify};
///
/// let module = verify(text::parse(
///     "double.inv",
///     "kernel @double(%x: device read_write f32) {
///          %i = thread_position_in_grid x
///          %v = load %x[%i]
///          %w = add %v, %v
///          store %x[%i], %w
///      }",
/// )?)?;
/// let source = write(&module, "double", &MslOptions::default())?;
/// assert!(source.text.contains("const float v = i < lengths.x ? x[i] : 0.0f;"));
/// assert_eq!(source.lengths.map(|l| l.params), Some(vec![0]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// `unsupported-feature` and `unsupported-memory-order` for what Metal does not have, each with the
/// operation; `unsupported-float-mode` for `strict` without `ieee-float`; `undefined-name` if there is no such kernel.
pub fn write(
    verified: &Verified,
    kernel: &str,
    options: &MslOptions,
) -> Result<Source, Diagnostics> {
    with_room(PASSES_BYTES, || written(verified, kernel, options))
}

fn written(verified: &Verified, kernel: &str, options: &MslOptions) -> Result<Source, Diagnostics> {
    let mut module = Module::clone(verified);
    module.kernels.retain(|k| &*k.name == kernel);
    let Some(found) = module.kernels.first() else {
        let message = format!("there is no kernel `@{kernel}`");
        let error = Diagnostic::error(Rule::UndefinedName, Span::NONE, message);
        return Err(Diagnostics(vec![error]));
    };
    let mut errors = Vec::new();
    if found.float_mode == FloatMode::Strict && !options.ieee_float {
        let message =
            format!("kernel `@{kernel}` is strict, and the device does not claim `ieee-float`");
        let error = Diagnostic::error(Rule::UnsupportedFloatMode, found.span, message);
        errors.push(error.help("leave the mode out"));
    }
    if found.active_collectives {
        let message = format!(
            "kernel `@{kernel}` has collectives over the active threads, and Metal does not promise which \
             threads are active"
        );
        let error = Diagnostic::error(Rule::UnsupportedFeature, found.span, message);
        errors.push(error.help("run it on the `cpu` or `checked` device"));
    }
    refuse_types(&module, found, options, &mut errors);
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    let fast = found.float_mode == FloatMode::Fast;
    let is_bf16 = |ty: &Type| ty.scalar() == Some(Scalar::BF16);
    let keeps =
        |op, types: &[Type]| fast && operations::is_native(op) && !types.iter().any(is_bf16);
    let module = Lowering::new(module, &keeps).run(MSL)?.module;
    let mut writer = Writer::new(&module, &module.kernels[0], options);
    writer.kernel();
    let Writer { errors, .. } = &mut writer;
    if errors.is_empty() {
        Ok(writer.finish())
    } else {
        Err(Diagnostics(std::mem::take(errors)))
    }
}

/// Types that the language does not have.
fn refuse_types(
    module: &Module,
    kernel: &Kernel,
    options: &MslOptions,
    errors: &mut Vec<Diagnostic>,
) {
    let lacks = |ty: Type| match ty.scalar() {
        Some(Scalar::F64) => Some("Metal has no f64"),
        Some(Scalar::BF16) if options.language < Language::Metal3_1 => {
            Some("bf16 needs Metal 3.1 or newer")
        }
        _ => None,
    };
    let mut refuse = |span: Span, what: String, reason: &str| {
        let message = format!("{what}: {reason}");
        errors.push(Diagnostic::error(Rule::UnsupportedFeature, span, message));
    };
    let buffers = kernel.params.iter().filter(|p| match p.kind {
        ParamKind::Buffer { .. } | ParamKind::Constant { .. } | ParamKind::Scalar { .. } => true,
        ParamKind::Threadgroup { .. } | ParamKind::Texture(_) | ParamKind::Sampler => false,
    });
    // One is for the lengths.
    if buffers.count() >= MAX_BUFFERS {
        let what = format!("the parameters of kernel `@{}`", kernel.name);
        refuse(
            kernel.span,
            what,
            "Metal binds at most 31 buffers, of which the lengths take one",
        );
    }
    if let Some(size) = kernel.simdgroup_size.filter(|size| *size != LANES) {
        let what = format!("kernel `@{}` requires simdgroups of {size}", kernel.name);
        refuse(kernel.span, what, "Metal's have 32 threads");
    }
    texture::refused(kernel, &mut refuse);
    for param in &kernel.params {
        let what = || format!("parameter `%{}`", param.name);
        match &param.kind {
            ParamKind::Texture(_) | ParamKind::Sampler => {}
            ParamKind::Scalar { value } => {
                if let Some(reason) = lacks(kernel.ty(*value)) {
                    refuse(param.span, what(), reason);
                }
            }
            ParamKind::Buffer { element, .. }
            | ParamKind::Constant { element }
            | ParamKind::Threadgroup { element } => {
                let mut found = None;
                types::scalars_of(element, &module.structs, &mut |ty| {
                    found = found.or(lacks(ty))
                });
                if let Some(reason) = found {
                    refuse(param.span, what(), reason);
                }
            }
        }
    }
    kernel.for_each_inst(&mut |inst| {
        let name = || match &inst.kind {
            InstKind::Op { op, .. } => format!("`{op}`"),
            InstKind::Alloc(id) => format!("array `%{}`", kernel.allocs[*id as usize].name),
            _other => "this instruction".to_string(),
        };
        let mut reason = inst.results.iter().find_map(|v| lacks(kernel.ty(*v)));
        if let InstKind::Alloc(id) = inst.kind {
            let element = &kernel.allocs[id as usize].element;
            types::scalars_of(element, &module.structs, &mut |ty| {
                reason = reason.or(lacks(ty))
            });
        }
        if let Some(reason) = reason {
            refuse(inst.span, name(), reason);
        }
    });
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module, kernel: &'a Kernel, options: &'a MslOptions) -> Writer<'a> {
        let count = kernel.values.len();
        Writer {
            module,
            kernel,
            options,
            names: Names::default(),
            values: vec![String::new(); count],
            constants: vec![None; count],
            control_dependent: control_dependence::analyse(kernel),
            dead: dead_values(kernel),
            used: used_values(kernel),
            struct_names: Vec::new(),
            field_names: Vec::new(),
            param_names: Vec::new(),
            alloc_names: Vec::new(),
            constant_names: HashMap::new(),
            function_constants: HashMap::new(),
            helpers: Helpers::default(),
            inputs: BTreeSet::new(),
            lengths: BTreeSet::new(),
            uses_lane_count: false,
            uses_thread_count: false,
            uses_exists: false,
            uses_simdgroup_exists: false,
            uses_grid_size: false,
            uses_simdgroup_matrices: false,
            uniformity: analyse(module, kernel),
            next_region: 0,
            reach: Reach::Existing,
            coherent: memory::publishes_to_device(kernel),
            shared: String::new(),
            samplers: Vec::new(),
            out: String::new(),
            depth: 1,
            frames: Frames::default(),
            quotes: Quotes::default(),
            errors: Vec::new(),
        }
    }

    // ---- the frame ----

    fn kernel(&mut self) {
        for def in &self.module.structs {
            let name = self.names.unique(&def.name);
            self.struct_names.push(name);
            let mut names = Names::default();
            let fields = def.fields.iter().map(|(n, _)| names.unique(n)).collect();
            self.field_names.push(fields);
        }
        for param in &self.kernel.params {
            let name = self.names.unique(&param.name);
            self.param_names.push(name);
        }
        for alloc in &self.kernel.allocs {
            let name = self.names.unique(&alloc.name);
            self.alloc_names.push(name);
        }
        for (i, param) in self.kernel.params.iter().enumerate() {
            if let ParamKind::Scalar { value } = param.kind {
                self.scalar_param(i, value);
            }
        }
        self.zero_threadgroup_memory();
        self.begin();
        let body = &self.kernel.body;
        self.region(body);
    }

    /// A scalar parameter is used in place if memory holds it as a value has it.
    fn scalar_param(&mut self, i: usize, value: Value) {
        let ty = self.ty(value);
        let name = self.param_names[i].clone();
        if types::memory(ty) == types::value(ty) {
            self.values[value.0 as usize] = name;
            return;
        }
        let bound = self.names.unique(&format!("{name}_bytes"));
        self.param_names[i] = bound.clone();
        self.values[value.0 as usize] = name.clone();
        self.need_type(ty);
        let read = self.read(&bound, ty, None);
        self.line(&format!("const {} {name} = {read};", types::value(ty)));
    }

    /// I2: all zeros when the threadgroup starts, by all its threads together.
    fn zero_threadgroup_memory(&mut self) {
        let size = self.threadgroup_size();
        let seen = observed(
            self.module,
            self.kernel,
            &Threadgroups {
                size: size.unwrap_or([1; 3]),
                full: self.options.full_threadgroups && size.is_some(),
                simdgroup_size: LANES,
                lengths: &self.options.threadgroup_lengths,
            },
        );
        let mut loops = Vec::new();
        for (i, param) in self.kernel.params.iter().enumerate() {
            let memory = Memory::Param(i as u32);
            if let ParamKind::Threadgroup { element } = &param.kind
                && seen.contains(&memory)
            {
                let (unit, per_element) = self.zero_unit(element);
                let length = self.length(memory);
                let count = match per_element {
                    1 => length,
                    n => format!("{length} * {n}"),
                };
                loops.push((self.param_names[i].clone(), unit, "ulong", count));
            }
        }
        for (i, alloc) in self.kernel.allocs.iter().enumerate() {
            if alloc.space != AddressSpace::Threadgroup {
                continue;
            }
            let (ty, inner) = types::element(&alloc.element, &self.struct_names);
            self.need_element(&alloc.element);
            let name = self.alloc_names[i].clone();
            let brackets = types::brackets(&inner);
            let _ = writeln!(
                self.shared,
                "    threadgroup {ty} {name}[{}]{brackets};",
                alloc.length
            );
            if seen.contains(&Memory::Alloc(i as u32)) {
                let (unit, per_element) = self.zero_unit(&alloc.element);
                let count = format!("{}u", u64::from(alloc.length) * per_element);
                loops.push((name, unit, "uint", count));
            }
        }
        if loops.is_empty() {
            return;
        }
        let index = self.input(Op::ThreadIndexInThreadgroup);
        let threads = match size {
            Some([x, y, z])
                if self.options.full_threadgroups || self.options.whole_threadgroups =>
            {
                format!("{}u", x * y * z)
            }
            _ => self.thread_count(),
        };
        self.line("// Threadgroup memory is all zeros when its threadgroup starts.");
        for (name, unit, counter, count) in loops {
            self.line(&format!(
                "for ({counter} invar_k = {index}; invar_k < {count}; invar_k += {threads}) {{"
            ));
            self.line(&format!("    ((threadgroup {unit}*){name})[invar_k] = 0;"));
            self.line("}");
        }
        self.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
    }

    /// The integer in whose units an element is zeroed, and how many an element has.
    fn zero_unit(&self, element: &ElementType) -> (&'static str, u64) {
        let Some(extent) = element.extent(&self.module.structs) else {
            return ("uchar", 1);
        };
        let (unit, size) = match extent.align_bytes {
            1 => ("uchar", 1),
            2 => ("ushort", 2),
            _ => ("uint", 4),
        };
        (unit, extent.size_bytes / size)
    }

    /// How many threads this threadgroup has.
    fn thread_count(&mut self) -> String {
        self.uses_thread_count = true;
        "thread_count".to_string()
    }

    fn finish(mut self) -> Source {
        let mut arguments = Vec::new();
        let mut parameters: Vec<String> = Vec::new();
        let (mut buffers, mut threadgroups) = (0, 0);
        let (mut textures, mut samplers) = (0, 0);
        for (i, param) in self.kernel.params.iter().enumerate() {
            let name = self.param_names[i].clone();
            let (ty, argument) = match &param.kind {
                ParamKind::Buffer { access, element } => {
                    let (ty, inner) = types::element(element, &self.struct_names);
                    self.need_element(element);
                    let qualifiers = match access {
                        Access::Read => "device const",
                        Access::Write | Access::ReadWrite if self.coherent => {
                            "coherent(device) device"
                        }
                        Access::Write | Access::ReadWrite => "device",
                    };
                    (
                        types::pointer(qualifiers, &ty, &name, &inner),
                        Argument::Buffer(buffers),
                    )
                }
                ParamKind::Constant { element } => {
                    let (ty, inner) = types::element(element, &self.struct_names);
                    self.need_element(element);
                    (
                        types::pointer("constant", &ty, &name, &inner),
                        Argument::Buffer(buffers),
                    )
                }
                ParamKind::Scalar { value } => {
                    let ty = types::memory(self.ty(*value));
                    self.need_type(self.ty(*value));
                    (format!("constant {ty}& {name}"), Argument::Buffer(buffers))
                }
                ParamKind::Texture(ty) => (
                    format!("{} {name}", texture::spelled(*ty)),
                    Argument::Texture(textures),
                ),
                ParamKind::Sampler => (format!("sampler {name}"), Argument::Sampler(samplers)),
                ParamKind::Threadgroup { element } => {
                    let (ty, inner) = types::element(element, &self.struct_names);
                    self.need_element(element);
                    let text = types::pointer("threadgroup", &ty, &name, &inner);
                    (text, Argument::Threadgroup(threadgroups))
                }
            };
            let attribute = match argument {
                Argument::Buffer(n) => {
                    buffers += 1;
                    format!("buffer({n})")
                }
                Argument::Threadgroup(n) => {
                    threadgroups += 1;
                    format!("threadgroup({n})")
                }
                Argument::Texture(n) => {
                    textures += 1;
                    format!("texture({n})")
                }
                Argument::Sampler(n) => {
                    samplers += 1;
                    format!("sampler({n})")
                }
            };
            parameters.push(format!("{ty} [[{attribute}]]"));
            arguments.push(argument);
        }
        let definitions = self.definitions();
        let lengths = (!self.lengths.is_empty() || self.uses_grid_size).then(|| Lengths {
            buffer: buffers,
            params: self.lengths.iter().copied().collect(),
            grid: self.uses_grid_size,
        });
        if let Some(lengths) = &lengths {
            parameters.push(format!(
                "constant invar_lengths& lengths [[buffer({})]]",
                lengths.buffer
            ));
        }
        let inputs: Vec<Input> = self.inputs.iter().copied().collect();
        for input in &inputs {
            let ty = if input.has_dimensions() {
                "uint3"
            } else {
                "uint"
            };
            let name = input.attribute();
            parameters.push(format!("{ty} {name} [[{name}]]"));
        }
        let entry = self.names.unique(&self.kernel.name);
        let mut text = self.header();
        if let Some(lengths) = &lengths {
            text.push_str(match (lengths.params.is_empty(), lengths.grid) {
                (false, false) => "// How many elements are bound.\n",
                (false, true) => "// How many elements are bound, and how large the grid is.\n",
                (true, _) => "// How large the grid is.\n",
            });
            text.push_str("struct invar_lengths {\n");
            for param in &lengths.params {
                let _ = writeln!(text, "    ulong {};", self.param_names[*param as usize]);
            }
            if lengths.grid {
                text.push_str("    uint threads_per_grid[3];\n");
            }
            text.push_str("};\n\n");
        }
        text.push_str(&self.helpers.text());
        let size = self.threadgroup_size();
        if let Some([x, y, z]) = size {
            let threads = u64::from(x) * u64::from(y) * u64::from(z);
            let _ = writeln!(text, "[[max_total_threads_per_threadgroup({threads})]]");
        }
        let _ = writeln!(text, "kernel void {entry}({}", parameters_text(&parameters));
        text.push_str(&self.shared);
        text.push_str(&definitions);
        text.push_str(&self.out);
        text.push_str("}\n");
        let threadgroup_bytes = self
            .kernel
            .allocs
            .iter()
            .filter(|a| a.space == AddressSpace::Threadgroup)
            .filter_map(|a| {
                Some(a.element.extent(&self.module.structs)?.size_bytes * u64::from(a.length))
            })
            .sum();
        Source {
            text,
            entry,
            arguments,
            lengths,
            inputs,
            full_simdgroups: self.uses_simdgroup_matrices,
            threadgroup_bytes,
            guards: self.has_guards(),
        }
    }

    /// What stands before helpers and the kernel.
    fn header(&mut self) -> String {
        let mut text = format!(
            "// Kernel @{}, written by Invar.\n",
            Msl::fit(&self.kernel.name)
        );
        text.push_str("#include <metal_stdlib>\nusing namespace metal;\n");
        let contraction = match self.kernel.float_mode {
            FloatMode::Strict | FloatMode::Contract => "off",
            FloatMode::Fast => "fast",
        };
        if self.options.language >= Language::Metal3_2 {
            text.push_str("#pragma METAL fp math_mode(safe)\n");
        }
        let _ = writeln!(text, "#pragma clang fp contract({contraction})\n");
        let mut declared: Vec<(u32, String)> = self.function_constants.drain().collect();
        declared.sort();
        for (id, name) in declared {
            let constant = &self.module.function_constants[id as usize];
            let ty = types::scalar(constant.scalar);
            let given = format!("{name}_given");
            let _ = writeln!(
                text,
                "constant {ty} {given} [[function_constant({})]];",
                constant.id
            );
            let value = match constant.default {
                Some(default) => format!(
                    "is_function_constant_defined({given}) ? {given} : {}",
                    types::constant(default)
                ),
                None => given,
            };
            let _ = writeln!(text, "constant {ty} {name} = {value};\n");
        }
        text
    }

    // ---- control flow ----

    fn region(&mut self, region: &Region) {
        self.next_region += 1;
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    /// The lines of a region in braces that the caller writes.
    fn inner_region(&mut self, region: &Region, frame: Frame) {
        self.frames.push(frame);
        self.depth += 1;
        self.region(region);
        self.depth -= 1;
        self.frames.pop();
    }

    fn inst(&mut self, inst: &Inst) {
        if self.is_dead(inst) {
            return;
        }
        match &inst.kind {
            InstKind::Const(c) => {
                let value = inst.results[0];
                self.constants[value.0 as usize] = Some(*c);
                self.values[value.0 as usize] = types::constant(*c);
            }
            InstKind::FunctionConstant(id) => {
                let constant = &self.module.function_constants[*id as usize];
                let name = match self.function_constants.get(id) {
                    Some(name) => name.clone(),
                    None => {
                        let name = self.names.unique(&constant.name);
                        self.names.reserve(&[&format!("{name}_given")]);
                        self.function_constants.insert(*id, name.clone());
                        name
                    }
                };
                self.values[inst.results[0].0 as usize] = name;
            }
            InstKind::Op { op, imm, args } => {
                self.comment(inst.span);
                if let Meaning::Lanes(group, rule) = op.row().meaning {
                    self.lanes(inst.results[0], group, rule, args);
                } else {
                    self.operation(inst, *op, *imm, args);
                }
            }
            InstKind::BufferLength(memory) => {
                let length = self.length(*memory);
                self.comment(inst.span);
                self.define(inst.results[0], &length);
            }
            InstKind::Load(place) => {
                self.comment(inst.span);
                self.load(inst.results[0], place);
            }
            InstKind::Store { place, value } => {
                self.comment(inst.span);
                self.store(place, *value);
            }
            InstKind::Atomic {
                op,
                place,
                args,
                order,
                scope,
            } => {
                self.comment(inst.span);
                self.atomic(inst, *op, place, args, *order, *scope);
            }
            InstKind::Alloc(id) => self.alloc(*id, inst.span),
            InstKind::Copy { operands, count } => {
                self.comment(inst.span);
                self.copy(operands, *count);
            }
            InstKind::AsyncCopy { operands, shape } => {
                self.comment(inst.span);
                self.async_copy(inst.results[0], operands, shape);
            }
            InstKind::Wait { events } => {
                self.comment(inst.span);
                self.wait(events);
            }
            InstKind::Barrier { scope, spaces } => {
                self.comment(inst.span);
                self.barrier(*scope, *spaces);
            }
            InstKind::MatrixFill { value } => {
                self.comment(inst.span);
                self.matrix_fill(inst.results[0], *value);
            }
            InstKind::MatrixLoad { place } => {
                self.comment(inst.span);
                self.matrix_load(inst.results[0], place);
            }
            InstKind::MatrixStore { place, matrix } => {
                self.comment(inst.span);
                self.matrix_store(place, *matrix);
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => {
                self.comment(inst.span);
                self.matrix_multiply_accumulate(inst.results[0], *a, *b, *c);
            }
            InstKind::AssertUniform { value, scope } => {
                self.comment(inst.span);
                self.assert_uniform(inst.results[0], *value, *scope);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.branch(inst, *condition, then, otherwise),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                self.comment(inst.span);
                self.for_loop(inst, [*lower, *upper, *step], init, body);
            }
            InstKind::Loop { init, body } => {
                self.comment(inst.span);
                let carried = self.carry(&body.params, init);
                let before = self.enter();
                self.line("while (true) {");
                self.inner_region(body, Frame::Loop(carried.clone()));
                self.line("}");
                self.leave(before);
                self.loop_results(inst, &carried);
            }
            InstKind::Yield(values) => {
                let targets = self.frames.of_yield();
                self.assign(&targets, values);
            }
            InstKind::Break(values) => {
                self.comment(inst.span);
                let targets = self.frames.of_loop();
                self.assign(&targets, values);
                self.line("break;");
            }
            InstKind::Continue(values) => {
                self.comment(inst.span);
                let targets = self.frames.of_loop();
                self.assign(&targets, values);
                self.line("continue;");
            }
            InstKind::Return => {
                if !self.frames.is_empty() {
                    self.comment(inst.span);
                    self.line("return;");
                }
            }
            InstKind::Print { .. } => unreachable!("`print` has been written out"),
            InstKind::Texture {
                texture,
                function,
                args,
            } => {
                self.comment(inst.span);
                self.texture(inst, *texture, *function, args);
            }
        }
    }

    fn branch(&mut self, inst: &Inst, condition: Value, then: &Region, otherwise: &Region) {
        self.comment(inst.span);
        let some_stay_out = self.some_stay_out();
        let mut results = Vec::new();
        for result in &inst.results {
            let ty = self.ty(*result);
            let initial = Self::anything(ty).filter(|_| some_stay_out);
            results.push(self.declare(*result, initial.as_deref()));
        }
        let before = self.enter();
        let condition = self.deciding(condition);
        self.line(&format!("if ({condition}) {{"));
        self.inner_region(then, Frame::If(results.clone()));
        let empty = results.is_empty()
            && matches!(&otherwise.insts[..], [last] if matches!(last.kind, InstKind::Yield(_)));
        if !empty {
            self.line("} else {");
            self.inner_region(otherwise, Frame::If(results));
        } else {
            self.next_region += 1;
        }
        self.line("}");
        self.leave(before);
    }

    /// Variables for what a loop carries.
    fn carry(&mut self, params: &[Value], init: &[Value]) -> Vec<String> {
        let mut carried = Vec::new();
        for (param, init) in params.iter().zip(init) {
            let initial = self.v(*init);
            carried.push(self.declare(*param, Some(&initial)));
        }
        carried
    }

    /// A loop's results are what it carried at its end.
    fn loop_results(&mut self, inst: &Inst, carried: &[String]) {
        for (result, variable) in inst.results.iter().zip(carried) {
            self.values[result.0 as usize] = variable.clone();
        }
    }

    /// Assigns all values at once: one that is itself a target is read before it changes.
    fn assign(&mut self, targets: &[String], values: &[Value]) {
        let mut moves = moves(targets, values.iter().map(|v| (self.v(*v), *v)));
        if !moves.iter().any(|one| one.is_overwritten) {
            for one in moves {
                self.line(&format!("{} = {};", one.target, one.text));
            }
            return;
        }
        self.line("{");
        self.depth += 1;
        for (i, one) in moves.iter_mut().enumerate() {
            if one.is_overwritten {
                let ty = types::value(self.ty(one.value));
                self.line(&format!("const {ty} invar_old_{i} = {};", one.text));
                one.text = format!("invar_old_{i}");
            }
        }
        for one in moves {
            self.line(&format!("{} = {};", one.target, one.text));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// A `for`: as C writes it where no sum can wrap, else by counting its iterations.
    fn for_loop(
        &mut self,
        inst: &Inst,
        [lower, upper, step]: [Value; 3],
        init: &[Value],
        body: &Region,
    ) {
        let carried = self.carry(&body.params[1..], init);
        let index = body.params[0];
        let Type::Scalar(scalar) = self.ty(index) else {
            unreachable!("the verifier passes only integer indices");
        };
        let before = self.enter();
        let [from, to, by] = [lower, upper, step].map(|bound| self.deciding(bound));
        let ty = types::scalar(scalar);
        let step_number = self.constants[step.0 as usize].map(|c| c.scalar.integer(c.bits));
        if step_number == Some(1) {
            // The index stops at the bound, so it cannot pass it by wrapping.
            let name = self.name_value(index);
            self.line(&format!(
                "for ({ty} {name} = {from}; {name} < {to}; ++{name}) {{"
            ));
            self.inner_region(body, Frame::Loop(carried.clone()));
            self.line("}");
        } else {
            let wide = if scalar.bits() == 64 { "ulong" } else { "uint" };
            let iterations = self.helpers.iterations(
                scalar,
                match self.ty(step) {
                    Type::Scalar(s) => s,
                    _ => scalar,
                },
            );
            let count = self.names.unique("iterations");
            let round = self.names.unique("round");
            self.line(&format!(
                "const {wide} {count} = {iterations}({from}, {to}, {by});"
            ));
            self.line(&format!(
                "for ({wide} {round} = 0; {round} < {count}; ++{round}) {{"
            ));
            self.depth += 1;
            let name = self.name_value(index);
            let sum = if ty == wide {
                let by = if self.ty(step) == self.ty(index) {
                    by
                } else {
                    format!("{wide}({by})")
                };
                let from_zero = self.constants[lower.0 as usize].is_some_and(|c| c.bits == 0);
                if from_zero {
                    format!("{round} * {by}")
                } else {
                    format!("{from} + {round} * {by}")
                }
            } else {
                format!("{ty}({wide}({from}) + {round} * {wide}({by}))")
            };
            self.line(&format!("const {ty} {name} = {sum};"));
            self.depth -= 1;
            self.inner_region(body, Frame::Loop(carried.clone()));
            self.line("}");
        }
        self.leave(before);
        self.loop_results(inst, &carried);
    }

    // ---- meeting ----

    fn barrier(&mut self, scope: Scope, spaces: Spaces) {
        let flags: Vec<&str> = [
            (Spaces::DEVICE, "mem_flags::mem_device"),
            (Spaces::THREADGROUP, "mem_flags::mem_threadgroup"),
            (Spaces::TEXTURE, "mem_flags::mem_texture"),
            (Spaces::IMAGEBLOCK, "mem_flags::mem_threadgroup_imageblock"),
        ]
        .into_iter()
        .filter(|(space, _)| spaces.contains(*space))
        .map(|(_, flag)| flag)
        .collect();
        let flags = if flags.is_empty() {
            "mem_flags::mem_none".to_string()
        } else {
            flags.join(" | ")
        };
        let function = match scope {
            Scope::Simdgroup => "simdgroup_barrier",
            Scope::Threadgroup | Scope::Device => "threadgroup_barrier",
        };
        self.line(&format!("{function}({flags});"));
    }

    /// X5: every thread gets the value of the first.
    fn assert_uniform(&mut self, result: Value, value: Value, scope: Scope) {
        let ty = self.ty(value);
        let text = self.v(value);
        match scope {
            Scope::Simdgroup => {
                let all = self.broadcast_first(&text, ty);
                self.define(result, &all);
            }
            Scope::Threadgroup | Scope::Device => {
                let slot = self.names.unique("agreed");
                let held = types::memory(ty);
                self.need_type(ty);
                let _ = writeln!(self.shared, "    threadgroup {held} {slot}[1];");
                let index = self.input(Op::ThreadIndexInThreadgroup);
                let place = format!("{slot}[0]");
                let write = self.write_text(&place, &text, ty, false);
                self.line(&format!("if ({index} == 0) {{ {write} }}"));
                self.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
                let read = self.read(&place, ty, None);
                self.define(result, &read);
                self.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
            }
        }
    }
}

/// The parameters, one a line, with what closes them.
fn parameters_text(parameters: &[String]) -> String {
    if parameters.is_empty() {
        return ") {".to_string();
    }
    format!("\n    {}) {{", parameters.join(",\n    "))
}

/// Which values some instruction takes.
fn used_values(kernel: &Kernel) -> Vec<bool> {
    let mut used = vec![false; kernel.values.len()];
    kernel.for_each_inst(&mut |inst| inst.kind.for_each_use(|v| used[v.0 as usize] = true));
    used
}

/// Which values only instructions without effects define and nothing uses.
fn dead_values(kernel: &Kernel) -> Vec<bool> {
    let mut uses = vec![0u32; kernel.values.len()];
    let mut insts = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        inst.kind.for_each_use(|v| uses[v.0 as usize] += 1);
        insts.push(inst);
    });
    let mut dead = vec![false; kernel.values.len()];
    for inst in insts.into_iter().rev() {
        if inst.kind.is_removable() && inst.results.iter().all(|v| uses[v.0 as usize] == 0) {
            inst.kind.for_each_use(|v| uses[v.0 as usize] -= 1);
            inst.results.iter().for_each(|v| dead[v.0 as usize] = true);
        }
    }
    dead
}
