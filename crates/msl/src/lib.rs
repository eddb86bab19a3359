//! Kernels in Metal's shading language as Invar kernels, on any machine.
//!
//! A source is rewritten word by word as C++ (`rewrite.rs`, `members.rs`, `specialisations.rs`) and compiled by clang
//! with headers of our own (`clang.rs`), without the bodies of functions that something is wrong in (`bodies.rs`);
//! LLVM's library inlines every call and puts variables in registers ([`invar_llvm::foreign`]), of all kernels at once
//! and by several threads (`shares.rs`).
//! Of what is left, `objects.rs` says which object each address leads to, `memory.rs` declares and accesses
//! these, `declared.rs` says what the source calls their elements, `translate.rs` has the instructions, `addresses.rs` those on addresses as numbers, `calls.rs` Metal's own functions, `lanes.rs` the elements of
//! simdgroup matrices, `textures.rs` textures and samplers,
//! `pointers.rs` argument buffers, and `flow.rs` makes `if` and
//! `loop` of jumps (`graph.rs`). Instructions point at the source's own lines (`places.rs`) and name the calls
//! that led to them.
//!
//! What was translated is kept on disk (`kept.rs`).
//!
//! How the language and the memory model fit together, and what is not supported, is in `docs/metal.md`.
//! Deliberately absent: a reader of C++, which clang is; other stages than compute.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::path::PathBuf;

use invar_ir::room::{COMPILER_BYTES, with_room};
use invar_ir::{
    Const, Diagnostic, Diagnostics, InstKind, Kernel, KernelBuilder, Module, Op, Position, Region,
    Rule, Scalar, Source, Span, Value,
};
use invar_llvm::foreign::{self, MAX_LOOPS};
use invar_wgsl::{Entry, Resource};

mod accesses;
mod addresses;
mod advice;
mod atomics;
mod bodies;
mod calls;
mod clang;
mod declared;
mod distances;
mod elements;
mod fields;
mod flow;
mod graph;
mod kept;
mod kernels;
mod known;
mod lanes;
mod logging;
mod members;
mod memory;
mod needed;
mod objects;
mod parameters;
mod places;
mod pointers;
mod positions;
mod rewrite;
mod shares;
mod specialisations;
mod spelling;
mod textures;
mod tokens;
mod translate;
mod translator;
mod unset;
mod value;

pub use advice::in_metal;
pub use clang::find as find_clang;
use clang::{Compiled, Complaint, Failure, File, Request, Sources};
pub use invar_wgsl::directives;
pub use kernels::Kernels;
use places::{Calls, Places};
use shares::Named;
use translator::Translator;

/// A source, and what it is compiled with.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The file's name; it need not be there.
    pub name: String,
    /// What is in it.
    pub text: String,
    /// Folders of files that it includes.
    pub includes: Vec<PathBuf>,
    /// Macros, as NAME or NAME=VALUE.
    pub defines: Vec<String>,
    /// Values of function constants, by name or number: a number, `true` or `false`.
    pub constants: Vec<(String, String)>,
}

/// What is wrong with a source as a whole.
#[derive(Debug)]
pub struct Wrong {
    /// The files that it is about.
    pub sources: Vec<Source>,
    /// What it is.
    pub diagnostics: Diagnostics,
}

impl From<Wrong> for Diagnostics {
    fn from(wrong: Wrong) -> Diagnostics {
        wrong.diagnostics
    }
}

impl Library {
    /// Makes kernels of the source: the one of a name, or all.
    ///
    /// # Errors
    /// There is no clang; what clang says is wrong with the source, at its place; the kernel is not there, or
    /// something in it is not supported, with its line.
    pub fn kernels(&self, kernel: Option<&str>) -> Result<Kernels, Diagnostics> {
        let kernels = self.possible(kernel)?;
        match kernels.entries.is_empty() {
            true => Err(kernels.refusals()),
            false => Ok(kernels),
        }
    }

