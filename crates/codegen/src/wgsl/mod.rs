//! The WGSL writer: one verified kernel to the text of one WGSL module.
//!
//! How resources are bound: group 0 holds the buffer and constant-buffer parameters in their order,
//! then the program-scope constants that the kernel reads, then textures and samplers, then one uniform buffer of hidden
//! constants: the grid's size, the buffers' lengths and the `Scalar` parameters ([`Constants`]). A
//! buffer's binding is rounded up to 16 bytes; its length in elements comes from the hidden constants,
//! never from `arrayLength`.
//!
//! What a value is in WGSL: integers of at most 32 bits are an `i32` or `u32` that holds the number,
//! 64-bit ones `i64` or `u64`; `bf16` is an `f32` that holds the number, rounded after every operation by
//! code of ours, and so is `f16` where the target has none; a simdgroup matrix is the target's cooperative
//! matrix, or an array of its 64 entries in every thread.
//!
//! Where the target has `f16`, sums, products, `fma` and what is exact are its own; what Vulkan lets be off
//! by more than a rounding (quotients, roots, conversions from wider floats) is computed in `f32` and rounded
//! by code of ours as elsewhere.
//!
//! Invariants
//! - Every guard (B1 to B4) is ours and stands in the helper that makes the access, which gets the
//!   index by value: guard and access use one value (B5). The module may be compiled without the
//!   target's own checks. There are none where the options say that all accesses are in bounds.
//! - Memory that is written, and from which a plain load reaches an index, a bound or a branch, is made
//!   of atomics, so that no compiler may load it twice (B5, R2).
//! - Threads are numbered by X2, and positions follow from the number. Whole workgroups of one dimension
//!   are launched; threads beyond the edge of the grid leave at once or, where the kernel meets in
//!   collective operations, go along without effect and never enter a branch or loop that is not the
//!   threadgroup's.
//! - Nothing is left to the target: integer division, shifts, conversions and `min` and `max` of
//!   floats are total (A1 to A7). Floats themselves are the target's: no `ieee-float` is claimed, so
//!   `strict` is refused (A9).
//!
//! Files: `interface.rs` (options and what a host is told), `writer.rs` (the state of writing), `types.rs` (types, literals, bits), `names.rs`, `plan.rs` (how each object is stored),
//! `memory.rs` (accesses and atomics), `texture.rs` (textures and samplers), `operations.rs` (rows of the op table), `lanes.rs` (between
//! lanes), `lengths.rs` (of buffers), `chains.rs` (minima and maxima of many), `runs.rs` (many
//! powers of e), `collective.rs` (copies and simdgroup matrices), `cooperative.rs` (matrices of the target's), `roles.rs` (which they are), `body.rs` (instructions and control
//! flow), `helpers.rs` (functions written in WGSL), `fused.rs` (`fma` where the target rounds twice),
//! `loops.rs` (the heads of loops), `iteration_guard.rs` (drivers that end loops early), `value_walks.rs` (drivers that follow values for long).
//!
//! Deliberately absent: memory orders beyond relaxed, which WGSL does not have; f64 in kernels; 64-bit integers where the
//! target has none; the choice of an adapter.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::memory_layout::Layouts;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{
    AddressSpace, Diagnostic, Diagnostics, FloatMode, Kernel, Memory, Module, Op, ParamKind, Rule,
    Scalar, Span, Type, Uniformity, Verified, analyse,
};

mod bindings;
mod body;
mod chains;
mod collective;
mod cooperative;
mod fused;
mod helpers;
mod interface;
mod iteration_guard;
mod lanes;
mod lengths;
mod literals;
mod loops;
mod memory;
mod names;
mod operations;
mod plan;
mod roles;
mod runs;
mod texture;
mod types;
mod value_walks;
mod values;
mod writer;

