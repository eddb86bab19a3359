//! Runs MSL on the CPU: through `metal_stdlib` clang reads it as C++ for OpenCL, which checks its address
//! spaces, and `runtime.cpp` runs what came of it, a fiber for each thread, simdgroups of 32.
//!
//! Many kernels go through one call of clang, many dispatches through one process. Both have time limits, and
//! whatever goes wrong in them is an outcome, never a panic.
//!
//! Deliberately absent: speed, and any GPU.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use invar_codegen::msl::{Argument, MslOptions, Source, write};
use invar_codegen::passes::print::BUFFER_BYTES;
use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::{Diagnostic, Diagnostics, Kernel, ParamKind, Rule, Span, Verified};

/// The compilers; Debian and Ubuntu name them so.
const CLANG: &str = "clang-19";
const CLANG_CPP: &str = "clang++-19";

/// Why MSL cannot run here, if it cannot.
pub fn missing() -> Option<String> {
    for program in [CLANG, CLANG_CPP] {
        match Command::new(program).arg("--version").output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Some(format!("{program}: {}", output.status)),
            Err(error) => return Some(format!("{program}: {error}")),
        }
    }
    None
}

/// A kernel that was written.
struct Written {
    source: Source,
    /// Whether whole threadgroups are launched.
    whole_threadgroups: bool,
    module: Verified,
    kernel: String,
}

/// What clang reads in the place of Metal's header, and what runs its output.
const HEADER: &str = include_str!("metal_stdlib");
const RUNTIME: &str = include_str!("runtime.cpp");

/// Lanes of a simdgroup of this device, as of Metal's.
pub const SIMDGROUP_SIZE: u32 = 32;

/// Threadgroup memory of every Apple GPU, in bytes.
pub const THREADGROUP_MEMORY_BYTES: u64 = 32 << 10;

/// Why a kernel could not be run: a sentence.
fn failed(message: String) -> Diagnostics {
    Diagnostics(vec![Diagnostic::error(
        Rule::Expectation,
        Span::NONE,
        message,
    )])
}

/// The options for this device: clang keeps every rule of floats.
pub fn options() -> MslOptions {
    MslOptions {
        ieee_float: true,
        ..MslOptions::default()
    }
}

