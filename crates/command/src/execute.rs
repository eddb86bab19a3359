//! Commands that run kernels: `check` and `run`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::Destination;
use crate::npy::{self, Array};
use clap::Args;
use invar::{CompileOptions, Device, report};
use invar_interp::case::{Bound, bind, mismatches};
use invar_interp::observe::Lines;
use invar_interp::{self as interp, Arg, CheckOptions, Options, Schedules};
use invar_ir::print::Printed;
use invar_ir::text::case::{Expect, Expr, ExprKind, Grid, Literal, Named, Program, RunCase};
use invar_ir::text::data::FileReader;
use invar_ir::{
    Access, Call, Const, Diagnostic, Diagnostics, ElementType, Kernel, ParamKind, Rule, Severity,
    Source, Span, Type, Verified, text, verify,
};
use invar_wgsl::Entry;
use serde_json::{Value as Json, json};

use crate::bench::time;
use crate::progress::Bar;
use crate::{Loaded, Machine, Refusal, Verdict, input, program, say, shader, show};

#[derive(Args)]
pub struct Inputs {
    /// A module in the text form (.inv) or the binary form (.invb), or a shader (.wgsl); with the
    /// Python package also a kernel in a Python file, as FILE.py:KERNEL.
    pub file: PathBuf,
    /// The kernel to run, where the module has several.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    pub kernel: Option<String>,
    /// Threads of the grid: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = size, allow_negative_numbers = true)]
    pub grid: Option<[u32; 3]>,
    /// Threadgroups of the grid, instead of threads: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = size, allow_negative_numbers = true, conflicts_with = "grid")]
    pub groups: Option<[u32; 3]>,
    /// A JSON file that describes a dispatch, as `invar inputs` prints one; options win over it.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Threads of a threadgroup: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = size, allow_negative_numbers = true)]
    pub threadgroup: Option<[u32; 3]>,
    /// An argument: NAME=@file.npy, @bytes.bin, iota(n), random(n, seed), zeros(n), fill(n, v), [1, 2],
    /// length(n) or a value such as 3.5. A shader's variable can be named by its group and binding: 0.1=...
    #[arg(long = "arg", value_name = "NAME=DATA")]
    pub args: Vec<String>,
    /// The value of a function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    pub constants: Vec<String>,
    /// The seed of the order in which threads run; 0 is the natural order. Wins over a run line's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads of a simdgroup: a power of two from 4 to 128. Wins over a run line's.
    #[arg(long, value_name = "N", value_parser = simdgroup_size, allow_negative_numbers = true)]
    simdgroup: Option<u32>,
    /// Stop after this many seconds: 600, unless INVAR_TIME_LIMIT says otherwise.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    time_limit: Option<f64>,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub inputs: Inputs,
    /// How many schedules to try, by seeds from --seed on. By default one where its verdict holds for
    /// every schedule, else up to 16.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Leave out the findings of a rule (repeatable).
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Fail on warnings too: --deny warnings.
    #[arg(long, value_name = "WHAT", value_parser = ["warnings"])]
    deny: Option<String>,
    /// The most memory for the data-race checker, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = CheckOptions::default().race_memory_bytes)]
    race_memory_bytes: u64,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub inputs: Inputs,
    /// Where to run: a device of `invar devices`, or reference: the reference machine without its
    /// checkers. The default device unless --seed, --simdgroup or a run line's simdgroup(n) ask for
    /// the reference machine.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Write a buffer to an array file after the run (repeatable).
    #[arg(long = "out", value_name = "NAME=@FILE")]
    outs: Vec<String>,
}

fn simdgroup_size(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n: &u32| n.is_power_of_two() && (4..=128).contains(n))
        .ok_or_else(|| "a power of two from 4 to 128".to_string())
}

pub fn size(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut out = [1; 3];
    if parts.len() > 3 {
        return Err("one to three numbers".to_string());
    }
    for (slot, part) in out.iter_mut().zip(&parts) {
        *slot = part
            .parse()
            .map_err(|_| format!("`{part}` is no number from 0 to 4294967295"))?;
    }
    Ok(out)
}

/// A verified module and the runs asked for.
pub struct Plan {
    pub module: Verified,
    /// What spans of the cases point into.
    pub sources: Vec<Source>,
    /// The inlined calls that spans name.
    pub calls: Vec<Call>,
    pub cases: Vec<RunCase>,
    /// What runs after them: several kernels each, on the same buffers.
    pub programs: Vec<Program>,
    /// The entry points, if it is a shader.
    pub entries: Vec<Entry>,
    /// Kernels of the file that no `run` line names, where no kernel is asked for by itself.
    without_runs: Vec<String>,
    /// Where relative names of array files start.
    folder: PathBuf,
}

/// Findings of a file before anything ran.
pub enum Planned {
    Ready(Box<Plan>),
    Refused {
        sources: Vec<Source>,
        calls: Vec<Call>,
        diagnostics: Vec<Diagnostic>,
    },
}