use crate::analysis::floats::{self};
use crate::analysis::order;
use crate::analysis::zeroing::{Threadgroups, observed};
use crate::pipeline::{Lowering, WGSL};
use crate::shading::comment::{Quotes, one_line};
use crate::shading::flow::Frames;
use crate::shading::helpers::Helpers;
use bindings::{Places, attributes};
use interface::Field;
pub use interface::{
    Binding, Bound, Constants, CooperativeMatrices, DispatchPart, Features, Fma, Given, Launch,
    MAX_ELEMENTS, Source, WgslOptions, dispatch_parts,
};
pub use iteration_guard::ITERATION_GUARD;
use loops::Loops;
pub use memory::CLEARED_SLOTS;
use names::Names;
use plan::Plan;
use writer::{Exchange, Identity, Writer};

/// Writes a kernel.
///
/// ```
/// use invar_codegen::wgsl::{Features, WgslOptions, write};
/// use invar_ir::{text::parse, verify};
///
/// let text = "kernel @double(%x: device read_write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     %w = add %v, %v
///     store %x[%i], %w
/// }";
/// let module = verify(parse("double.inv", text)?)?;
/// let source = write(&module, "double", &WgslOptions::new(Features::default(), [64, 1, 1]))?;
/// assert!(source.text.contains("let w = v + v;"));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// `unsupported-feature`, `unsupported-float-mode` or `unsupported-memory-order` for each instruction
/// that the target cannot run; `invalid-dispatch` and `invalid-argument` if the options do not fit the
/// kernel; a function constant without a value.
pub fn write(
    module: &Verified,
    kernel: &str,
    options: &WgslOptions,
) -> Result<Source, Diagnostics> {
    with_room(PASSES_BYTES, || written(module, kernel, options))
}

fn written(module: &Verified, kernel: &str, options: &WgslOptions) -> Result<Source, Diagnostics> {
    let fail = |rule, span, message: String| {
        Err(Diagnostics(vec![Diagnostic::error(rule, span, message)]))
    };
    let Some(one) = module.only(kernel) else {
        let message = format!("there is no kernel `@{kernel}`");
        return fail(Rule::InvalidDispatch, Span::NONE, message);
    };
    let one = one.specialise(&[])?.into_module();
    let found = &one.kernels[0];
    let span = found.span;
    if found.float_mode == FloatMode::Strict {
        let message = format!(
            "kernel `@{kernel}` is `strict`, but WGSL does not promise correctly rounded operations, \
             subnormals, infinities and NaN"
        );
        return fail(Rule::UnsupportedFloatMode, span, message);
    }
    if found.active_collectives {
        let message = format!(
            "kernel `@{kernel}` has collectives over the active threads, and WGSL does not promise which \
             threads are active; the `cpu` and `checked` devices know"
        );
        return fail(Rule::UnsupportedFeature, span, message);
    }
    let lacks = texture::refused(found, options);
    if !lacks.is_empty() {
        return Err(Diagnostics(lacks));
    }
    if let Some(size) = found.threadgroup_size
        && size != options.threadgroup_size
    {
        let message = format!(
            "kernel `@{kernel}` has the threadgroup size {size:?}, not {:?}",
            options.threadgroup_size
        );
        return fail(Rule::InvalidDispatch, span, message);
    }
    let threads: u64 = options
        .threadgroup_size
        .iter()
        .map(|n| u64::from(*n))
        .product();
    if threads == 0 || threads > 1 << 16 {
        let message = format!("a threadgroup of {threads} threads cannot be launched");
        return fail(Rule::InvalidDispatch, span, message);
    }
    let fast = found.float_mode == FloatMode::Fast;
    let keeps = |op, types: &[Type]| {
        // Written in terms of WGSL: two steps less, and less still of many small arguments (`runs.rs`).
        op == Op::Exp && types == [Type::F32]
            || fast && operations::own_function(op, types).is_some()
    };
    let lowered = Lowering {
        int64: options.features.int64,
        fixed_scalars: &options.fixed_scalars,
        threadgroup_size: options.threadgroup_size,
        full_threadgroups: options.full_threadgroups,
        threadgroups_per_workgroup: options.threadgroups_per_workgroup,
        threads_per_invocation: options.threads_per_invocation,
        unroll_rows: options.unroll_rows,
        ..Lowering::new(one, &keeps)
    };
    let lowered = lowered.run(WGSL)?;
    let options = WgslOptions {
        threadgroup_size: lowered.threadgroup_size,
        threadgroups_per_workgroup: lowered.threadgroups_per_workgroup,
        ..options.clone()
    };
    let mut module = lowered.module;
    lengths::narrow(&mut module.kernels[0]);
    let kernel = &module.kernels[0];
    let uniformity = analyse(&module, kernel);
    let plan = plan::plan(&module, kernel, &options)?;
    Writer::new(&module, kernel, &uniformity, plan, &options).write()
}