/// These options with what a dispatch says of its threadgroups.
pub fn fitted(options: &MslOptions, dispatch: &Dispatch, args: &[Arg<'_>]) -> MslOptions {
    let size = dispatch.threadgroup;
    let lengths = args.iter().filter_map(|arg| match arg {
        Arg::ThreadgroupLength(length) => Some(*length),
        _buffer_or_scalar => None,
    });
    MslOptions {
        threadgroup_size: Some(size),
        threadgroup_lengths: lengths.collect(),
        full_threadgroups: match dispatch.grid {
            Grid::Threads(threads) => (0..3).all(|d| threads[d].is_multiple_of(size[d])),
            Grid::Threadgroups(_) => true,
        },
        ..options.clone()
    }
}

/// Kernels that are compiled together, and their dispatches.
#[derive(Default)]
pub struct Batch {
    kernels: Vec<Written>,
    /// The number of each text.
    known: HashMap<String, usize>,
    jobs: Vec<Job>,
}

/// An argument: bytes of a buffer, or the size of threadgroup memory.
type Bound = Result<Vec<u8>, u64>;

/// A dispatch.
struct Job {
    entry: usize,
    threads: [u32; 3],
    threadgroup: [u32; 3],
    seed: u32,
    arguments: Vec<Bound>,
    /// Which parameters have bytes to read back.
    buffers: Vec<Option<usize>>,
}

/// What a dispatch left: the buffers of the parameters and, of a kernel that prints, that of its lines; or what went wrong.
pub type Outcome = Result<Vec<Arg<'static>>, String>;

impl Batch {
    /// Writes a kernel of a module without function constants; gives its number.
    ///
    /// # Errors
    /// What Metal does not have; and textures, which the runtime here does not have.
    pub fn add(
        &mut self,
        module: &Verified,
        kernel: &str,
        options: &MslOptions,
    ) -> Result<usize, Diagnostics> {
        if let Some(found) = module.kernel(kernel).filter(|k| k.has_textures()) {
            let message = format!("kernel `@{kernel}` has textures, which are not run as MSL here");
            let error = Diagnostic::error(Rule::UnsupportedFeature, found.span, message);
            return Err(Diagnostics(vec![error]));
        }
        let source = write(module, kernel, options)?;
        if let Some(known) = self.known.get(&source.text) {
            return Ok(*known);
        }
        self.known.insert(source.text.clone(), self.kernels.len());
        self.kernels.push(Written {
            source,
            whole_threadgroups: options.whole_threadgroups,
            module: module.clone(),
            kernel: kernel.to_string(),
        });
        Ok(self.kernels.len() - 1)
    }

    /// Adds a dispatch of a kernel by its number. Threads run in one order where the seed is even, in the reverse
    /// where it is odd.
    ///
    /// # Errors
    /// Why Metal refuses it.
    ///
    /// # Panics
    /// If there is no kernel of that number, or the arguments are not its.
    pub fn dispatch(
        &mut self,
        entry: usize,
        dispatch: &Dispatch,
        args: &[Arg],
        seed: u32,
    ) -> Result<(), Diagnostics> {
        let written = &self.kernels[entry];
        let kernel = written.module.kernel(&written.kernel);
        let kernel = kernel.unwrap_or_else(|| panic!("no kernel `{}`", written.kernel));
        let threadgroup = dispatch.threadgroup;
        let grid = match dispatch.grid {
            Grid::Threads(threads) => threads,
            Grid::Threadgroups(groups) => std::array::from_fn(|d| groups[d] * threadgroup[d]),
        };
        let mut threads = grid;
        if written.whole_threadgroups {
            threads = std::array::from_fn(|d| grid[d].next_multiple_of(threadgroup[d]));
        }
        if written.source.full_simdgroups {
            let full = |n: u32| n.is_multiple_of(32);
            let edge = (0..3).any(|d| !threads[d].is_multiple_of(threadgroup[d]));
            if edge || !full(threadgroup.iter().product()) {
                let message = "simdgroup matrices on a partial simdgroup";
                let error = Diagnostic::error(Rule::UnsupportedFeature, Span::NONE, message);
                return Err(Diagnostics(vec![error]));
            }
        }
        let (arguments, buffers) = arguments(written, kernel, args, grid);
        self.jobs.push(Job {
            entry,
            threads,
            threadgroup,
            seed,
            arguments,
            buffers,
        });
        Ok(())
    }

    /// Writes a kernel for a dispatch and adds both. The lowest bit of the seed says in which order threads run, the
    /// next whether whole threadgroups are launched.
    ///
    /// # Errors
    /// What Metal refuses.
    ///
    /// # Panics
    /// If the arguments are not the kernel's.
    pub fn add_dispatch(
        &mut self,
        module: &Verified,
        kernel: &str,
        dispatch: &Dispatch,
        args: &[Arg],
        seed: u32,
    ) -> Result<(), Diagnostics> {
        let options = MslOptions {
            whole_threadgroups: seed & 2 != 0,
            ..fitted(&options(), dispatch, args)
        };
        let entry = self.add(module, kernel, &options)?;
        self.dispatch(entry, dispatch, args, seed)
    }

    /// Compiles the kernels and runs the dispatches in order, with files in a folder of its own. Optimising
    /// shows what a compiler would make of undefined behaviour, and takes six times as long.
    ///
    /// # Errors
    /// A sentence if clang refuses what was written, or the process that runs it fails.
    pub fn run(&self, folder: &Path, optimise: bool) -> Result<Vec<Outcome>, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<PathBuf, String>(path)
        };
        let file = |name: &str| folder.join(name);
        put("metal_stdlib", HEADER.as_bytes())?;
        let runtime = runtime(folder)?;
        let kernels = [
            "-x",
            "clcpp",
            "-cl-std=clc++2021",
            "-cl-no-stdinc",
            "-target",
            "x86_64-linux-gnu",
            "-Wall",
            "-Werror",
            "-Wno-unknown-attributes",
            "-Wno-unknown-pragmas",
            "-Wno-unused-function",
            "-Wno-unused-variable",
            "-Wno-unused-but-set-variable",
            "-Wno-unused-const-variable",
            "-Wno-tautological-compare",
            "-Wno-constant-logical-operand",
            "-Wno-char-subscripts",
            // Said of an index that folds to one beyond any array, whatever guard it stands behind.
            "-Wno-array-bounds",
            // Said of `2 ^ 2`.
            "-Wno-xor-used-as-pow",
        ];
        let level = if optimise { "-O1" } else { "-O0" };
        let common = [level, "-mf16c", "-mfma", "-ffp-contract=on", "-c", "-o"];
        compile(
            limited(CLANG)
                .args(kernels)
                .arg("-I")
                .arg(folder)
                .args(common)
                .arg(file("kernels.o"))
                .arg(put("kernels.cl", self.text().as_bytes())?),
        )?;
        compile(
            limited(CLANG_CPP)
                .arg(put("table.cpp", self.table().as_bytes())?)
                .args([runtime, file("kernels.o")])
                .args(["-lm", "-o"])
                .arg(file("run")),
        )?;
        let output = Command::new(file("run"))
            .arg(put("jobs", &self.job_bytes())?)
            .arg(file("answers"))
            .output()
            .map_err(|e| format!("{}: {e}", file("run").display()))?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!(
                "the kernels' process: {}: {complaints}",
                output.status
            ));
        }
        let answers = fs::read(file("answers")).map_err(|e| format!("the answers: {e}"))?;
        Ok(self.outcomes(&answers, &complaints))
    }

    /// All kernels, each in a namespace of its own, with a function that takes its arguments from an array.
    fn text(&self) -> String {
        let mut text = String::from("#include <metal_stdlib>\n");
        let mut declared = BTreeSet::new();
        for (k, Written { source, .. }) in self.kernels.iter().enumerate() {
            for input in &source.inputs {
                if declared.insert(input.attribute()) {
                    let _ = writeln!(text, "extern \"C\" uint shim_{}(uint);", input.attribute());
                }
            }
            let header = format!("kernel void {}(", source.entry);
            let Some((before, after)) = source.text.split_once(&header) else {
                unreachable!("the writer ends with the kernel");
            };
            let _ = writeln!(text, "namespace n{k} {{\n{before}kernel void k{k}({after}");
            let parameters = after.split(") {").next().unwrap_or_default();
            let _ = writeln!(
                text,
                "extern \"C\" void run_{k}(const ulong* shim_arguments) {{"
            );
            let mut names = Vec::new();
            let parameters = parameters.trim().lines().map(str::trim);
            for (i, parameter) in parameters.filter(|p| !p.is_empty()).enumerate() {
                let Some((declared, attribute)) = parameter.split_once(" [[") else {
                    unreachable!("the writer binds every parameter");
                };
                let name: String = if let Some((_, rest)) = declared.split_once("(*") {
                    rest.split(')').next().unwrap().to_string()
                } else {
                    declared.rsplit(' ').next().unwrap_or_default().to_string()
                };
                let value =
                    if attribute.starts_with("buffer") || attribute.starts_with("threadgroup(") {
                        match declared.split_once("& ") {
                            Some((ty, _)) => format!("*({ty}*)shim_arguments[{i}]"),
                            None => format!("(decltype({name}))shim_arguments[{i}]"),
                        }
                    } else if declared.starts_with("uint3") {
                        format!("uint3(shim_{name}(0), shim_{name}(1), shim_{name}(2))")
                    } else {
                        format!("shim_{name}(0)")
                    };
                let _ = writeln!(text, "    {declared} = {value};");
                names.push(name);
            }
            let _ = writeln!(text, "    k{k}({});\n}}\n}}", names.join(", "));
        }
        text
    }

    fn table(&self) -> String {
        let mut text = String::from("#include <cstdint>\n");
        let mut names = Vec::new();
        for k in 0..self.kernels.len() {
            let _ = writeln!(text, "extern \"C\" void run_{k}(const uint64_t*);");
            names.push(format!("run_{k}"));
        }
        let names = names.join(", ");
        let _ = writeln!(
            text,
            "typedef void (*Entry)(const uint64_t*);\nextern Entry const entries[] = {{{names}}};"
        );
        text
    }

    fn job_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let word = |bytes: &mut Vec<u8>, n: u32| bytes.extend(n.to_le_bytes());
        word(&mut bytes, self.jobs.len() as u32);
        for job in &self.jobs {
            let source = &self.kernels[job.entry].source;
            // Threadgroups may wait for each other, but those of one function share its arrays here.
            let count: u64 = job.threads.iter().map(|n| u64::from(*n)).product();
            let resident = !source.text.contains("\n    threadgroup ") && count <= 4096;
            word(&mut bytes, job.entry as u32);
            for n in job.threads.iter().chain(&job.threadgroup) {
                word(&mut bytes, *n);
            }
            word(&mut bytes, u32::from(resident));
            word(&mut bytes, job.seed);
            word(&mut bytes, job.arguments.len() as u32);
            for argument in &job.arguments {
                match argument {
                    Ok(data) => {
                        word(&mut bytes, 0);
                        bytes.extend((data.len() as u64).to_le_bytes());
                        bytes.extend(data);
                    }
                    Err(size) => {
                        word(&mut bytes, 1);
                        bytes.extend(size.to_le_bytes());
                    }
                }
            }
        }
        bytes
    }

    fn outcomes(&self, answers: &[u8], complaints: &str) -> Vec<Outcome> {
        let mut rest = answers;
        let mut take = |n: usize| {
            let (now, later) = rest.split_at(n);
            rest = later;
            now.to_vec()
        };
        let mut outcomes = Vec::new();
        for job in &self.jobs {
            let status = take(4)[0];
            let mut after = Vec::new();
            for argument in &job.arguments {
                after.push(
                    argument
                        .as_ref()
                        .map(|data| take(data.len()))
                        .unwrap_or_default(),
                );
            }
            outcomes.push(match status {
                0 => Ok(job
                    .buffers
                    .iter()
                    .map(|at| match at {
                        Some(at) => Arg::OwnedBuffer(after[*at].clone()),
                        None => Arg::ThreadgroupLength(0),
                    })
                    .collect()),
                1 => Err(format!("threads did not meet: {complaints}")),
                _ => Err("bytes beside a buffer were written".to_string()),
            });
        }
        outcomes
    }
}