pub fn plan(inputs: &Inputs, loaded: &Loaded) -> Result<Planned, Refusal> {
    let asked = input::Asked {
        entry: inputs.kernel.as_deref(),
        constants: &inputs.constants,
    };
    let (sources, calls, module, entries) = match input::parsed(&inputs.file, loaded, asked)? {
        Ok(read) => {
            let module = read.module;
            (
                module.sources.clone(),
                module.calls.clone(),
                module,
                read.entries,
            )
        }
        Err((sources, diagnostics)) => {
            return Ok(Planned::Refused {
                sources,
                calls: Vec::new(),
                diagnostics,
            });
        }
    };
    let module = match verify(module) {
        Ok(module) => module,
        Err(Diagnostics(diagnostics)) => {
            return Ok(Planned::Refused {
                sources,
                calls,
                diagnostics,
            });
        }
    };
    if inputs.args.is_empty()
        && inputs.grid.is_none()
        && inputs.groups.is_none()
        && inputs.threadgroup.is_none()
        && inputs.constants.is_empty()
    {
        let (mut cases, mut programs) =
            match sources.first().map(|s| shader::cases(&inputs.file, s)) {
                None => (Vec::new(), Vec::new()),
                Some(Ok(found)) => found,
                Some(Err(Diagnostics(diagnostics))) => {
                    return Ok(Planned::Refused {
                        sources,
                        calls,
                        diagnostics,
                    });
                }
            };
        if let Some(name) = &inputs.kernel {
            kernel(&module, inputs)?;
            cases.retain(|c| c.kernel.name == *name);
            programs.clear();
        }
        if cases.is_empty() && programs.is_empty() {
            return Err(no_run_line(&module, inputs));
        }
        let passes = programs.iter_mut().flat_map(|p| &mut p.passes);
        for case in cases.iter_mut().chain(passes.map(|p| &mut p.case)) {
            // What the user asks for now wins over what the file says.
            case.simdgroup = inputs.simdgroup.or(case.simdgroup);
            case.seed = inputs.seed.or(case.seed);
        }
        let passes = programs.iter().flat_map(|p| &p.passes);
        let named: Vec<&RunCase> = cases.iter().chain(passes.map(|p| &p.case)).collect();
        let unnamed = |k: &&Kernel| named.iter().all(|c| *c.kernel.name != *k.name);
        let without_runs = match &inputs.kernel {
            Some(_) => Vec::new(),
            None => module.kernels.iter().filter(unnamed).collect(),
        };
        let without_runs = without_runs.iter().map(|k| k.name.to_string()).collect();
        let folder = inputs.file.parent().unwrap_or(Path::new("")).to_owned();
        return Ok(Planned::Ready(Box::new(Plan {
            module,
            sources,
            calls,
            cases,
            programs,
            entries,
            without_runs,
            folder,
        })));
    }
    let case = command_line_case(&module, inputs, &entries)?;
    Ok(Planned::Ready(Box::new(Plan {
        module,
        sources,
        calls,
        cases: vec![case],
        programs: Vec::new(),
        entries,
        without_runs: Vec::new(),
        folder: PathBuf::new(),
    })))
}

fn kernel<'m>(module: &'m Verified, inputs: &Inputs) -> Result<&'m Kernel, Refusal> {
    the_kernel(module, &inputs.file, inputs.kernel.as_deref())
}

/// The kernel that `--kernel` names, or the only one.
pub fn the_kernel<'m>(
    module: &'m Verified,
    file: &Path,
    name: Option<&str>,
) -> Result<&'m Kernel, Refusal> {
    let names = || {
        let names: Vec<String> = module
            .kernels
            .iter()
            .map(|k| format!("`{}`", k.name))
            .collect();
        names.join(", ")
    };
    match (name, &module.kernels[..]) {
        (Some(name), _) => module.kernel(name).ok_or_else(|| {
            Refusal(format!(
                "{} has no kernel `{name}`; it has {}",
                file.display(),
                names()
            ))
        }),
        (None, [only]) => Ok(only),
        (None, _) => Err(Refusal(format!(
            "{} has several kernels: say which with --kernel: {}",
            file.display(),
            names()
        ))),
    }
}

/// The run that the options describe.
fn command_line_case(
    module: &Verified,
    inputs: &Inputs,
    entries: &[Entry],
) -> Result<RunCase, Refusal> {
    let kernel = kernel(module, inputs)?;
    let named = |name: &str| Named {
        name: name.to_string(),
        span: Span::NONE,
    };
    let mut args = Vec::new();
    for given in &inputs.args {
        let (name, data) = split(given, "--arg", "x=zeros(16)")?;
        for (name, data) in shader::argument(entries, &kernel.name, name, data)? {
            if !kernel.params.iter().any(|p| *p.name == *name) {
                return Err(no_parameter("--arg", &name, kernel));
            }
            if args
                .iter()
                .any(|(before, _): &(Named, _)| before.name == *name)
            {
                return Err(Refusal(format!("--arg {name} is given twice")));
            }
            args.push((named(&name), expression(&name, &data)?));
        }
    }
    let constants = constants(
        module,
        &shader::still_open(&inputs.file, module, &inputs.constants),
    )?;
    let missing = missing(module, kernel, inputs, &args, &constants);
    if !missing.is_empty() {
        let to = format!("run kernel `{}`", kernel.name);
        return Err(Refusal(are_missing(&to, &missing)));
    }
    let constants = constants
        .into_iter()
        .map(|(name, literal, _)| (name, literal));
    let constants = constants.collect();
    Ok(RunCase {
        kernel: named(&kernel.name),
        args,
        grid: match inputs.groups {
            Some(groups) => Grid::Threadgroups(groups),
            None => Grid::Threads(inputs.grid.unwrap_or_default()),
        },
        threadgroup: inputs.threadgroup,
        constants,
        simdgroup: None,
        seed: None,
        expects: Vec::new(),
        span: Span::NONE,
    })
}

/// An option names a parameter that the kernel does not have.
fn no_parameter(option: &str, name: &str, kernel: &Kernel) -> Refusal {
    let names = kernel.params.iter().map(|p| format!("`{}`", p.name));
    let names: Vec<String> = names.collect();
    let name = shorten(name);
    Refusal(format!(
        "{option} {name}: kernel `{}` has no parameter `{name}`; it has {}",
        kernel.name,
        if names.is_empty() {
            "none".to_string()
        } else {
            names.join(", ")
        }
    ))
}

