//! `emit`: a kernel as the code of a target.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use invar::codegen::{msl, wgsl};
use invar::ir::text::case::Literal;
use invar::ir::{ConstantKey, Diagnostic, Diagnostics, Kernel, Scalar, Span, Verified, verify};
use invar::report;

use crate::{Loaded, Refusal, Verdict, execute, input, say, show};

#[derive(Args)]
pub struct EmitArgs {
    /// A module in the text form (.inv) or the binary form (.invb).
    file: PathBuf,
    /// What to print.
    #[arg(long, value_name = "TARGET")]
    target: Target,
    /// The kernel, where the module has several.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Threads of a threadgroup: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = execute::size)]
    threadgroup: Option<[u32; 3]>,
    /// The value of a function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
}

/// What a kernel can be printed as.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// Metal's shading language.
    Msl,
    /// WebGPU's shading language.
    Wgsl,
}

pub fn emit(args: &EmitArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let Some(module) = input::module(&args.file, loaded)? else {
        return Ok(Verdict::Errors);
    };
    let sources = module.sources.clone();
    let calls = module.calls.clone();
    let refused = |Diagnostics(all): Diagnostics| -> Result<Verdict, Refusal> {
        let all = execute::usage_or_findings(all)?;
        let text = report::render(&sources, &calls, &all, input::style());
        say(text.trim_end());
        Ok(Verdict::Errors)
    };
    let module = match verify(module).and_then(|module| fixed(module, args)) {
        Ok(module) => module,
        Err(all) => return refused(all),
    };
    let kernel = execute::the_kernel(&module, &args.file, args.kernel.as_deref())?;
    match written(args, &module, kernel)? {
        Ok(text) => show(text.trim_end()),
        Err(all) => return refused(all),
    }
    Ok(Verdict::Clean)
}

/// The module with its function constants fixed.
fn fixed(module: Verified, args: &EmitArgs) -> Result<Verified, Diagnostics> {
    let mut constants = Vec::new();
    for given in &args.constants {
        let (name, value) =
            execute::split(given, "--const", "N=16").map_err(|Refusal(why)| usage_error(why))?;
        let declared = module.function_constants.iter().find(|c| &*c.name == name);
        let literal = Literal {
            text: value.to_string(),
            span: Span::NONE,
        };
        let value = literal
            .as_const(declared.map_or(Scalar::U32, |c| c.scalar))
            .map_err(|error| Diagnostics(vec![error]))?;
        constants.push((ConstantKey::from(name), value));
    }
    module.specialise(&constants)
}

fn usage_error(message: String) -> Diagnostics {
    let rule = invar::ir::Rule::InvalidArgument;
    Diagnostics(vec![Diagnostic::error(rule, Span::NONE, message)])
}

/// The kernel in the target's words, or why it cannot be.
fn written(
    args: &EmitArgs,
    module: &Verified,
    kernel: &Kernel,
) -> Result<Result<String, Diagnostics>, Refusal> {
    let size = args.threadgroup.or(kernel.threadgroup_size);
    match args.target {
        Target::Msl => {
            let options = msl::MslOptions {
                threadgroup_size: size,
                ..msl::MslOptions::default()
            };
            Ok(msl::write(module, &kernel.name, &options).map(|source| source.text))
        }
        Target::Wgsl => {
            let Some(size) = size else {
                return Err(Refusal(format!(
                    "WGSL fixes the threadgroup size, and kernel `{}` says none: give --threadgroup",
                    kernel.name
                )));
            };
            let options = wgsl::WgslOptions::new(wgsl::Features::default(), size);
            Ok(wgsl::write(module, &kernel.name, &options).map(|source| source.text))
        }
    }
}