/// A command that is stopped after some minutes.
fn limited(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["300", program]);
    command
}

fn compile(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = complaints.lines().take(60).collect();
    Err(format!("clang: {}: {}", output.status, first.join("\n")))
}

/// The compiled runtime, which stays in the folder.
fn runtime(folder: &Path) -> Result<PathBuf, String> {
    let (text, object) = (folder.join("runtime.cpp"), folder.join("runtime.o"));
    let is_there = fs::read_to_string(&text).is_ok_and(|old| old == RUNTIME) && object.exists();
    if !is_there {
        fs::write(&text, RUNTIME).map_err(|e| format!("{}: {e}", text.display()))?;
        compile(
            limited(CLANG_CPP)
                .args(["-O1", "-mf16c", "-ffp-contract=off", "-c"])
                .arg(&text)
                .arg("-o")
                .arg(&object),
        )?;
    }
    Ok(object)
}

/// Runs one kernel, as a [`crate::Target`] does.
///
/// # Errors
/// What Metal refuses, and what went wrong.
pub fn run_one(
    folder: &Path,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    seed: u32,
    optimise: bool,
) -> Result<(), Diagnostics> {
    let mut batch = Batch::default();
    batch.add_dispatch(module, kernel, dispatch, args, seed)?;
    let outcomes = batch.run(folder, optimise).map_err(failed)?;
    for outcome in outcomes {
        give_back(outcome.map_err(failed)?, args);
    }
    Ok(())
}