/// What nothing says of a run.
fn missing(
    module: &Verified,
    kernel: &Kernel,
    inputs: &Inputs,
    args: &[(Named, Expr)],
    constants: &[Constant],
) -> Vec<String> {
    let threadgroup = inputs.threadgroup.or(kernel.threadgroup_size);
    kernel
        .params
        .iter()
        .filter(|p| !args.iter().any(|(n, _)| *n.name == *p.name))
        .map(|p| format!("--arg {}=", p.name))
        .chain(missing_constants(module, constants))
        .chain((inputs.grid.is_none() && inputs.groups.is_none()).then(|| "--grid".to_string()))
        .chain(threadgroup.is_none().then(|| "--threadgroup".to_string()))
        .collect()
}

/// Options that are missing, in a sentence.
pub fn are_missing(to: &str, missing: &[String]) -> String {
    let are = if missing.len() == 1 { "is" } else { "are" };
    format!("to {to}, {} {are} missing", missing.join(", "))
}

/// Neither the file nor the command line says what to run.
fn no_run_line(module: &Verified, inputs: &Inputs) -> Refusal {
    let file = inputs.file.display();
    match kernel(module, inputs) {
        Ok(kernel) => {
            let to = format!("run kernel `{}`", kernel.name);
            let missing = missing(module, kernel, inputs, &[], &[]);
            let of = match inputs.kernel {
                Some(_) => format!(" for kernel `{}`", kernel.name),
                None => String::new(),
            };
            Refusal(format!(
                "{file} has no `; run:` line{of}: {}",
                are_missing(&to, &missing)
            ))
        }
        Err(Refusal(why)) => Refusal(format!(
            "{why}; since it has no `; run:` line, say also what to run with --grid, --threadgroup and \
             one --arg for each parameter"
        )),
    }
}

/// A function constant's value: as given, and of its type.
pub type Constant = (Named, Literal, Const);

/// What `--const` says of a module's function constants, each of them once.
pub fn constants(module: &Verified, given: &[String]) -> Result<Vec<Constant>, Refusal> {
    let mut constants: Vec<Constant> = Vec::new();
    for given in given {
        let (name, text) = split(given, "--const", "N=16")?;
        let name = name.trim_start_matches('@');
        let declared = module.function_constants.iter().find(|c| *c.name == *name);
        let Some(declared) = declared else {
            let names = module
                .function_constants
                .iter()
                .map(|c| format!("`@{}`", c.name));
            let names: Vec<String> = names.collect();
            return Err(Refusal(format!(
                "--const {name}: there is no function constant `@{name}`; the module has {}",
                if names.is_empty() {
                    "none".to_string()
                } else {
                    names.join(", ")
                }
            )));
        };
        if constants.iter().any(|(before, ..)| before.name == name) {
            return Err(Refusal(format!("--const {name} is given twice")));
        }
        let literal = Literal {
            text: text.to_string(),
            span: Span::NONE,
        };
        let value = literal
            .as_const(declared.scalar)
            .map_err(|error| Refusal(format!("--const {name}: {}", error.message)))?;
        let name = Named {
            name: name.to_string(),
            span: Span::NONE,
        };
        constants.push((name, literal, value));
    }
    Ok(constants)
}

/// The function constants that have neither a value nor a default.
pub fn missing_constants(module: &Verified, given: &[Constant]) -> Vec<String> {
    let open = module
        .function_constants
        .iter()
        .filter(|c| c.default.is_none() && !given.iter().any(|(n, ..)| *n.name == *c.name));
    open.map(|c| format!("--const {}=", c.name)).collect()
}

pub fn split<'a>(
    given: &'a str,
    option: &str,
    example: &str,
) -> Result<(&'a str, &'a str), Refusal> {
    given
        .split_once('=')
        .map(|(name, value)| (name.trim().trim_start_matches('%'), value.trim()))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| {
            Refusal(format!(
                "`{option} {given}` is not NAME=VALUE; for example {option} {example}"
            ))
        })
}

/// What `--arg` says: the data of a run directive, or a file whose name is taken as it stands.
fn expression(name: &str, data: &str) -> Result<Expr, Refusal> {
    if let Some(path) = data.strip_prefix('@') {
        if path.trim_matches('"').is_empty() {
            return Err(Refusal(format!(
                "--arg {name}: `{data}` names no file; write {name}=@{name}.npy"
            )));
        }
        return Ok(Expr {
            kind: ExprKind::File(path.trim_matches('"').to_string()),
            span: Span::NONE,
        });
    }
    let why = match text::case::data(data) {
        // A comment of the text form would be left out without a word.
        Ok(_) if data.contains(';') => "expected the end of the text, found `;`".to_string(),
        Ok(expr) if is_reference(&expr) => {
            "`reference` is for what a `; run:` line expects".to_string()
        }
        Ok(mut expr) => {
            forget_places(&mut expr);
            return Ok(expr);
        }
        Err(error) => error.message,
    };
    Err(Refusal(format!(
        "--arg {name}: `{}` is no data ({why}); write @file.npy, iota(n), random(n, seed), zeros(n), \
         fill(n, v), rev(iota(n)), [1, 2, 3], length(n) or a value, with n a whole number from 0 on, in digits",
        shorten(data)
    )))
}

/// What is quoted of something that a user wrote, however long that is.
pub fn shorten(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    let count = text.chars().count();
    if count <= MOST {
        return Cow::Borrowed(text);
    }
    let first: String = text.chars().take(MOST / 2).collect();
    Cow::Owned(format!("{first}... ({count} characters)"))
}

