//! What to run: the options that commands share, and the runs that they, or the lines of a file, ask for.
//!
//! Deliberately absent: where runs take place (`place.rs`), and how their results are shown (`output.rs`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use invar::report;
use invar_interp::Options;
use invar_interp::case::{Bound, bind};
use invar_ir::diagnostic::path_text;
use invar_ir::text::case::{Expr, ExprKind, Grid, Literal, Named, Program, RunCase};
use invar_ir::text::data::{FileReader, Wanted};
use invar_ir::texture::stored;
use invar_ir::{
    Call, Const, Diagnostic, Diagnostics, ElementType, Kernel, ParamKind, Rule, Source, Span, Type,
    Verified, text, verify,
};
use invar_wgsl::{Entry, Shader};

use crate::declared::{self, Given};
use crate::input::Loaded;
use crate::npy::{self, Array};
use crate::options::{Machine, duration, shorten, simdgroup_size, size, split, usage};
use crate::outcome::Refusal;
use crate::read::{Asked, Read};
use crate::{input, picture, shader};

#[derive(Args, Default)]
pub struct Inputs {
    /// A module in the text form (.inv) or the binary form (.invb), a shader (.wgsl) or a Metal source
    /// (.metal); with the Python package also a kernel in a Python file, as FILE.py:KERNEL.
    pub file: PathBuf,
    /// The kernel to run, where the module has several.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    pub kernel: Option<String>,
    /// Threads of the grid: X, X,Y or X,Y,Z. Without it, one for each texel of the texture that is written.
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
    /// length(n), a value such as 3.5, or for a texture @picture.png or texture(rgba8unorm, width, height). A shader's variable can be named by its group and binding: 0.1=...
    #[arg(long = "arg", value_name = "NAME=DATA")]
    pub args: Vec<String>,
    /// What the file of inputs says of arguments, names and data, those without a value too.
    #[arg(skip)]
    pub args_of_file: Vec<(String, Option<String>)>,
    /// The value of a function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    pub constants: Vec<String>,
    #[command(flatten)]
    pub with: crate::metal::With,
    /// The seed of the order in which threads run; 0 is the natural order. Wins over a run line's.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads of a simdgroup: a power of two from 4 to 128. Wins over a run line's.
    #[arg(long, value_name = "N", value_parser = simdgroup_size, allow_negative_numbers = true)]
    pub simdgroup: Option<u32>,
    /// Stop after this many seconds: 600, unless INVAR_TIME_LIMIT says otherwise.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time_limit: Option<f64>,
    #[command(flatten)]
    pub machine: Machine,
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
    /// The shader, if it is one.
    pub shader: Option<Shader>,
    /// Entry points of a shader, or kernels of a Metal source, of which no kernel can be made, and why.
    pub refused: Vec<(String, Diagnostics)>,
    /// Kernels of the file that no `run` line names, where no kernel is asked for by itself.
    pub without_runs: Vec<String>,
    /// The file that was read.
    pub file: PathBuf,
    /// Where relative names of array files start.
    folder: PathBuf,
    /// What the runs give in the types of the source.
    given: Given,
}

/// Findings of a file before anything ran.
pub enum Planned {
    Ready(Box<Plan>),
    Invalid {
        sources: Vec<Source>,
        calls: Vec<Call>,
        diagnostics: Vec<Diagnostic>,
    },
}