/// Puts the buffers that a dispatch left in the place of those given.
fn give_back(after: Vec<Arg<'static>>, args: &mut [Arg<'static>]) {
    for (arg, after) in args.iter_mut().zip(after) {
        if let Arg::OwnedBuffer(_) = arg {
            *arg = after;
        }
    }
}

/// The arguments in the order of the function's parameters, and where each buffer of the kernel is among them;
/// that of the lines that it prints comes last.
fn arguments(
    written: &Written,
    kernel: &Kernel,
    args: &[Arg],
    grid: [u32; 3],
) -> (Vec<Bound>, Vec<Option<usize>>) {
    let structs = &written.module.structs;
    let mut arguments = Vec::new();
    let mut buffers = Vec::new();
    let mut lengths = Vec::new();
    for ((param, arg), place) in kernel
        .params
        .iter()
        .zip(args)
        .zip(&written.source.arguments)
    {
        let element_bytes = match &param.kind {
            ParamKind::Buffer { element, .. }
            | ParamKind::Constant { element }
            | ParamKind::Threadgroup { element } => element
                .extent(structs)
                .map_or(1, |extent| extent.size_bytes),
            ParamKind::Scalar { .. } | ParamKind::Texture(_) | ParamKind::Sampler => 1,
        };
        let is_buffer = !matches!(
            param.kind,
            ParamKind::Scalar { .. } | ParamKind::Threadgroup { .. }
        );
        buffers.push(is_buffer.then_some(arguments.len()));
        match (arg, place) {
            (Arg::Scalar(parts), Argument::Buffer(_)) => {
                let mut bytes = Vec::new();
                for part in parts {
                    let size = part.scalar.size_bytes() as usize;
                    bytes.extend(&part.bits.to_le_bytes()[..size]);
                }
                lengths.push(1);
                arguments.push(Ok(bytes));
            }
            (Arg::ThreadgroupLength(length), Argument::Threadgroup(_)) => {
                lengths.push(*length);
                arguments.push(Err(length * element_bytes));
            }
            (buffer, Argument::Buffer(_)) => {
                let bytes = buffer.bytes().to_vec();
                lengths.push(bytes.len() as u64 / element_bytes);
                arguments.push(Ok(bytes));
            }
            (other, place) => panic!("{other:?} does not go to {place:?}"),
        }
    }
    if kernel.prints() {
        lengths.push(BUFFER_BYTES as u64 / 4);
        buffers.push(Some(arguments.len()));
        arguments.push(Ok(vec![0; BUFFER_BYTES]));
    }
    if let Some(hidden) = &written.source.lengths {
        let params = hidden.params.iter();
        let mut bytes: Vec<u8> = params
            .flat_map(|p| lengths[*p as usize].to_le_bytes())
            .collect();
        if hidden.grid {
            bytes.extend(grid.iter().flat_map(|n| n.to_le_bytes()));
            if !hidden.params.is_empty() {
                bytes.extend([0; 4]);
            }
        }
        arguments.push(Ok(bytes));
    }
    (arguments, buffers)
}