/// Whether an expression asks for what the reference machine computes.
fn is_reference(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Reference => true,
        ExprKind::Rev(inner) => is_reference(inner),
        ExprKind::Scalar(_)
        | ExprKind::List(_)
        | ExprKind::Random { .. }
        | ExprKind::Zeros(_)
        | ExprKind::Fill { .. }
        | ExprKind::Iota(_)
        | ExprKind::File(_)
        | ExprKind::Length(_) => false,
    }
}

/// An expression of the command line stands at no place of the module's text.
fn forget_places(expr: &mut Expr) {
    expr.span = Span::NONE;
    match &mut expr.kind {
        ExprKind::Scalar(literal) | ExprKind::Fill { value: literal, .. } => {
            literal.span = Span::NONE;
        }
        ExprKind::List(literals) => {
            for literal in literals {
                literal.span = Span::NONE;
            }
        }
        ExprKind::Rev(inner) => forget_places(inner),
        ExprKind::Random { .. }
        | ExprKind::Zeros(_)
        | ExprKind::Iota(_)
        | ExprKind::File(_)
        | ExprKind::Length(_)
        | ExprKind::Reference => {}
    }
}

impl Plan {
    /// Does something that may read array files. A file of a `; run:` line that cannot be read is
    /// bad input, not a finding of the kernel.
    pub fn with_files<T>(
        &self,
        directive: Span,
        job: impl FnOnce(FileReader<'_>) -> T,
    ) -> Result<T, Refusal> {
        let mut unreadable = None;
        let mut read = |name: &str, element: &ElementType| {
            let mut keep = |why: String| {
                unreadable.get_or_insert(why.clone());
                why
            };
            match shader::raw_bytes(&self.folder.join(name)) {
                Some(raw) => raw.map_err(keep),
                None => {
                    let read = npy::read(&self.folder.join(name));
                    let array = read.map_err(|e| keep(e.to_string()))?;
                    file_bytes(array, name, element)
                }
            }
        };
        let done = job(&mut read);
        match (unreadable, report::place(&self.sources, directive)) {
            (Some(why), Some(place)) => Err(Refusal(format!("{place}: {why}"))),
            (Some(_), None) | (None, _) => Ok(done),
        }
    }
}

/// The bytes of an array for elements of a type.
fn file_bytes(array: Array, name: &str, element: &ElementType) -> Result<Vec<u8>, String> {
    let (scalar, count) = match element {
        ElementType::Value(ty) => (ty.scalar(), u64::from(ty.component_count())),
        ElementType::Array(..) | ElementType::Struct(_) => (None, 1),
    };
    let Some(scalar) = scalar else {
        return Err(format!(
            "{name}: array files hold plain numbers, no structs or arrays; give a file of raw bytes"
        ));
    };
    if scalar != array.scalar {
        return Err(format!(
            "{name} holds {}, but the parameter's elements are {}",
            array.scalar,
            ElementType::Value(Type::Scalar(scalar)).display(&[]),
        ));
    }
    let size = scalar.size_bytes() * count;
    if !(array.bytes.len() as u64).is_multiple_of(size) {
        return Err(format!(
            "{name} holds {} numbers of {scalar}, which make no whole elements of {count}",
            array.bytes.len() as u64 / scalar.size_bytes(),
        ));
    }
    Ok(array.bytes)
}

/// Seconds that an option gives.
pub fn duration(option: &str, seconds: f64) -> Result<Duration, Refusal> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => {
            // Not hundreds of zeros.
            let given = if seconds.abs() < 1e19 {
                format!("{seconds}")
            } else {
                format!("{seconds:e}")
            };
            Err(Refusal(format!(
                "{option} {given}: give a number of seconds above 0, and below 1e19"
            )))
        }
    }
}

pub fn options(inputs: &Inputs) -> Result<Options, Refusal> {
    let time_limit = match inputs.time_limit {
        Some(seconds) => duration("--time-limit", seconds)?,
        None => invar_runtime::environment_time_limit()
            .map_err(|e| usage(e.into_diagnostics().0))?
            .unwrap_or(Duration::from_secs(600)),
    };
    Ok(Options {
        seed: inputs.seed.unwrap_or(0),
        simdgroup_size: inputs.simdgroup,
        time_limit: Some(time_limit),
        ..Options::default()
    })
}

/// Shows diagnostics, or keeps them for the JSON document.
pub struct Output<'a> {
    inputs: &'a Inputs,
    sources: Vec<Source>,
    calls: Vec<Call>,
    results: Vec<Json>,
    /// What the next result's run has printed.
    printed: Option<Printed>,
    pub errors: bool,
    /// Runs that took no place.
    skipped: usize,
}

impl Inputs {
    /// Fills in what the file of `--inputs` says and no option does.
    pub fn complete(&mut self) -> Result<(), Refusal> {
        match self.inputs.take() {
            Some(file) => shader::complete(self, &file),
            None => Ok(()),
        }
    }
}

