//! `emit`: a kernel as the code of a target.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use invar::emit::{AsyncCopies, Matrices, Options, Target, keeps_open};
use invar::{Error, PixelFormat, report};
use invar_ir::text::case::{Expr, ExprKind, Grid, Named, RunCase};
use invar_ir::{Const, ConstantKey, Diagnostics, Kernel, ParamKind, Span, Verified, verify};
use invar_wgsl::Entry;

use crate::console::{say, show};
use crate::declared::Given;
use crate::input::Loaded;
use crate::outcome::{Refusal, Verdict};
use crate::plan::Inputs;
use crate::{input, options, plan, read, shader};

#[derive(Args)]
pub struct EmitArgs {
    /// A module in the text form (.inv) or the binary form (.invb), a shader (.wgsl) or a Metal source
    /// (.metal).
    file: PathBuf,
    /// What to print.
    #[arg(long, value_name = "TARGET", value_parser = target())]
    target: Target,
    /// The kernel, where the module has several.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    kernel: Option<String>,
    /// Threads of a threadgroup: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = options::size)]
    threadgroup: Option<[u32; 3]>,
    /// The value of a function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    /// The length of a threadgroup parameter, for msl and wgsl: NAME=length(64) (repeatable).
    #[arg(long = "arg", value_name = "NAME=LENGTH")]
    args: Vec<String>,
    /// A JSON file that describes a dispatch, as `invar inputs` prints one: its kernel, threadgroup, constants and
    /// lengths of threadgroup parameters; options win over it.
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    #[command(flatten)]
    with: crate::metal::With,
    /// The processor that llvm and asm are for: native (unless another is given), x86-64, x86-64-v3,
    /// x86-64-v4 or aarch64.
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// How MSL makes async copies.
    #[arg(long, value_name = "HOW", default_value = "expanded", value_parser = async_copies())]
    async_copies: AsyncCopies,
    /// What simdgroup matrices are in WGSL.
    #[arg(long, value_name = "WHAT", default_value = "expanded", value_parser = matrices())]
    matrices: Matrices,
    /// The pixel format of a texture that the kernel writes, for wgsl: dst=rgba8unorm (repeatable). A shader says
    /// those of its own.
    #[arg(long = "format", value_name = "NAME=FORMAT", value_parser = format)]
    formats: Vec<(String, PixelFormat)>,
    /// Prove first in which launches every access is in bounds, as `invar prove` does, and write no guards if there
    /// are any: for msl and wgsl.
    #[arg(long)]
    prove: bool,
}

/// A texture's name and its format.
fn format(text: &str) -> Result<(String, PixelFormat), String> {
    let (name, format) = text
        .split_once('=')
        .ok_or("write a parameter's name and a pixel format, such as dst=rgba8unorm")?;
    let found = PixelFormat::from_name(format);
    let found = found.ok_or_else(|| format!("there is no pixel format `{format}`"))?;
    Ok((name.to_string(), found))
}

/// A parser of values that have names, with what each of them is.
fn named<T: Clone + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().cloned();
    let values = values.map(|value| PossibleValue::new(name(value.clone())).help(about(value)));
    PossibleValuesParser::new(values).map(move |given| {
        let found = all.iter().find(|value| name((*value).clone()) == given);
        found.expect("one of those that are possible").clone()
    })
}

fn target() -> impl TypedValueParser<Value = Target> {
    named(&Target::ALL, Target::name, |target| match target {
        Target::Msl => "Metal's shading language",
        Target::Wgsl => "WebGPU's shading language",
        Target::Llvm => "LLVM's intermediate form, for the CPU device",
        Target::Asm => "Assembly, for the CPU device",
    })
}

fn async_copies() -> impl TypedValueParser<Value = AsyncCopies> {
    named(&AsyncCopies::ALL, AsyncCopies::name, |how| match how {
        AsyncCopies::Expanded => "By the lanes of the simdgroup, on every GPU",
        AsyncCopies::Engine => {
            "By the copy engine of Apple's GPUs of family 9 and newer, whose functions are not documented"
        }
    })
}

fn matrices() -> impl TypedValueParser<Value = Matrices> {
    named(&Matrices::ALL, Matrices::name, |what| match what {
        Matrices::Expanded => "Arrays in plain code, on every GPU",
        Matrices::Cooperative => {
            "Cooperative matrices, on GPUs that have those of 8 rows and columns"
        }
    })
}