    /// As [`Library::kernels`], but where each that is asked for is refused, these refusals are no error, and the
    /// module has the files that they are about.
    ///
    /// # Errors
    /// There is no clang; what clang says is wrong with the source, at its place; the kernel is not there.
    pub fn possible(&self, kernel: Option<&str>) -> Result<Kernels, Wrong> {
        with_room(COMPILER_BYTES, || self.translated(kernel))
    }

    fn translated(&self, kernel: Option<&str>) -> Result<Kernels, Wrong> {
        let constants = self.checked_constants().map_err(|why| self.wrong(why))?;
        let request = self.request(kernel, &constants);
        let sources = clang::sources(&request);
        let place = kept::place(&request, &sources);
        if let Some(kept) = place.as_ref().and_then(kept::Place::load) {
            return Ok(kept);
        }
        let compiled = self.compiled(&request, sources)?;
        let all = self.translate(&compiled, kernel)?;
        let is_nothing = all.entries.is_empty() && all.refused.is_empty();
        if let Some(place) = place.filter(|_| compiled.knows_files && !is_nothing) {
            place.store(&all);
        }
        if is_nothing {
            // Of the others of templates none was made.
            let names = self.names().unwrap_or_default();
            let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
            return Err(self.wrong(no_kernel(&self.name, kernel, &names)));
        }
        Ok(all)
    }

    /// The names of all kernels, by which hosts know them, and those of their functions.
    ///
    /// # Errors
    /// As [`Library::kernels`], but for what kernels have in them.
    pub fn names(&self) -> Result<Vec<(String, String)>, Wrong> {
        with_room(COMPILER_BYTES, || self.read_names())
    }