impl Output<'_> {
    /// For the runs of a plan; says which kernels have none.
    pub fn new<'a>(inputs: &'a Inputs, plan: &Plan) -> Output<'a> {
        let mut output = Output::of(inputs, plan.sources.clone(), plan.calls.clone());
        for kernel in &plan.without_runs {
            let why = format!(
                "no `; run:` line names it; give its inputs: --kernel {kernel} --grid --threadgroup --arg"
            );
            output.leave_out(kernel, &why);
        }
        output
    }

    /// For a file of which nothing runs.
    fn of(inputs: &Inputs, sources: Vec<Source>, calls: Vec<Call>) -> Output<'_> {
        Output {
            inputs,
            sources,
            calls,
            results: Vec::new(),
            printed: None,
            errors: false,
            skipped: 0,
        }
    }

    fn leave_out(&mut self, kernel: &str, why: &str) {
        self.skipped += 1;
        let more = json!({"skipped": why});
        self.result(kernel, &[], &format!("skipped @{kernel}: {why}"), more);
    }

    /// Leaves out one of a file's runs. What the user asked for by itself is refused instead: an
    /// option that the place cannot meet, or the only run.
    pub fn skip(&mut self, plan: &Plan, kernel: &str, why: String) -> Result<(), Refusal> {
        let all = plan.cases.len() + plan.programs.len() + plan.without_runs.len();
        if self.inputs.simdgroup.is_some() || self.skipped + 1 == all {
            return Err(Refusal(format!("cannot run @{kernel}: {why}")));
        }
        self.leave_out(kernel, &why);
        Ok(())
    }

    /// Shows what a run printed, each line with the thread's position in the grid: among its results for
    /// machines.
    pub fn lines(&mut self, printed: &Printed) {
        if self.inputs.machine.json {
            self.printed = (!printed.lines.is_empty()).then(|| printed.clone());
            return;
        }
        for line in &printed.lines {
            let [x, y, z] = line.thread;
            show(&format!("[{x}, {y}, {z}] {line}"));
        }
        if let Some(notice) = printed.notice() {
            say(&notice);
        }
    }

    /// Shows one run's findings and its closing line.
    pub fn result(&mut self, kernel: &str, diagnostics: &[Diagnostic], closing: &str, more: Json) {
        let diagnostics = &shader::advised(&self.inputs.file, diagnostics);
        self.errors |= diagnostics.iter().any(|d| d.severity == Severity::Error);
        if self.inputs.machine.json {
            let mut one = json!({
                "kernel": kernel,
                "diagnostics": report::to_json(&self.sources, &self.calls, diagnostics),
            });
            if let (Some(one), Json::Object(more)) = (one.as_object_mut(), more) {
                one.extend(more);
                if let Some(printed) = self.printed.take() {
                    let lines = printed.lines.iter();
                    let lines = lines.map(
                        |l| json!({"thread": l.thread, "line": l.span.start.line, "text": l.text}),
                    );
                    one.insert("printed".to_string(), lines.collect());
                    one.insert("lines_left_out".to_string(), json!(printed.lost));
                }
            }
            self.results.push(one);
        } else {
            if !diagnostics.is_empty() {
                let text = report::render(&self.sources, &self.calls, diagnostics, input::style());
                say(text.trim_end());
            }
            if !closing.is_empty() {
                show(closing);
            }
        }
    }

    pub fn finish(self) -> Result<Verdict, Refusal> {
        if self.inputs.machine.json {
            let document = json!({
                "file": self.inputs.file.display().to_string(),
                "clean": !self.errors,
                "skipped": self.skipped,
                "results": self.results,
            });
            show(&serde_json::to_string_pretty(&document)?);
        } else if self.skipped > 0 {
            show(&format!("{} skipped", count(self.skipped, "run")));
        }
        Ok(if self.errors {
            Verdict::Errors
        } else {
            Verdict::Clean
        })
    }
}

/// Makes arguments of a case; what a user got wrong on the command line is a refusal.
pub fn bound(
    plan: &Plan,
    case: &RunCase,
    options: &Options,
) -> Result<Result<Bound, Vec<Diagnostic>>, Refusal> {
    match plan.with_files(case.span, |files| bind(&plan.module, case, options, files))? {
        Ok(bound) => {
            shader::check_lengths(&plan.entries, &plan.module, &bound)?;
            Ok(Ok(bound))
        }
        Err(Diagnostics(all)) => usage_or_findings(Some(case), all).map(Err),
    }
}

/// Diagnostics without a place speak of the command line.
pub fn usage(all: Vec<Diagnostic>) -> Refusal {
    let sentences: Vec<String> = all
        .iter()
        .map(|d| match &d.help {
            Some(help) => format!("{}; {help}", d.message),
            None => d.message.clone(),
        })
        .collect();
    Refusal(sentences.join("\n"))
}

/// The same, unless they have places in a text. Where the command line says what to run, sizes that
/// cannot be dispatched and arguments that do not fit are its mistake, wherever they show; a run that takes
/// too long is the kernel's.
pub fn usage_or_findings(
    case: Option<&RunCase>,
    all: Vec<Diagnostic>,
) -> Result<Vec<Diagnostic>, Refusal> {
    let from_command_line = case.is_some_and(|case| case.span.source.is_none());
    let of_usage = |d: &Diagnostic| {
        d.span().source.is_none() && d.rule != Rule::DeadlineExceeded
            || from_command_line && matches!(d.rule, Rule::InvalidDispatch | Rule::InvalidArgument)
    };
    if all.iter().all(of_usage) {
        return Err(usage(all));
    }
    Ok(all)
}

pub fn check(args: &CheckArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let mut allow = Vec::new();
    for name in &args.allow {
        allow.push(Rule::from_name(name).ok_or_else(|| {
            Refusal(format!(
                "there is no rule `{name}`; `invar explain` lists them all"
            ))
        })?);
    }
    if args.seeds == Some(0) {
        return Err(Refusal(
            "--seeds 0 would check nothing; say at least 1".to_string(),
        ));
    }
    let plan = match plan(&args.inputs, loaded)? {
        Planned::Ready(plan) => plan,
        Planned::Refused {
            sources,
            calls,
            diagnostics,
        } => return refused(&args.inputs, sources, calls, &diagnostics),
    };
    let options = options(&args.inputs)?;
    let mut output = Output::new(&args.inputs, &plan);
    for case in &plan.cases {
        match bound(&plan, case, &options)? {
            Ok(bound) => {
                check_one(&plan, args, &allow, case, bound, &mut output)?;
            }
            Err(diagnostics) => {
                output.result(&case.kernel.name, &diagnostics, "", json!({}));
            }
        }
    }
    program::check(&plan, args, &allow, &options, &mut output)?;
    output.finish()
}

