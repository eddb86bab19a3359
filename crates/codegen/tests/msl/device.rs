//! Runs MSL on the CPU: through `shim/metal_stdlib` clang reads it as C++ for OpenCL, which checks its address
//! spaces, and `shim/runtime.cpp` runs what came of it, a fiber for each thread, simdgroups of 32.
//!
//! Many kernels go through one call of clang, many jobs through one process.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use invar_codegen::msl::{Argument, MslOptions, Source, write};
use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::{Diagnostics, Kernel, ParamKind, Verified};

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
    module: Verified,
    kernel: String,
}

/// Kernels that are compiled together.
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

/// What a dispatch left: the buffers of the parameters, or what went wrong.
pub type Outcome = Result<Vec<Arg<'static>>, String>;

impl Batch {
    /// Writes a kernel of a module without function constants; gives its number.
    pub fn add(
        &mut self,
        module: &Verified,
        kernel: &str,
        options: &MslOptions,
    ) -> Result<usize, Diagnostics> {
        let source = write(module, kernel, options)?;
        if let Some(known) = self.known.get(&source.text) {
            return Ok(*known);
        }
        self.known.insert(source.text.clone(), self.kernels.len());
        self.kernels.push(Written {
            source,
            module: module.clone(),
            kernel: kernel.to_string(),
        });
        Ok(self.kernels.len() - 1)
    }

    /// Adds a dispatch; the reason why Metal refuses it, if it does.
    pub fn dispatch(
        &mut self,
        entry: usize,
        dispatch: &Dispatch,
        args: &[Arg],
        seed: u32,
    ) -> Result<(), String> {
        let written = &self.kernels[entry];
        let kernel = written.module.kernel(&written.kernel).unwrap();
        let threadgroup = dispatch.threadgroup;
        let threads = match dispatch.grid {
            Grid::Threads(threads) => threads,
            Grid::Threadgroups(groups) => std::array::from_fn(|d| groups[d] * threadgroup[d]),
        };
        if written.source.full_simdgroups {
            let full = |n: u32| n.is_multiple_of(32);
            let edge = (0..3).any(|d| !threads[d].is_multiple_of(threadgroup[d]));
            if edge || !full(threadgroup.iter().product()) {
                return Err("simdgroup matrices on a partial simdgroup".to_string());
            }
        }
        let (arguments, buffers) = arguments(written, kernel, args);
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

    /// Compiles the kernels and runs the dispatches in order. Optimising shows what a compiler would make of undefined
    /// behaviour, and takes six times as long.
    ///
    /// # Panics
    /// If clang refuses what was written, or the process that runs it fails.
    pub fn run(&self, name: &str, optimise: bool) -> Vec<Outcome> {
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("msl-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        std::fs::write(file("kernels.cl"), self.text()).unwrap();
        std::fs::write(file("table.cpp"), self.table()).unwrap();
        std::fs::write(file("jobs"), self.job_bytes()).unwrap();
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
        ];
        let level = if optimise { "-O1" } else { "-O0" };
        let common = [level, "-mf16c", "-mfma", "-ffp-contract=on", "-c", "-o"];
        compile(
            Command::new(CLANG)
                .args(kernels)
                .arg("-I")
                .arg(&shim)
                .args(common)
                .arg(file("kernels.o"))
                .arg(file("kernels.cl")),
        );
        compile(
            Command::new(CLANG_CPP)
                .args(["-O1", "-mf16c", "-ffp-contract=off"])
                .arg(shim.join("runtime.cpp"))
                .arg(file("table.cpp"))
                .arg(file("kernels.o"))
                .args(["-lm", "-o"])
                .arg(file("run")),
        );
        let output = Command::new(file("run"))
            .arg(file("jobs"))
            .arg(file("answers"))
            .output()
            .unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", output.status);
        self.outcomes(&std::fs::read(file("answers")).unwrap(), &complaints)
    }

    /// All kernels, each in a namespace of its own, with a function that takes its arguments from an array.
    fn text(&self) -> String {
        let mut text = String::from("#include <metal_stdlib>\n");
        let mut declared = std::collections::BTreeSet::new();
        for (k, Written { source, .. }) in self.kernels.iter().enumerate() {
            for input in &source.inputs {
                if declared.insert(input.attribute()) {
                    let _ = writeln!(text, "extern \"C\" uint shim_{}(uint);", input.attribute());
                }
            }
            let header = format!("kernel void {}(", source.entry);
            let at = source.text.find(&header).unwrap();
            let (before, after) = source.text.split_at(at);
            let after = &after[header.len()..];
            let _ = writeln!(text, "namespace n{k} {{\n{before}kernel void k{k}({after}");
            let parameters = &after[..after.find(") {").unwrap()];
            let _ = writeln!(
                text,
                "extern \"C\" void run_{k}(const ulong* shim_arguments) {{"
            );
            let mut names = Vec::new();
            let parameters = parameters.trim().lines().map(str::trim);
            for (i, parameter) in parameters.filter(|p| !p.is_empty()).enumerate() {
                let (declared, attribute) = parameter.split_once(" [[").unwrap();
                let name: String = if let Some((_, rest)) = declared.split_once("(*") {
                    rest.split(')').next().unwrap().to_string()
                } else {
                    declared.rsplit(' ').next().unwrap().to_string()
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

fn compile(command: &mut Command) {
    let output = command.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = complaints.lines().take(60).collect();
    assert!(output.status.success(), "{}", first.join("\n"));
}

/// The arguments in the order of the function's parameters, and where each buffer of the kernel is among them.
fn arguments(written: &Written, kernel: &Kernel, args: &[Arg]) -> (Vec<Bound>, Vec<Option<usize>>) {
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
            | ParamKind::Threadgroup { element } => element.extent(structs).unwrap().size_bytes,
            ParamKind::Scalar { .. } => 1,
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
    if let Some(hidden) = &written.source.lengths {
        let bytes = hidden
            .params
            .iter()
            .flat_map(|p| lengths[*p as usize].to_le_bytes())
            .collect();
        arguments.push(Ok(bytes));
    }
    (arguments, buffers)
}