pub fn emit(args: &EmitArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let mut inputs = Inputs {
        file: args.file.clone(),
        kernel: args.kernel.clone(),
        inputs: args.inputs.clone(),
        threadgroup: args.threadgroup,
        args: args.args.clone(),
        constants: args.constants.clone(),
        ..Inputs::default()
    };
    inputs.complete()?;
    let asked = read::Asked {
        entry: inputs.kernel.as_deref(),
        constants: &inputs.constants,
        with: Some(&args.with),
        of_runs: false,
    };
    let Some(read) = input::read(&args.file, loaded, asked)? else {
        return Ok(Verdict::Errors);
    };
    read.one_of_all(&args.file)?;
    let (module, entries) = (read.module, read.entries);
    let sources = module.sources.clone();
    let calls = module.calls.clone();
    let refused = |Diagnostics(all): Diagnostics| -> Result<Verdict, Refusal> {
        let all = plan::usage_or_findings(&args.file, None, all)?;
        let all = shader::advised(&args.file, &all);
        let text = report::render(&sources, &calls, &all, input::style());
        say(text.trim_end());
        Ok(Verdict::Errors)
    };
    let module = match verify(module) {
        Ok(module) => module,
        Err(all) => return refused(all),
    };
    let given = shader::still_open(&args.file, &module, &inputs.constants);
    let given = plan::constants(&module, &given)?;
    let constants: Vec<(ConstantKey, Const)> = given
        .iter()
        .map(|(name, _, value)| (ConstantKey::from(&*name.name), *value))
        .collect();
    let missing = plan::missing_constants(&module, &given);
    if !missing.is_empty() && !keeps_open(args.target, &constants) {
        return Err(Refusal(plan::are_missing("print a kernel", &missing)));
    }
    let kernel = plan::the_kernel(&module, &args.file, inputs.kernel.as_deref())?;
    let mut formats = args.formats.clone();
    if args.target == Target::Wgsl {
        formats.extend(shader::formats(&entries, kernel, &formats));
    }
    let options = Options {
        threadgroup_size: inputs.threadgroup,
        constants,
        processor: args.processor.clone(),
        async_copies: args.async_copies,
        matrices: args.matrices,
        formats,
        threadgroup_lengths: lengths(&module, kernel, &entries, &inputs)?,
        prove: args.prove,
    };
    match invar::emit::emit(&module, &kernel.name, args.target, &options) {
        Ok(text) => show(text.trim_end()),
        Err(Error::Runtime { message, .. }) => return Err(Refusal(message)),
        Err(Error::Diagnostics(all)) => return refused(all),
    }
    Ok(Verdict::Clean)
}

/// The lengths of threadgroup parameters that options and the file of inputs give; what the file says of others does
/// not change the code.
fn lengths(
    module: &Verified,
    kernel: &Kernel,
    entries: &[Entry],
    inputs: &Inputs,
) -> Result<Vec<(String, u64)>, Refusal> {
    let named = |name: &str| Named {
        name: name.to_string(),
        span: Span::NONE,
    };
    let mut all = Vec::new();
    for given in &inputs.args {
        let (name, data) = options::split(given, "--arg", "s=length(64)")?;
        all.push((name, Some(data)));
    }
    let options = all.len();
    let of_file = inputs.args_of_file.iter();
    all.extend(of_file.map(|(name, data)| (name.as_str(), data.as_deref())));
    let mut args: Vec<(Named, Expr)> = Vec::new();
    for (number, (name, data)) in all.into_iter().enumerate() {
        let filled = data.unwrap_or_default();
        for (name, value) in shader::argument(entries, &kernel.name, name, filled)? {
            let param = kernel.params.iter().find(|p| *p.name == *name);
            let param = param.ok_or_else(|| plan::no_parameter("--arg", &name, kernel))?;
            if !matches!(param.kind, ParamKind::Threadgroup { .. }) {
                if number >= options {
                    continue;
                }
                return Err(Refusal(format!(
                    "--arg {name}: code depends on the lengths of threadgroup parameters alone, and `{name}` is none: \
                     leave it out"
                )));
            }
            if args.iter().any(|(before, _)| before.name == *name) {
                if number >= options {
                    continue;
                }
                return Err(Refusal(format!("--arg {name} is given twice")));
            }
            // What a file has not filled in is not given.
            if data.is_none() {
                continue;
            }
            let expr = plan::expression(&name, &value)?;
            if !matches!(expr.kind, ExprKind::Length(_)) {
                return Err(Refusal(format!(
                    "--arg {name}: a threadgroup parameter has a length, as in {name}=length(64)"
                )));
            }
            args.push((named(&name), expr));
        }
    }
    let mut case = RunCase {
        kernel: named(&kernel.name),
        args,
        grid: Grid::Threads([1; 3]),
        threadgroup: None,
        constants: Vec::new(),
        simdgroup: None,
        seed: None,
        expects: Vec::new(),
        span: Span::NONE,
    };
    // In the kernel's own elements.
    let filled = Given::default().fill(module, entries, Path::new(""), &mut case);
    filled.map_err(|Diagnostics(all)| options::usage(all))?;
    let lengths = case
        .args
        .into_iter()
        .filter_map(|(name, expr)| match expr.kind {
            ExprKind::Length(length) => Some((name.name, length)),
            _no_length => None,
        });
    Ok(lengths.collect())
}