/// Checks one run and tells the findings. Gives what it left in its arguments, unless errors leave that open.
pub fn check_one(
    plan: &Plan,
    args: &CheckArgs,
    allow: &[Rule],
    case: &RunCase,
    bound: Bound,
    output: &mut Output,
) -> Result<Option<Vec<Arg<'static>>>, Refusal> {
    let name = &case.kernel.name;
    let check_options = CheckOptions {
        run: bound.options,
        seeds: args.seeds,
        allow: shader::allowed(&plan.entries, allow),
        deny_warnings: args.deny.is_some(),
        race_memory_bytes: args.race_memory_bytes,
    };
    let start = Instant::now();
    let mut bar = Bar::new();
    let checked = interp::check_observed(
        &plan.module,
        &bound.kernel,
        &bound.dispatch,
        &bound.args,
        &check_options,
        &mut [&mut bar],
    );
    drop(bar);
    let mut checked = match checked {
        Ok(checked) => checked,
        Err(Diagnostics(all)) => {
            let all = usage_or_findings(Some(case), all)?;
            output.result(name, &all, "", json!({}));
            return Ok(None);
        }
    };
    output.lines(&checked.printed);
    // What the language allows is nothing to tell of.
    checked
        .allowed
        .retain(|(rule, _)| plan.entries.is_empty() || allow.contains(rule));
    let mut diagnostics = checked.diagnostics.clone();
    let after: Vec<Arg> = checked
        .outputs
        .iter()
        .cloned()
        .map(Arg::OwnedBuffer)
        .collect();
    diagnostics.extend(plan.with_files(case.span, |files| {
        mismatches(&plan.module, case, &after, &after, files)
    })?);
    let passes =
        checked.verdict == interp::Verdict::Pass && diagnostics.len() == checked.diagnostics.len();
    let closing = format!(
        "{} @{name}: {}; {}",
        match (passes, checked.allowed.is_empty()) {
            (true, true) => "clean",
            // What is allowed is there all the same.
            (true, false) => "passed",
            (false, _) => "failed",
        },
        checked.summary(diagnostics.len() - checked.diagnostics.len()),
        checked.reach(),
    );
    let allowed: serde_json::Map<String, Json> = checked
        .allowed
        .iter()
        .map(|(rule, count)| (rule.name().to_string(), json!(count)))
        .collect();
    output.errors |= !passes;
    output.result(
        name,
        &diagnostics,
        &closing,
        json!({
            "clean": passes && checked.allowed.is_empty(),
            "passed": passes,
            "allowed": allowed,
            "every_schedule": matches!(checked.schedules, Schedules::All),
            "reach": checked.reach(),
            "simdgroup_size": checked.simdgroup_size,
            "seeds": checked.seeds,
            "steps": checked.steps,
            "seconds": start.elapsed().as_secs_f64(),
        }),
    );
    // Out of bounds a load gives zeros and a store does nothing: what comes after is as certain as without.
    let is_certain = |d: &Diagnostic| d.severity != Severity::Error || d.rule == Rule::OutOfBounds;
    let certain = passes || diagnostics.iter().all(is_certain);
    Ok(certain.then_some(after))
}

pub fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

pub fn refused(
    inputs: &Inputs,
    sources: Vec<Source>,
    calls: Vec<Call>,
    diagnostics: &[Diagnostic],
) -> Result<Verdict, Refusal> {
    let mut output = Output::of(inputs, sources, calls);
    output.result("", diagnostics, "", json!({}));
    output.finish()
}

/// A buffer to write to a file.
pub struct Out<'a> {
    /// Its place: among the kernel's parameters, or the buffers of a program.
    pub number: usize,
    pub name: &'a str,
    pub path: PathBuf,
    destination: Destination,
    ty: Type,
}

/// What `--out` says of a kernel's parameters.
fn outs<'a>(args: &'a RunArgs, kernel: &Kernel) -> Result<Vec<Out<'a>>, Refusal> {
    outs_of(args, |name| {
        let number = kernel.params.iter().position(|p| *p.name == *name);
        let number = number.ok_or_else(|| no_parameter("--out", name, kernel))?;
        let ParamKind::Buffer {
            element: ElementType::Value(ty),
            access: Access::Write | Access::ReadWrite,
        } = kernel.params[number].kind
        else {
            return Err(Refusal(format!(
                "--out {name}: the parameter is no buffer of plain numbers that the kernel writes"
            )));
        };
        Ok((number, ty))
    })
}

/// What `--out` says, checked before anything runs. `find` gives the place of what is named, and the type
/// of its elements.
pub fn outs_of<'a>(
    args: &'a RunArgs,
    find: impl Fn(&str) -> Result<(usize, Type), Refusal>,
) -> Result<Vec<Out<'a>>, Refusal> {
    let mut out: Vec<Out> = Vec::new();
    for given in &args.outs {
        let (name, file) = split(given, "--out", "y=@y.npy")?;
        let path = file.strip_prefix('@').unwrap_or(file).trim_matches('"');
        if path.is_empty() {
            return Err(Refusal(format!(
                "--out {name}: give the name of a file, such as {name}=@{name}.npy"
            )));
        }
        let (number, ty) = find(name)?;
        let destination = Destination::of(Path::new(path))?;
        if out.iter().any(|o| o.destination.is_same(&destination)) {
            return Err(Refusal(format!("two --out name the file {path}")));
        }
        if input::is_the_kernel(&args.inputs.file, &destination) {
            return Err(Refusal(format!(
                "--out {name}: {path} is the kernel's own file; name another"
            )));
        }
        out.push(Out {
            number,
            name,
            path: PathBuf::from(path),
            destination,
            ty,
        });
    }
    Ok(out)
}