    fn read_names(&self) -> Result<Vec<(String, String)>, Wrong> {
        let compiled = self.compile(Some(""))?;
        let module =
            foreign::Module::read(&compiled.ir).map_err(|why| self.wrong(unreadable(&why)))?;
        let annotations = module.annotations();
        let is_host = |symbol: &str| {
            let mut all = annotations.iter();
            all.any(|(s, what, _)| s == symbol && what == "msl.host_name")
        };
        let mut names: Vec<(String, String)> = Vec::new();
        for (symbol, what, text) in &annotations {
            let function = || {
                let mut all = annotations.iter();
                let found = all.find(|(s, what, _)| s == symbol && what == "msl.instance");
                let text = found.and_then(|(.., text)| text.as_deref());
                match text.and_then(|text| text.split('<').next()) {
                    Some(function) => function.trim().to_string(),
                    None => foreign::function_name(symbol),
                }
            };
            let name = match (&**what, text) {
                ("msl.host_name", Some(name)) => name.clone(),
                ("msl.kernel", _) if !is_host(symbol) => foreign::function_name(symbol),
                _other => continue,
            };
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, function()));
            }
        }
        Ok(names)
    }

    /// The names of the function constants.
    ///
    /// # Errors
    /// As [`Library::names`].
    pub fn constant_names(&self) -> Result<Vec<String>, Wrong> {
        let compiled = with_room(COMPILER_BYTES, || self.compile(Some("")))?;
        Ok(compiled.constants.into_iter().map(|c| c.name).collect())
    }

    fn compile(&self, kernel: Option<&str>) -> Result<Compiled, Wrong> {
        let constants = self.checked_constants().map_err(|why| self.wrong(why))?;
        let request = self.request(kernel, &constants);
        self.compiled(&request, clang::sources(&request))
    }

    fn request<'a>(
        &'a self,
        kernel: Option<&'a str>,
        constants: &'a HashMap<String, String>,
    ) -> Request<'a> {
        Request {
            name: &self.name,
            text: &self.text,
            includes: &self.includes,
            defines: &self.defines,
            constants,
            kernel,
        }
    }

    fn compiled(&self, request: &Request, sources: Sources) -> Result<Compiled, Wrong> {
        let compiled = clang::compile(request, sources).map_err(|f| self.complaints(f))?;
        self.unknown_constants(&compiled, request.constants)
            .map_err(|why| self.wrong(why))?;
        Ok(compiled)
    }

    fn translate(&self, compiled: &Compiled, asked: Option<&str>) -> Result<Kernels, Wrong> {
        // What kernels share, and the kernels apart from it: it is copied for each, should that one be refused.
        let (mut module, mut kernels) = (Module::default(), Vec::new());
        let (mut entries, mut refused) = (Vec::new(), Vec::new());
        if let Some(file) = compiled.files.values().find(|f| f.name == self.name) {
            places::source(file, &self.name, &mut module);
        }
        let mut calls = Calls::default();
        // Whether each kernel comes to a body that was left out.
        let mut is_all_wrong = asked.is_none() && !compiled.refusals.is_empty();
        let names = shares::kernels(&compiled.ir, asked, &mut |named, function| {
            let name = &*named.name;
            let before = module.clone();
            is_all_wrong &= matches!(&function, Ok(function) if !left_out(function).is_empty());
            let translated = match function {
                Ok(function) if !left_out(&function).is_empty() => {
                    Err(self.refused(&left_out(&function), compiled, module.clone()))
                }
                Ok(mut function) => {
                    objects::one_place(&mut function);
                    self.kernel(
                        mem::take(&mut module),
                        named,
                        &function,
                        compiled,
                        &mut calls,
                    )
                }
                Err(loops) => Err((one(too_many_loops(name, loops)), Vec::new())),
            };
            match translated {
                Ok((made, entry)) => {
                    module = made;
                    kernels.append(&mut module.kernels);
                    entries.push(entry);
                }
                Err((errors, sources)) => {
                    module = before;
                    calls.keep_first(module.calls.len());
                    // Those that were there are the first of them.
                    let known = module.sources.len();
                    module.sources.extend(sources.into_iter().skip(known));
                    refused.push((name.to_string(), errors));
                }
            }
        });
        if is_all_wrong && !refused.is_empty() {
            // Then so is the source as a whole, and all that is wrong is told.
            let all: Vec<usize> = (0..compiled.refusals.len()).collect();
            let (diagnostics, sources) = self.refused(&all, compiled, module);
            return Err(Wrong {
                sources,
                diagnostics,
            });
        }
        Ok(Kernels {
            names: names.map_err(|why| self.wrong(unreadable(&why)))?,
            module: Module { kernels, ..module },
            entries,
            refused,
            constants: compiled.constants.iter().map(|c| c.name.clone()).collect(),
        })
    }

    /// What is wrong in bodies that were left out, and the files that this is about.
    fn refused(
        &self,
        numbers: &[usize],
        compiled: &Compiled,
        mut module: Module,
    ) -> (Diagnostics, Vec<Source>) {
        let mut all = Vec::new();
        for refusal in numbers.iter().filter_map(|n| compiled.refusals.get(*n)) {
            let Diagnostics(found) =
                self.diagnostics(&refusal.complaints, &refusal.files, &mut module);
            all.extend(found);
        }
        (Diagnostics(all), module.sources)
    }

    /// The kernel of a function as the last of the module; or what is wrong with it, and the files that this is about.
    fn kernel(
        &self,
        module: Module,
        named: &Named,
        function: &foreign::Function,
        compiled: &Compiled,
        calls: &mut Calls,
    ) -> Result<(Module, Entry), (Diagnostics, Vec<Source>)> {
        let name = &*named.name;
        let k = KernelBuilder::new(module, name);
        let places = Places::new(&compiled.files, &self.name, &function.locations, calls);
        let mut t = Translator::new(function, k, places);
        t.at(function.location);
        t.k.kernel_mut().span = t.k.span();
        t.unset = compiled
            .constants
            .iter()
            .filter(|c| !self.gives(c))
            .map(|c| c.name.clone())
            .collect();
        let translated = t.refuse_unknown().and_then(|()| {
            t.check_parameters()?;
            let bound = t.declare()?;
            if let Some(most) = named.most_threads {
                let threads = "threadgroup.x * threadgroup.y * threadgroup.z";
                t.k.requires(&format!("{threads} <= {most}"));
            }
            t.declare_lanes()?;
            t.body()?;
            Ok((bound, mem::take(&mut t.variables)))
        });
        // What is refused does not have the module whose calls it names.
        let (bound, variables) = translated.map_err(|error| {
            let module = t.k.module();
            let error = error.bringing(&module.calls);
            (one(error), module.sources.clone())
        })?;
        let uses_lanes = uses_lanes(&function.insts);
        if uses_lanes {
            t.k.kernel_mut().simdgroup_size = Some(SIMDGROUP);
        }
        let (known, sources) = (t.k.module().calls.clone(), t.k.module().sources.clone());
        let mut module = t.k.finish().map_err(|Diagnostics(all)| {
            let all = all.into_iter().map(|error| error.bringing(&known));
            (Diagnostics(all.collect()), sources)
        })?;
        if let Some(kernel) = module.kernels.pop() {
            let kernel = invar_wgsl::simplified(&module, kernel);
            module.kernels.push(kernel);
            let are_active = uses_lanes && needs_active(&module);
            for kernel in &mut module.kernels {
                kernel.active_collectives = are_active;
                if uses_lanes && !are_active {
                    begin_at_lane_zero(kernel);
                }
            }
        }
        let resources = bound.into_iter().map(|b| Resource {
            params: vec![b.name.clone()],
            name: b.name,
            group: None,
            binding: b.index,
            head_bytes: None,
            length: b.length,
            format: None,
            declared: b.declared,
        });
        let entry = Entry {
            name: name.to_string(),
            resources: resources.collect(),
            variables,
        };
        Ok((module, entry))
    }

    fn gives(&self, constant: &rewrite::FunctionConstant) -> bool {
        self.constants
            .iter()
            .any(|(name, _)| *name == constant.name || Some(name) == constant.number.as_ref())
    }

    fn checked_constants(&self) -> Result<HashMap<String, String>, Diagnostic> {
        let mut all = HashMap::new();
        for (name, value) in &self.constants {
            let is_number = |text: &str| {
                matches!(text, "true" | "false") || text.parse::<f64>().is_ok_and(f64::is_finite)
            };
            let list = value.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
            let is_value = match list {
                Some(list) => list.split(',').all(|part| is_number(part.trim())),
                None => is_number(value),
            };
            if !is_value {
                return Err(Diagnostic::error(
                    Rule::FunctionConstant,
                    Span::NONE,
                    format!(
                        "`{name}`: `{value}` is not a number; a function constant gets a number, true or false, and one of a \
                         vector's type a list of them, `[1, 20]`"
                    ),
                ));
            }
            all.insert(name.clone(), value.clone());
        }
        Ok(all)
    }

    fn unknown_constants(
        &self,
        compiled: &Compiled,
        given: &HashMap<String, String>,
    ) -> Result<(), Diagnostic> {
        let known = |name: &String| {
            let mut all = compiled.constants.iter();
            all.any(|c| c.name == *name || c.number.as_ref() == Some(name))
        };
        let is_twice = |c: &&rewrite::FunctionConstant| {
            let number = c.number.as_ref().filter(|number| **number != c.name);
            given.contains_key(&c.name) && number.is_some_and(|number| given.contains_key(number))
        };
        if let Some(twice) = compiled.constants.iter().find(is_twice) {
            return Err(Diagnostic::error(
                Rule::FunctionConstant,
                Span::NONE,
                format!(
                    "the function constant `{}` has two values, by its name and by its number",
                    twice.name
                ),
            ));
        }
        let Some(name) = given.keys().filter(|name| !known(name)).min() else {
            return Ok(());
        };
        let names: Vec<String> = compiled.constants.iter().map(|c| c.name.clone()).collect();
        let what = match names.is_empty() {
            true => "the source has none".to_string(),
            false => format!("the source has {}", unset::listed(&names)),
        };
        Err(Diagnostic::error(
            Rule::FunctionConstant,
            Span::NONE,
            format!("there is no function constant `{name}`: {what}"),
        ))
    }

    /// Something about the source as a whole.
    fn wrong(&self, diagnostic: Diagnostic) -> Wrong {
        Wrong {
            sources: vec![Source {
                name: self.name.as_str().into(),
                text: self.text.as_str().into(),
            }],
            diagnostics: one(diagnostic),
        }
    }

    /// What clang says, as diagnostics about the user's files.
    fn complaints(&self, failure: Failure) -> Wrong {
        let (complaints, files) = match failure {
            Failure::Other(why) => {
                return self.wrong(Diagnostic::error(Rule::UnsupportedFeature, Span::NONE, why));
            }
            Failure::Source(complaints, files) => (complaints, files),
        };
        let mut module = Module::default();
        if let Some(file) = files.values().find(|f| f.name == self.name) {
            places::source(file, &self.name, &mut module);
        }
        let diagnostics = self.diagnostics(&complaints, &files, &mut module);
        Wrong {
            sources: module.sources,
            diagnostics,
        }
    }

    /// What clang says of files, which the module gets.
    fn diagnostics(
        &self,
        complaints: &[Complaint],
        files: &HashMap<String, File>,
        module: &mut Module,
    ) -> Diagnostics {
        let span = |file: &str, line, column, module: &mut Module| {
            let location = [foreign::Location {
                file: file.to_string(),
                line,
                column,
                function: String::new(),
                inlined_at: None,
            }];
            let mut calls = Calls::default();
            Places::new(files, &self.name, &location, &mut calls).span(0, module)
        };
        let mut all = Vec::new();
        for complaint in complaints {
            let Complaint {
                file,
                line,
                column,
                message,
                within,
                notes,
                ..
            } = complaint;
            let at = span(file, *line, *column, module);
            let message = match at.source {
                // Components are read by functions that the source does not name.
                Some(id) if message.contains("'invar_") => {
                    let word = word_at(&module.sources[id.0 as usize].text, at.start);
                    if message.starts_with("no matching member function for call to 'invar_") {
                        format!("'{word}' names a component that the vector does not have")
                    } else {
                        let said = message.replace("'invar_swizzle'", &format!("'{word}'"));
                        let said = said.replace("'invar_components'", &format!("'{word}'"));
                        (said.replace("'invar_of_", "'")).replace("'invar_to_", "'")
                    }
                }
                Some(_) => message.clone(),
                None => format!("{file}:{line}:{column}: {message}"),
            };
            let mut diagnostic =
                Diagnostic::error(Rule::Syntax, at, message).labelled(within.clone());
            for note in notes {
                let at = span(&note.file, note.line, note.column, module);
                diagnostic = diagnostic.and(at, note.message.clone());
            }
            all.push(diagnostic);
        }
        Diagnostics(all)
    }
}