/// Whether code has integers of 64 bits: their types, their literals, or functions named for them. Comments quote what
/// they like.
fn has_64_bits(code: &str) -> bool {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let mut words = code
        .lines()
        .filter(is_code)
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.any(|word| {
        let is_literal = word.starts_with(|c: char| c.is_ascii_digit());
        matches!(word, "i64" | "u64")
            || is_literal && (word.ends_with("li") || word.ends_with("lu"))
    })
}

impl<'a> Writer<'a> {
    fn new(
        module: &'a Module,
        kernel: &'a Kernel,
        uniformity: &'a Uniformity,
        plan: Plan,
        options: &'a WgslOptions,
    ) -> Writer<'a> {
        let simdgroup_size = kernel.simdgroup_size.unwrap_or(options.simdgroup_size);
        let threads: u32 = options.threadgroup_size.iter().product();
        let multiple = match options.features.barrier_multiple {
            Some(multiple) if plan.collective => multiple,
            _any => 1,
        };
        let rounded = threads.next_multiple_of(multiple);
        // Threads that round up the last subgroup, or the workgroup, are outside the grid too.
        let full = options.full_threadgroups
            && threads.is_multiple_of(simdgroup_size)
            && threads == rounded;
        let threadgroups = Threadgroups {
            size: options.threadgroup_size,
            full: options.full_threadgroups,
            simdgroup_size,
            lengths: &options.threadgroup_lengths,
        };
        let exchange = if options.features.subgroup_size == Some(simdgroup_size) {
            Exchange::Subgroups
        } else {
            Exchange::Memory
        };
        let roles = match exchange {
            Exchange::Subgroups => roles::roles(kernel, uniformity, options.features),
            Exchange::Memory => HashMap::new(),
        };
        let mut names = Names::default();
        if !roles.is_empty() {
            names.reserve(cooperative::WORDS);
        }
        let handles: Vec<_> = (0..)
            .zip(&kernel.params)
            .filter(|(_, p)| matches!(p.kind, ParamKind::Texture(_) | ParamKind::Sampler))
            .map(|(number, p)| (Memory::Param(number), names.unique_object(&p.name)))
            .collect();
        let names_of_memory = plan
            .memories()
            .into_iter()
            .filter_map(|m| {
                Some((
                    m,
                    names.unique_object(&module.memory(kernel, m)?.name.clone()),
                ))
            })
            .chain(handles)
            .collect();
        Writer {
            module,
            kernel,
            uniformity,
            options,
            surplus: (plan.collective || !roles.is_empty()) && !full,
            full,
            launch_order: order::by_stores(module, kernel, options.threadgroup_size),
            observed: observed(module, kernel, &threadgroups),
            plan,
            simdgroup_size,
            threads: rounded,
            exchange,
            names,
            floats: floats::analyse(kernel),
            roles,
            cancelling: if options.features.keeps_floats {
                HashSet::new()
            } else {
                fused::cancelling(kernel)
            },
            comparisons: HashMap::new(),
            chained: chains::chained(kernel),
            orders: HashMap::new(),
            followed_long: if options.features.follows_uniforms {
                value_walks::long(kernel, uniformity)
            } else {
                HashSet::new()
            },
            values: vec![String::new(); kernel.values.len()],
            constants: vec![None; kernel.values.len()],
            helpers: Helpers::default(),
            identity: BTreeSet::new(),
            helper_bytes: 0,
            matrices: String::new(),
            body: String::new(),
            indent: 1,
            quotes: Quotes::default(),
            layouts: Layouts::of(&module.structs),
            next_inst: 0,
            next_region: 0,
            only_existing: false,
            frames: Frames::default(),
            errors: Vec::new(),
            names_of_memory,
            samplers: Vec::new(),
            uses_subgroups: false,
            loops: Loops::default(),
        }
    }

    fn write(mut self) -> Result<Source, Diagnostics> {
        let entry_point = self.names.unique(&self.kernel.name);
        self.check_types();
        if !self.errors.is_empty() {
            return Err(Diagnostics(self.errors));
        }
        let scalars = self.scalar_params();
        self.region(&self.kernel.body);
        if !self.errors.is_empty() {
            return Err(Diagnostics(self.errors));
        }
        self.body.insert_str(0, &self.matrices);
        let mut places = Places::new(self.kernel, self.options.keep_bindings);
        let (declarations, mut bindings, constants) = self.declarations(&scalars, &mut places);
        let workgroup_threads = if self.uses_subgroups {
            // Every subgroup is full: threads that round the last one up are outside the grid.
            self.threads.next_multiple_of(self.simdgroup_size)
        } else {
            self.threads
        };
        let start = self.start(workgroup_threads);
        let (workgroup, workgroup_bytes) = self.workgroup_variables();
        let mut text = self.heading();
        text.push_str(&declarations);
        let watched = self.options.features.ends_loops && self.loops.any();
        if watched {
            let place = places.free();
            text.push_str(&iteration_guard::declaration(&attributes(place)));
            bindings.push(Binding {
                place,
                bound: Bound::IterationGuard,
                writable: true,
            });
        }
        text.push_str(&workgroup);
        for helper in self.helpers.texts() {
            text.push('\n');
            text.push_str(helper);
        }
        text.push_str(&self.entry_function(&entry_point, workgroup_threads, &start, watched));
        if has_64_bits(&text) {
            let heading = text.find("\n\n").map_or(0, |end| end + 1);
            text.insert_str(
                heading,
                "// Needs integers of 64 bits, `i64` and `u64`: naga and wgpu have them, browsers have not.\n",
            );
        }
        Ok(Source {
            text,
            entry_point,
            bindings,
            constants,
            workgroup_threads,
            threadgroups_per_workgroup: self.options.threadgroups_per_workgroup,
            launch_order: self.launch_order,
            workgroup_bytes,
            simdgroup_size: self.simdgroup_size,
            uses_subgroups: self.uses_subgroups,
            guards: self.has_guards(),
        })
    }

    /// The entry point; one that is watched checks, however its body returns, that no loop was left too early.
    fn entry_function(
        &self,
        name: &str,
        threads: u32,
        start: &body::Start,
        watched: bool,
    ) -> String {
        let attributes = format!("@compute @workgroup_size({threads})");
        let (text, body) = (&start.text, &self.body);
        let builtins = start.parameters.iter();
        let declared: Vec<String> = builtins
            .clone()
            .map(|[builtin, name, ty]| format!("@builtin({builtin}) {name}: {ty}"))
            .collect();
        let declared = declared.join(", ");
        if !watched {
            return format!("\n{attributes}\nfn {name}({declared}) {{\n{text}{body}}}\n");
        }
        let plain: Vec<String> = builtins
            .clone()
            .map(|[_, name, ty]| format!("{name}: {ty}"))
            .collect();
        let given: Vec<&str> = builtins.map(|[_, name, _]| *name).collect();
        format!(
            "\nfn {name}__body({}) {{\n{text}{body}}}\n\n{attributes}\nfn {name}({declared}) {{\n    \
             {name}__body({});\n{}}}\n",
            plain.join(", "),
            given.join(", "),
            iteration_guard::check(),
        )
    }

    /// Where the text comes from.
    fn heading(&self) -> String {
        let mut text = format!(
            "// Kernel @{}, written by Invar.\n",
            one_line(&self.kernel.name)
        );
        for (i, source) in self.module.sources.iter().enumerate() {
            let number = if self.module.sources.len() > 1 {
                format!(" {i}")
            } else {
                String::new()
            };
            let name = one_line(&source.name);
            text.push_str(&format!("// Source{number}: {name}\n"));
        }
        if !self.roles.is_empty() {
            // naga takes conditions for different in the lanes of a simdgroup that are not.
            text.push_str(
                "\nenable wgpu_cooperative_matrix;\ndiagnostic(off, derivative_uniformity);\n",
            );
        }
        if self.has_f16() {
            text.push_str(if self.options.features.f16 {
                "\nenable f16;\nalias float16 = f16;\n"
            } else {
                "\n// Holds an f16.\nalias float16 = f32;\n"
            });
        }
        text
    }

    /// Whether a value or a location is an `f16`.
    fn has_f16(&self) -> bool {
        let values = self.kernel.values.iter().map(|v| v.ty.scalar());
        values.into_iter().any(|s| s == Some(Scalar::F16))
            || self.plan.memories().into_iter().any(|memory| {
                let info = self.module.memory(self.kernel, memory);
                info.is_some_and(|info| {
                    let locations = info.element.locations(&self.module.structs);
                    locations.iter().any(|(_, scalar)| *scalar == Scalar::F16)
                })
            })
    }

    // ---- types ----

    /// Refuses types that the target lacks.
    fn check_types(&mut self) {
        let mut seen = BTreeSet::new();
        let mut refused = Vec::new();
        let mut check = |ty: Type, span: Span, name: String| {
            let reason = match ty.scalar() {
                Some(Scalar::F64) => "WGSL has no f64",
                Some(Scalar::I64 | Scalar::U64) if !self.options.features.int64 => {
                    "the target has no 64-bit integers"
                }
                Some(_) | None => return,
            };
            if seen.insert(reason) {
                refused.push((span, format!("{name} has type {ty}, but {reason}")));
            }
        };
        for param in &self.kernel.params {
            if let ParamKind::Scalar { value } = param.kind {
                let name = format!("parameter `%{}`", param.name);
                check(self.kernel.ty(value), param.span, name);
            }
        }
        self.kernel.for_each_inst(&mut |inst| {
            for value in &inst.results {
                let name = format!("`{}`", self.module.called(self.kernel, *value));
                check(self.kernel.ty(*value), inst.span, name);
            }
        });
        for (span, message) in refused {
            self.refuse(Rule::UnsupportedFeature, span, message);
        }
    }

    // ---- the module's declarations ----

    /// The expressions of scalar parameters, and the fields of the hidden constants that hold them:
    /// name and WGSL type.
    fn scalar_params(&mut self) -> Vec<(usize, Type, Vec<String>)> {
        let mut fields = Vec::new();
        let params = self.kernel.params.iter().enumerate();
        for (i, param) in params {
            let ParamKind::Scalar { value } = param.kind else {
                continue;
            };
            let ty = self.ty(value);
            let scalar = ty.component_scalar();
            let local = self.name_value(value);
            let words: Vec<String> = (0..ty.component_count())
                .flat_map(|c| {
                    let part = if ty.component_count() == 1 {
                        local.clone()
                    } else {
                        format!("{local}_{c}")
                    };
                    if scalar.size_bytes() == 8 {
                        vec![format!("{part}_low"), format!("{part}_high")]
                    } else {
                        vec![part]
                    }
                })
                .map(|field| format!("{field}__value"))
                .collect();
            let parts: Vec<String> = words
                .chunks(if scalar.size_bytes() == 8 { 2 } else { 1 })
                .map(|part| {
                    let read = |w: &String| format!("constants.{w}");
                    let words: Vec<String> = part.iter().map(read).collect();
                    types::from_words(scalar, &words)
                })
                .collect();
            let text = types::assemble(ty, &parts);
            self.line(format!("let {local} = {text};"));
            self.values[value.0 as usize] = local;
            fields.push((i, ty, words));
        }
        fields
    }

    fn declarations(
        &mut self,
        scalars: &[(usize, Type, Vec<String>)],
        places: &mut Places,
    ) -> (String, Vec<Binding>, Constants) {
        let mut text = String::new();
        let mut bindings = Vec::new();
        let mut members: Vec<String> = ["threads", "threadgroups", "first"]
            .into_iter()
            .flat_map(|what| ["x", "y", "z"].map(|d| format!("{what}_{d}: u32")))
            .chain(["row: u32".to_string()])
            .collect();
        let mut fields = Vec::new();
        for memory in self.plan.memories() {
            let Some(info) = self.module.memory(self.kernel, memory) else {
                continue;
            };
            if !matches!(info.space, AddressSpace::Device | AddressSpace::Constant) {
                continue;
            }
            let object = self.plan.object(memory);
            let (writable, coherent) = (object.written, object.coherent);
            let access = if writable { "read_write" } else { "read" };
            let coherent = if coherent && self.options.features.coherent {
                "@coherent "
            } else {
                ""
            };
            let name = &self.names_of_memory[&memory];
            let element = object.storage.wgsl();
            let place = match memory {
                Memory::Param(i) => places.of_param(i as usize),
                Memory::Constant(_) | Memory::Alloc(_) => places.free(),
            };
            text.push_str(&format!(
                "\n{} {coherent}var<storage, {access}> {name}: array<{element}>;",
                attributes(place)
            ));
            let bound = match memory {
                Memory::Param(i) => {
                    members.push(format!("{name}__length: u32"));
                    fields.push(Field::Length(i as usize));
                    Bound::Param(i as usize)
                }
                Memory::Constant(i) => Bound::Contents(plan::contents(self.module, i)),
                Memory::Alloc(_) => continue,
            };
            bindings.push(Binding {
                place,
                bound,
                writable,
            });
        }
        text.push_str(&self.texture_variables(places, &mut bindings));
        for (param, ty, words) in scalars {
            members.extend(words.iter().map(|w| format!("{w}: u32")));
            fields.push(Field::Scalar(*param, *ty));
        }
        let size_bytes = (members.len() as u64 * 4).next_multiple_of(16);
        while (members.len() as u64) * 4 < size_bytes {
            members.push(format!("padding_{}: u32", members.len()));
        }
        let place = places.free();
        text.push_str(&format!(
            "\n\nstruct Constants {{\n    {},\n}}\n{} var<uniform> constants: Constants;\n",
            members.join(",\n    "),
            attributes(place)
        ));
        bindings.push(Binding {
            place,
            bound: Bound::Constants,
            writable: false,
        });
        (text, bindings, Constants { fields, size_bytes })
    }

    /// Threadgroup and thread arrays and what a thread knows of its place; and the bytes of workgroup
    /// memory.
    fn workgroup_variables(&mut self) -> (String, u64) {
        let mut text = String::new();
        let mut bytes = self.helper_bytes;
        for memory in self.plan.memories() {
            let Some(info) = self.module.memory(self.kernel, memory) else {
                continue;
            };
            let class = match info.space {
                AddressSpace::Threadgroup => "workgroup",
                AddressSpace::Thread => "private",
                AddressSpace::Device
                | AddressSpace::Constant
                | AddressSpace::Texture
                | AddressSpace::Imageblock => continue,
            };
            let object = self.plan.object(memory);
            let name = &self.names_of_memory[&memory];
            if class == "workgroup" {
                bytes += object.slots * object.storage.slot_bytes(self.options.features);
            }
            text.push_str(&format!(
                "\nvar<{class}> {name}: array<{}, {}>;",
                object.storage.wgsl(),
                object.slots.max(1)
            ));
        }
        let uses: Vec<Identity> = self.identity.iter().copied().collect();
        for identity in uses {
            text.push_str(match identity {
                Identity::Threadgroup => "\n// The threadgroup's position in the grid.\nvar<private> threadgroup: vec3<u32>;",
                Identity::Size => "\n// The size of this threadgroup, smaller at an edge of the grid.\nvar<private> threadgroup_size: vec3<u32>;",
                Identity::Count => "\n// The threads of this threadgroup, and whether this is one of them.\nvar<private> thread_count: u32;\nvar<private> exists: bool;",
                Identity::Thread => "\n// The thread's number in its threadgroup.\nvar<private> thread: u32;",
                Identity::Position => "\n// The thread's position in its threadgroup.\nvar<private> position: vec3<u32>;",
            });
        }
        if !text.is_empty() {
            text.push('\n');
        }
        (text, bytes)
    }
}