pub fn run(args: &RunArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let plan = match plan(&args.inputs, loaded)? {
        Planned::Ready(plan) => plan,
        Planned::Refused {
            sources,
            calls,
            diagnostics,
        } => return refused(&args.inputs, sources, calls, &diagnostics),
    };
    if !args.outs.is_empty() && plan.cases.len() + plan.programs.len() > 1 {
        return Err(Refusal(
            "--out needs one run: choose it with --kernel, or give --grid and --arg".to_string(),
        ));
    }
    let options = options(&args.inputs)?;
    let mut output = Output::new(&args.inputs, &plan);
    for case in &plan.cases {
        let name = &case.kernel.name;
        let outs = match plan.module.kernel(name) {
            Some(kernel) => outs(args, kernel)?,
            None => Vec::new(),
        };
        let mut bound = match bound(&plan, case, &options)? {
            Ok(bound) => bound,
            Err(diagnostics) => {
                output.result(name, &diagnostics, "", json!({}));
                continue;
            }
        };
        let place = match Place::of(args.device.as_deref(), &args.inputs, &plan.module, &bound)? {
            Ok(place) => place,
            Err(why) => {
                output.skip(&plan, name, why)?;
                continue;
            }
        };
        let reference = match place.reference(&plan.module, case, &bound) {
            Ok(reference) => reference,
            Err(Diagnostics(all)) => {
                output.result(name, &usage_or_findings(Some(case), all)?, "", json!({}));
                continue;
            }
        };
        let ran = match place.run(&plan.module, &mut bound) {
            Ok(ran) => ran,
            Err(Diagnostics(all)) => {
                let all = usage_or_findings(Some(case), all)?;
                output.result(name, &all, "", json!({}));
                continue;
            }
        };
        output.lines(&ran.printed);
        let seconds = ran.seconds;
        let reference = reference.as_ref().unwrap_or(&bound.args);
        let mut wrong = plan.with_files(case.span, |files| {
            mismatches(&plan.module, case, &bound.args, reference, files)
        })?;
        let missed = wrong.len();
        // What a run that was stopped left behind replaces nothing.
        let ended = !ran.findings.iter().any(|d| d.severity == Severity::Error);
        wrong.extend(ran.findings);
        for out in outs.iter().filter(|_| ended) {
            write_out(out, bound.args[out.number].bytes())?;
        }
        let clean = !wrong.iter().any(|d| d.severity == Severity::Error);
        let mut closing = vec![match (case.expects.len(), missed) {
            _ if missed == 0 && !clean => format!("@{name}: failed the checks"),
            (0, 0) => format!("@{name}: done in {}", time(seconds)),
            (n, 0) => format!(
                "@{name}: right, {} met, in {}",
                count(n, "expectation"),
                time(seconds)
            ),
            (n, w) => format!("@{name}: wrong, {w} of {} not met", count(n, "expectation")),
        }];
        for out in &outs {
            closing.push(if ended {
                format!("wrote {} to {}", out.name, out.path.display())
            } else {
                format!("{} is not written: the run has errors", out.name)
            });
        }
        if let Some(kernel) = plan.module.kernel(name)
            && outs.is_empty()
            && case.expects.is_empty()
        {
            closing.extend(previews(kernel, &bound.args));
        }
        let written: serde_json::Map<String, Json> = outs
            .iter()
            .filter(|_| ended)
            .map(|o| (o.name.to_string(), json!(o.path.display().to_string())))
            .collect();
        output.result(
            name,
            &wrong,
            &closing.join("\n"),
            json!({
                "clean": clean,
                "expectations": case.expects.len(),
                "device": place.name(),
                "steps": ran.steps,
                "seconds": seconds,
                "written": written,
            }),
        );
    }
    program::run(&plan, args, &options, &mut output)?;
    output.finish()
}

/// Whether an expectation is one of what the reference machine computes.
pub fn asks_for_reference(expect: &Expect) -> bool {
    matches!(expect.value.kind, ExprKind::Reference)
}

/// Where a run takes place.
pub enum Place {
    /// The reference machine without its checkers.
    Reference,
    Device(Device),
}

/// What a run tells beside its buffers.
pub struct Ran {
    pub seconds: f64,
    /// Instructions, where they are counted.
    pub steps: Option<u64>,
    pub findings: Vec<Diagnostic>,
    pub printed: Printed,
}