/// The word of a text that is at a place.
fn word_at(text: &str, at: Position) -> String {
    let line: Vec<char> = text
        .lines()
        .nth((at.line as usize).saturating_sub(1))
        .unwrap_or_default()
        .chars()
        .collect();
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let at = (at.column as usize).saturating_sub(1).min(line.len());
    let before = line[..at].iter().rev().take_while(|c| is_word(c)).count();
    line[at - before..]
        .iter()
        .take_while(|c| is_word(c))
        .collect()
}

/// The numbers of the bodies that were left out and that a kernel comes to.
fn left_out(function: &foreign::Function) -> Vec<usize> {
    let calls = function.insts.iter().filter_map(|inst| match &inst.kind {
        foreign::Kind::Call(name) if name == "invar.refused" => inst.operands.first(),
        _other => None,
    });
    let mut all: Vec<usize> = calls
        .filter_map(|number| match number {
            foreign::Operand::Bits(_, number) => usize::try_from(*number).ok(),
            _computed => None,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Metal's simdgroups.
const SIMDGROUP: u32 = 32;

/// Whether a kernel's meaning depends on the size of a simdgroup.
fn uses_lanes(insts: &[foreign::Inst]) -> bool {
    insts.iter().any(|inst| match &inst.kind {
        foreign::Kind::Call(name) => ["invar.simd", "invar.quad", "invar.sgm"]
            .iter()
            .any(|p| name.starts_with(p)),
        _other => false,
    })
}

/// Whether nothing is wrong with a kernel but that not all threads reach functions of a simdgroup. In this language
/// these are over the threads that do (X7).
fn needs_active(module: &Module) -> bool {
    match invar_ir::verify(module.clone()) {
        Ok(_) => false,
        Err(Diagnostics(errors)) => errors.iter().all(|e| e.rule == Rule::CollectiveNotUniform),
    }
}

/// Where whole simdgroups come, the first of their threads is lane 0.
fn begin_at_lane_zero(kernel: &mut Kernel) {
    let mut lanes = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op {
            op: Op::ThreadIndexInSimdgroup,
            ..
        } = inst.kind
        {
            lanes.extend(inst.results.iter().copied());
        }
    });
    first_lanes(&mut kernel.body, &lanes);
}

/// Puts 0 in place of what the first thread has of these.
fn first_lanes(region: &mut Region, lanes: &HashSet<Value>) {
    for inst in &mut region.insts {
        if let InstKind::Op {
            op: Op::SimdBroadcastFirst,
            args,
            ..
        } = &inst.kind
            && lanes.contains(&args[0])
        {
            inst.kind = InstKind::Const(Const {
                scalar: Scalar::U32,
                bits: 0,
            });
        }
        for inside in inst.kind.regions_mut() {
            first_lanes(inside, lanes);
        }
    }
}

fn no_kernel(source: &str, asked: Option<&str>, names: &[String]) -> Diagnostic {
    let message = match asked {
        Some(asked) if !names.is_empty() => {
            // Those that begin alike come first.
            let alike = |name: &str| {
                name.bytes()
                    .zip(asked.bytes())
                    .take_while(|(a, b)| a == b)
                    .count()
            };
            let mut known: Vec<&String> = names.iter().collect();
            known.sort_by_key(|name| std::cmp::Reverse(alike(name)));
            let mut list: Vec<String> = known
                .iter()
                .take(LISTED)
                .map(|n| format!("`{n}`"))
                .collect();
            if known.len() > LISTED {
                list.push(format!("{} more", known.len() - LISTED));
            }
            format!("there is no kernel `{asked}`; there is {}", list.join(", "))
        }
        Some(_) | None => format!("{source} has no kernel"),
    };
    Diagnostic::error(Rule::NoKernel, Span::NONE, message)
}

/// So many kernels are named where another was asked for.
const LISTED: usize = 8;

fn one(diagnostic: Diagnostic) -> Diagnostics {
    Diagnostics(vec![diagnostic])
}

fn too_many_loops(kernel: &str, count: usize) -> Diagnostic {
    let message = format!(
        "kernel `{kernel}` has {count} loops with every call inlined; the limit is {MAX_LOOPS}"
    );
    Diagnostic::error(Rule::LimitExceeded, Span::NONE, message)
        .help("divide it into several kernels")
}

fn unreadable(why: &str) -> Diagnostic {
    Diagnostic::error(Rule::UnsupportedFeature, Span::NONE, why)
        .help("LLVM's library must be as new as clang: INVAR_LLVM and INVAR_CLANG name others")
}

/// Whether a file is a source in Metal's language, by its name.
pub fn is_metal(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|e| e == "metal")
}