pub fn plan(inputs: &Inputs, loaded: &Loaded) -> Result<Planned, Refusal> {
    let of_runs = inputs.args.is_empty()
        && inputs.args_of_file.is_empty()
        && inputs.grid.is_none()
        && inputs.groups.is_none()
        && inputs.threadgroup.is_none()
        && (inputs.constants.is_empty() || crate::metal::is_metal(&inputs.file));
    let asked = Asked {
        entry: inputs.kernel.as_deref(),
        constants: &inputs.constants,
        with: Some(&inputs.with),
        of_runs,
    };
    let read = match input::parsed(&inputs.file, loaded, asked)? {
        Ok(read) => read,
        Err((sources, diagnostics)) => {
            return Ok(Planned::Invalid {
                sources,
                calls: Vec::new(),
                diagnostics,
            });
        }
    };
    let (sources, calls) = (read.module.sources.clone(), read.module.calls.clone());
    let is_one = read.one_of_all(&inputs.file);
    let Read {
        module,
        entries,
        shader,
        refused,
    } = read;
    let module = match verify(module) {
        Ok(module) => module,
        Err(Diagnostics(diagnostics)) => {
            return Ok(Planned::Invalid {
                sources,
                calls,
                diagnostics,
            });
        }
    };
    if of_runs {
        let (mut cases, mut programs) =
            match sources.first().map(|s| shader::cases(&inputs.file, s)) {
                None => (Vec::new(), Vec::new()),
                Some(Ok(found)) => found,
                Some(Err(Diagnostics(diagnostics))) => {
                    return Ok(Planned::Invalid {
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
        // What is refused is told by itself.
        let is_made = |case: &RunCase| refused.iter().all(|(name, _)| *name != case.kernel.name);
        cases.retain(is_made);
        programs.retain(|p| p.passes.iter().all(|pass| is_made(&pass.case)));
        if cases.is_empty() && programs.is_empty() {
            if refused.is_empty() {
                return Err(no_run_line(&module, inputs));
            }
            let all = refused.into_iter().flat_map(|(_, Diagnostics(why))| why);
            return Ok(Planned::Invalid {
                sources,
                calls,
                diagnostics: all.collect(),
            });
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
        let mut given = Given::default();
        for case in &mut cases {
            if let Err(Diagnostics(diagnostics)) = given.fill(&module, &entries, &folder, case) {
                return Ok(Planned::Invalid {
                    sources,
                    calls,
                    diagnostics,
                });
            }
        }
        return Ok(Planned::Ready(Box::new(Plan {
            module,
            sources,
            calls,
            cases,
            programs,
            entries,
            shader,
            refused,
            without_runs,
            file: inputs.file.clone(),
            folder,
            given,
        })));
    }
    is_one?;
    let mut case = command_line_case(&module, inputs, &entries)?;
    let mut given = Given::default();
    if let Err(Diagnostics(all)) = given.fill(&module, &entries, Path::new(""), &mut case) {
        return Err(usage(all));
    }
    Ok(Planned::Ready(Box::new(Plan {
        module,
        sources,
        calls,
        cases: vec![case],
        programs: Vec::new(),
        entries,
        shader,
        refused,
        without_runs: Vec::new(),
        file: inputs.file.clone(),
        folder: PathBuf::new(),
        given,
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
                path_text(file),
                names()
            ))
        }),
        (None, [only]) => Ok(only),
        (None, _) => Err(Refusal(format!(
            "{} has several kernels: say which with --kernel: {}",
            path_text(file),
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
    let mut all = Vec::new();
    for given in &inputs.args {
        let (name, data) = split(given, "--arg", "x=zeros(16)")?;
        all.push((name, Some(data)));
    }
    let (options, mut args_of_options) = (all.len(), 0);
    let of_file = inputs.args_of_file.iter();
    all.extend(of_file.map(|(name, data)| (name.as_str(), data.as_deref())));
    for (number, (name, data)) in all.into_iter().enumerate() {
        let filled = data.unwrap_or_default();
        for (name, value) in shader::argument(entries, &kernel.name, name, filled)? {
            if !kernel.params.iter().any(|p| *p.name == *name) {
                return Err(no_parameter("--arg", &name, kernel));
            }
            let is_given = |(before, _): &(Named, _)| before.name == *name;
            if let Some(before) = args.iter().position(is_given) {
                // An option wins over the file, under whichever name.
                if number >= options && before < args_of_options {
                    continue;
                }
                return Err(match number >= options {
                    false => Refusal(format!("--arg {name} is given twice")),
                    true => Refusal(format!(
                        "{}: `{name}` is given twice, under two names",
                        inputs.inputs.as_deref().map_or_else(String::new, path_text)
                    )),
                });
            }
            if data.is_none() {
                let file = inputs.inputs.as_deref().map_or_else(String::new, path_text);
                return Err(Refusal(format!(
                    "{file}: `{name}` is not filled in yet: put its value in the place of `null`, or give --arg {name}="
                )));
            }
            let data = declared::by_field(module, kernel, entries, &name, value)?;
            let param = kernel.params.iter().find(|p| *p.name == *name);
            let is_texture = param.is_some_and(|p| matches!(p.kind, ParamKind::Texture(_)));
            let expr = match data.strip_prefix('@') {
                Some(path) if is_texture => picture(&name, path.trim_matches('"'))?,
                Some(_) | None => expression(&name, &data)?,
            };
            args.push((named(&name), expr));
        }
        if number < options {
            args_of_options = args.len();
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
    let grid = texels_written(kernel, &args);
    Ok(RunCase {
        kernel: named(&kernel.name),
        args,
        grid: match inputs.groups {
            Some(groups) => Grid::Threadgroups(groups),
            None => Grid::Threads(inputs.grid.or(grid).unwrap_or_default()),
        },
        threadgroup: inputs.threadgroup,
        constants,
        simdgroup: None,
        seed: None,
        expects: Vec::new(),
        span: Span::NONE,
    })
}

/// A thread for each texel of the texture that a kernel writes, if it writes one.
fn texels_written(kernel: &Kernel, args: &[(Named, Expr)]) -> Option<[u32; 3]> {
    let written = |name: &str| {
        let param = kernel.params.iter().find(|p| *p.name == *name);
        param.is_some_and(|p| match &p.kind {
            ParamKind::Texture(texture) => texture.access.memory().can_write(),
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Sampler => false,
        })
    };
    let mut sizes = args.iter().filter_map(|(name, expr)| match &expr.kind {
        ExprKind::Texture { shape, .. } if written(&name.name) => Some(shape.extents()),
        _not_written => None,
    });
    sizes.next().filter(|_| sizes.next().is_none())
}

/// An option names a parameter that the kernel does not have.
pub fn no_parameter(option: &str, name: &str, kernel: &Kernel) -> Refusal {
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
    let has_grid = inputs.grid.is_some() || inputs.groups.is_some();
    let has_grid = has_grid || texels_written(kernel, args).is_some();
    kernel
        .params
        .iter()
        .filter(|p| !args.iter().any(|(n, _)| *n.name == *p.name))
        .map(|p| format!("--arg {}=", p.name))
        .chain(missing_constants(module, constants))
        .chain((!has_grid).then(|| shader::grid_option(&inputs.file).to_string()))
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
    let file = path_text(&inputs.file);
    match kernel(module, inputs) {
        Ok(kernel) => {
            let to = format!("run kernel `{}`", kernel.name);
            let missing = missing(module, kernel, inputs, &[], &[]);
            let of = match inputs.kernel {
                Some(_) => format!(" for kernel `{}`", kernel.name),
                None => String::new(),
            };
            let line = shader::run_line(&inputs.file);
            Refusal(format!(
                "{file} has no `{line}` line{of}: {}",
                are_missing(&to, &missing)
            ))
        }
        Err(Refusal(why)) => Refusal(format!(
            "{why}; since it has no `{}` line, say also what to run with {} and one --arg for each {}",
            shader::run_line(&inputs.file),
            shader::size_options(&inputs.file),
            shader::argument_word(&inputs.file),
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

/// The texture that a picture file is.
fn picture(name: &str, path: &str) -> Result<Expr, Refusal> {
    if !picture::is_picture(Path::new(path)) {
        return Err(Refusal(format!(
            "--arg {name}: {path} is not a picture (.png), and the parameter is a texture: of other data say \
             its format and size, as in texture(r32float, 640, 480, @{path})"
        )));
    }
    let shape = picture::shape(Path::new(path))?;
    let of = |kind| Expr {
        kind,
        span: Span::NONE,
    };
    let contents = Some(Box::new(of(ExprKind::File(path.to_string()))));
    Ok(of(ExprKind::Texture { shape, contents }))
}

/// Whether a `;` stands outside of quotes.
fn has_comment(data: &str) -> bool {
    data.split('"')
        .step_by(2)
        .any(|outside| outside.contains(';'))
}

/// What `--arg` says: the data of a run directive, or a file whose name is taken as it stands.
pub fn expression(name: &str, data: &str) -> Result<Expr, Refusal> {
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
        Ok(_) if has_comment(data) => "expected the end of the text, found `;`".to_string(),
        Ok(expr) if is_reference(&expr) => {
            "`reference` is for what a `; run:` line expects".to_string()
        }
        Ok(mut expr) => {
            forget_places(&mut expr);
            return Ok(expr);
        }
        Err(error) => error.message,
    };
    let begun = data.trim_start();
    let handles = ["texture(", "texture3d(", "sampler("];
    if handles.iter().any(|handle| begun.starts_with(handle)) {
        let shown = shorten(data);
        let said = format!("--arg {name}: `{shown}` is not data ({why})");
        return Err(Refusal(said));
    }
    Err(Refusal(format!(
        "--arg {name}: `{}` is not data ({why}); write @file.npy, iota(n), random(n, seed), zeros(n), \
         fill(n, v), rev(iota(n)), [1, 2, 3], length(n), texture(rgba8unorm, width, height), sampler(linear, repeat) or a value, with n a whole number from 0 on, in digits",
        shorten(data)
    )))
}

/// Whether an expression asks for what the reference machine computes.
fn is_reference(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Reference => true,
        ExprKind::Rev(inner) => is_reference(inner),
        ExprKind::Texture { contents, .. } => contents.as_deref().is_some_and(is_reference),
        ExprKind::Scalar(_)
        | ExprKind::List(_)
        | ExprKind::Random { .. }
        | ExprKind::Zeros(_)
        | ExprKind::Fill { .. }
        | ExprKind::Iota(_)
        | ExprKind::File(_)
        | ExprKind::Sampler(_)
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
        ExprKind::Texture { contents, .. } => {
            contents.as_deref_mut().into_iter().for_each(forget_places)
        }
        ExprKind::Random { .. }
        | ExprKind::Zeros(_)
        | ExprKind::Iota(_)
        | ExprKind::File(_)
        | ExprKind::Length(_)
        | ExprKind::Sampler(_)
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
        let mut read = |name: &str, wanted: &Wanted| {
            if let Some(bytes) = self.given.read(name) {
                return Ok(bytes.to_vec());
            }
            let mut keep = |why: String| {
                unreadable.get_or_insert(why.clone());
                why
            };
            if picture::is_picture(Path::new(name)) {
                return match wanted {
                    Wanted::Texels(shape) => picture::texels(&self.folder.join(name), *shape)
                        .map_err(|e| keep(e.to_string())),
                    Wanted::Elements(_) => Err(keep(format!(
                        "{name} is a picture: pass it to a texture, or save its numbers to a .npy file"
                    ))),
                };
            }
            match shader::raw_bytes(&self.folder.join(name)) {
                Some(raw) => {
                    let bytes = raw.map_err(&mut keep)?;
                    match wanted {
                        Wanted::Elements(element) => self.whole(name, bytes, element),
                        Wanted::Texels(_) => Ok(bytes),
                    }
                }
                None => {
                    let read = npy::read(&self.folder.join(name));
                    let array = read.map_err(|e| keep(e.to_string()))?;
                    match wanted {
                        Wanted::Elements(element) => file_bytes(array, name, element),
                        Wanted::Texels(shape) => {
                            file_bytes(array, name, &stored(shape.format).into())
                        }
                    }
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

impl Plan {
    /// The bytes of a file for elements of a type. As in WebGPU a shader's buffer may have some behind its last whole
    /// element, if it could be bound.
    fn whole(&self, name: &str, bytes: Vec<u8>, element: &ElementType) -> Result<Vec<u8>, String> {
        /// What the size of a binding in storage is a multiple of.
        const BOUND_BYTES: usize = 4;
        let extent = element.extent(&self.module.structs);
        let size = extent.map_or(1, |e| e.size_bytes.max(1));
        let (length, is_shader) = (bytes.len(), shader::is_shader(&self.file));
        if (length as u64).is_multiple_of(size) || is_shader && length.is_multiple_of(BOUND_BYTES) {
            return Ok(bytes);
        }
        let or_bound = match is_shader {
            true => format!(
                ", nor a multiple of {BOUND_BYTES}, which the size of a buffer is in WebGPU"
            ),
            false => String::new(),
        };
        Err(format!(
            "`{name}` holds {length} bytes, no whole number of elements of {size}{or_bound}"
        ))
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

impl Inputs {
    /// Fills in what the file of `--inputs` says and no option does.
    pub fn complete(&mut self) -> Result<(), Refusal> {
        match self.inputs.clone() {
            Some(file) => shader::complete(self, &file),
            None => Ok(()),
        }
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
        Err(Diagnostics(all)) => usage_or_findings(&plan.file, Some(case), all).map(Err),
    }
}

/// The same, unless they have places in a text. Where the command line says what to run, sizes that
/// cannot be dispatched and arguments that do not fit are its mistake, wherever they show; a run that takes
/// too long is the kernel's.
pub fn usage_or_findings(
    file: &Path,
    case: Option<&RunCase>,
    all: Vec<Diagnostic>,
) -> Result<Vec<Diagnostic>, Refusal> {
    let from_command_line = case.is_some_and(|case| case.span.source.is_none());
    let is_of_launch = |rule| {
        matches!(
            rule,
            Rule::InvalidDispatch | Rule::InvalidArgument | Rule::BrokenRequirement
        )
    };
    let of_usage = |d: &Diagnostic| {
        d.span().source.is_none() && d.rule != Rule::DeadlineExceeded
            || from_command_line && is_of_launch(d.rule)
    };
    if all.iter().all(of_usage) {
        return Err(usage(shader::advised(file, &all)));
    }
    Ok(all)
}