impl Place {
    /// The place that the user names, for this run; or why it cannot be there.
    pub fn of(
        name: Option<&str>,
        inputs: &Inputs,
        module: &Verified,
        bound: &Bound,
    ) -> Result<Result<Place, String>, Refusal> {
        let options = &bound.options;
        let required = module.kernel(&bound.kernel).and_then(|k| k.simdgroup_size);
        let name = match name {
            Some("reference") => return Ok(Ok(Place::Reference)),
            // Only the reference machine has an order of threads to choose, and takes every size.
            None if inputs.seed.is_some() || options.simdgroup_size.is_some() => {
                return Ok(Ok(Place::Reference));
            }
            None => "default",
            Some(name) => name,
        };
        let device = Device::named(name).map_err(|e| usage(e.into_diagnostics().0))?;
        if device.capabilities().name == "checked" {
            return Ok(Ok(Place::Device(Device::checked_with(CheckOptions {
                run: options.clone(),
                ..CheckOptions::default()
            }))));
        }
        let able = device.capabilities();
        if inputs.seed.is_some() {
            return Err(Refusal(format!(
                "--seed orders the threads of the checked device and of the reference machine; \
                 device `{}` has no order to choose",
                able.name
            )));
        }
        // Whether the device has the size that a kernel requires, it says itself.
        Ok(match (required, options.simdgroup_size) {
            (Some(required), Some(size)) if size != required => Err(format!(
                "it requires simdgroups of {required} threads, not {size}"
            )),
            (None, Some(size)) if size != able.simdgroup_size => Err(format!(
                "device `{}` has simdgroups of {} threads for a kernel that requires no size, not \
                 {size}; --device checked and --device reference take 4, 8, 16, 32, 64 and 128",
                able.name, able.simdgroup_size
            )),
            _asks_for_what_it_gets => Ok(Place::Device(device)),
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Place::Reference => "reference",
            Place::Device(device) => &device.capabilities().name,
        }
    }

    /// What the reference machine leaves in the arguments, where an expectation asks for it and the
    /// run itself takes place elsewhere.
    fn reference(
        &self,
        module: &Verified,
        case: &RunCase,
        bound: &Bound,
    ) -> Result<Option<Vec<Arg<'static>>>, Diagnostics> {
        if matches!(self, Place::Reference) || !case.expects.iter().any(asks_for_reference) {
            return Ok(None);
        }
        self.reference_of(module, bound.copy()).map(Some)
    }

    /// What the reference machine leaves in the arguments of a run that takes place here.
    pub fn reference_of(
        &self,
        module: &Verified,
        mut bound: Bound,
    ) -> Result<Vec<Arg<'static>>, Diagnostics> {
        let required = module.kernel(&bound.kernel).and_then(|k| k.simdgroup_size);
        if let (Place::Device(device), None) = (self, required) {
            // A kernel that goes by simdgroups goes by the device's.
            let size = device.capabilities().simdgroup_size;
            bound.options.simdgroup_size.get_or_insert(size);
        }
        invar_interp::run(
            module,
            &bound.kernel,
            &bound.dispatch,
            &mut bound.args,
            &bound.options,
            &mut [],
        )?;
        Ok(bound.args)
    }

    pub fn run(&self, module: &Verified, bound: &mut Bound) -> Result<Ran, Diagnostics> {
        match self {
            Place::Reference => {
                let start = Instant::now();
                let mut bar = Bar::new();
                let mut lines = Lines::default();
                let outcome = invar_interp::run(
                    module,
                    &bound.kernel,
                    &bound.dispatch,
                    &mut bound.args,
                    &bound.options,
                    &mut [&mut bar, &mut lines],
                )?;
                Ok(Ran {
                    seconds: start.elapsed().as_secs_f64(),
                    steps: Some(outcome.steps),
                    findings: Vec::new(),
                    printed: lines.0,
                })
            }
            Place::Device(device) => {
                on_device(device, module, bound).map_err(invar::Error::into_diagnostics)
            }
        }
    }
}

fn on_device(device: &Device, module: &Verified, bound: &mut Bound) -> Result<Ran, invar::Error> {
    let options = CompileOptions {
        constants: bound.options.constants.clone(),
        threadgroup_size: Some(bound.dispatch.threadgroup),
        time_limit: bound.options.time_limit,
    };
    let program = device.compile_with(module, &bound.kernel, &options)?;
    let queue = device.queue().with_time_limit(bound.options.time_limit);
    let queue = queue.quiet();
    let done = queue.run_host(&program, bound.dispatch, &mut bound.args)?;
    let report = done.report();
    let findings = done.findings();
    let seconds = match done.wait() {
        Ok(times) => times.duration().as_secs_f64(),
        // The findings are the reason.
        Err(_) if !findings.is_empty() => 0.0,
        Err(error) => return Err(error),
    };
    Ok(Ran {
        seconds,
        steps: report.map(|r| r.steps),
        findings,
        printed: done.printed().cloned().unwrap_or_default(),
    })
}

pub fn write_out(out: &Out, bytes: &[u8]) -> Result<(), Refusal> {
    let Some(scalar) = out.ty.scalar() else {
        return Ok(());
    };
    let components = u64::from(out.ty.component_count());
    let elements = bytes.len() as u64 / (scalar.size_bytes() * components);
    let used = (elements * components * scalar.size_bytes()) as usize;
    let mut shape = vec![elements];
    if components > 1 {
        shape.push(components);
    }
    npy::write_to(
        &out.destination,
        &Array {
            scalar,
            shape,
            bytes: bytes[..used].to_vec(),
        },
    )?;
    Ok(())
}

/// The first numbers of each buffer that the kernel writes.
fn previews(kernel: &Kernel, args: &[Arg]) -> Vec<String> {
    const SHOWN: usize = 8;
    let mut lines = Vec::new();
    for (param, arg) in kernel.params.iter().zip(args) {
        let ParamKind::Buffer {
            element: ElementType::Value(ty),
            access: Access::Write | Access::ReadWrite,
        } = &param.kind
        else {
            continue;
        };
        let Some(scalar) = ty.scalar() else { continue };
        let size = scalar.size_bytes() as usize;
        let total = arg.bytes().len() / size;
        let shown: Vec<String> = arg
            .bytes()
            .chunks_exact(size)
            .take(SHOWN)
            .map(|bytes| {
                let mut bits = [0; 8];
                bits[..size].copy_from_slice(bytes);
                let bits = u64::from_le_bytes(bits);
                Const { scalar, bits }.to_string()
            })
            .collect();
        let rest = if total > SHOWN {
            format!(", ... ({total} in all)")
        } else {
            String::new()
        };
        lines.push(format!("{} = [{}{rest}]", param.name, shown.join(", ")));
    }
    lines
}
