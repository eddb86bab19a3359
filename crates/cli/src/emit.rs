//! `emit`: a kernel as the code of a target.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use invar::codegen::{msl, wgsl};
use invar::interp::{Dispatch, Grid, Options, check_grid};
use invar::ir::{Const, ConstantKey, Diagnostics, Kernel, Verified, verify};
use invar::{llvm, report};

use crate::{Loaded, Refusal, Verdict, execute, input, say, shader, show};

#[derive(Args)]
pub struct EmitArgs {
    /// A module in the text form (.inv) or the binary form (.invb), or a shader (.wgsl).
    file: PathBuf,
    /// What to print.
    #[arg(long, value_name = "TARGET")]
    target: Target,
    /// The kernel, where the module has several.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    kernel: Option<String>,
    /// Threads of a threadgroup: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = execute::size)]
    threadgroup: Option<[u32; 3]>,
    /// The value of a function constant.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    /// The processor that llvm and asm are for: native (unless another is given), x86-64, x86-64-v3,
    /// x86-64-v4 or aarch64.
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// How MSL makes async copies.
    #[arg(long, value_name = "HOW", default_value = "expanded")]
    async_copies: AsyncCopies,
    /// What simdgroup matrices are in WGSL.
    #[arg(long, value_name = "WHAT", default_value = "expanded")]
    matrices: Matrices,
}

/// What simdgroup matrices are in WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Matrices {
    /// Arrays in plain code, on every GPU.
    Expanded,
    /// Cooperative matrices, on GPUs that have those of 8 rows and columns.
    Cooperative,
}

/// How async copies are made in MSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AsyncCopies {
    /// By the lanes of the simdgroup, on every GPU.
    Expanded,
    /// By the copy engine of Apple's GPUs of family 9 and newer, whose functions are not documented.
    Engine,
}

/// What a kernel can be printed as.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// Metal's shading language.
    Msl,
    /// WebGPU's shading language.
    Wgsl,
    /// LLVM's intermediate form, for the CPU device.
    Llvm,
    /// Assembly, for the CPU device.
    Asm,
}

pub fn emit(args: &EmitArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let asked = input::Asked {
        entry: args.kernel.as_deref(),
        constants: &args.constants,
    };
    let Some(module) = input::module(&args.file, loaded, asked)? else {
        return Ok(Verdict::Errors);
    };
    let sources = module.sources.clone();
    let calls = module.calls.clone();
    let refused = |Diagnostics(all): Diagnostics| -> Result<Verdict, Refusal> {
        let all = execute::usage_or_findings(None, all)?;
        let text = report::render(&sources, &calls, &all, input::style());
        say(text.trim_end());
        Ok(Verdict::Errors)
    };
    let module = match verify(module) {
        Ok(module) => module,
        Err(all) => return refused(all),
    };
    let given = shader::still_open(&args.file, &module, &args.constants);
    let given = execute::constants(&module, &given)?;
    let constants: Vec<(ConstantKey, Const)> = given
        .iter()
        .map(|(name, _, value)| (ConstantKey::from(&*name.name), *value))
        .collect();
    let missing = execute::missing_constants(&module, &given);
    if !missing.is_empty() && !stay_open(&constants, args.target) {
        return Err(Refusal(execute::are_missing("print a kernel", &missing)));
    }
    let module = match specialised(module, &constants, args.target) {
        Ok(module) => module,
        Err(all) => return refused(all),
    };
    let kernel = execute::the_kernel(&module, &args.file, args.kernel.as_deref())?;
    match written(
        args.target,
        &module,
        kernel,
        args.threadgroup,
        args.processor.as_deref(),
        args.async_copies,
        args.matrices,
    )? {
        Ok(text) => show(text.trim_end()),
        Err(all) => return refused(all),
    }
    Ok(Verdict::Clean)
}

/// Metal's language has function constants of its own: there they stay open where no value is given
/// at all.
fn stay_open(constants: &[(ConstantKey, Const)], target: Target) -> bool {
    constants.is_empty() && matches!(target, Target::Msl)
}

/// The module with these values of its function constants.
fn specialised(
    module: Verified,
    constants: &[(ConstantKey, Const)],
    target: Target,
) -> Result<Verified, Diagnostics> {
    if stay_open(constants, target) {
        return Ok(module);
    }
    module.specialise(constants)
}

/// A kernel as the code of the target of that name, as `emit` prints it, with these values of its
/// function constants, its async copies made in that way and its simdgroup matrices what is said.
///
/// # Errors
/// A sentence if the names or the threadgroup size are not usable; inside, what is wrong with the
/// constants and what the target has no words for.
pub fn source(
    module: &Verified,
    kernel: &str,
    target: &str,
    threadgroup: Option<[u32; 3]>,
    constants: &[(ConstantKey, Const)],
    async_copies: &str,
    matrices: &str,
) -> Result<Result<String, Diagnostics>, String> {
    let target: Target = one_of("target", target)?;
    let copies = one_of("way to make async copies", async_copies)?;
    let matrices = one_of("kind of matrices", matrices)?;
    let module = match specialised(module.clone(), constants, target) {
        Ok(module) => module,
        Err(errors) => return Ok(Err(errors)),
    };
    let found = module.kernel(kernel);
    let found = found.ok_or_else(|| format!("there is no kernel `{kernel}`"))?;
    written(target, &module, found, threadgroup, None, copies, matrices).map_err(|Refusal(why)| why)
}

/// What a caller means by a name.
fn one_of<T: ValueEnum>(what: &str, name: &str) -> Result<T, String> {
    T::from_str(name, false).map_err(|_| {
        let names = T::value_variants().iter().filter_map(|t| {
            let value = t.to_possible_value()?;
            Some(format!("\"{}\"", value.get_name()))
        });
        let names: Vec<String> = names.collect();
        format!(
            "there is no {what} \"{name}\"; there is {}",
            names.join(", ")
        )
    })
}

/// The kernel in the target's words, or why it cannot be.
fn written(
    target: Target,
    module: &Verified,
    kernel: &Kernel,
    threadgroup: Option<[u32; 3]>,
    processor: Option<&str>,
    async_copies: AsyncCopies,
    matrices: Matrices,
) -> Result<Result<String, Diagnostics>, Refusal> {
    let size = threadgroup.or(kernel.threadgroup_size);
    if let Some(size) = size {
        let one = Dispatch {
            grid: Grid::Threadgroups([1; 3]),
            threadgroup: size,
        };
        let limit = Options::default().threads_per_threadgroup;
        if let Err(Diagnostics(all)) = check_grid(kernel, &one, limit) {
            return Err(execute::usage(all));
        }
    }
    if matrices == Matrices::Cooperative && !matches!(target, Target::Wgsl) {
        return Err(Refusal(
            "only WGSL has cooperative matrices: ask for the target wgsl, or for expanded ones"
                .to_string(),
        ));
    }
    if processor.is_some() && !matches!(target, Target::Llvm | Target::Asm) {
        return Err(Refusal(
            "--processor is for the targets llvm and asm: leave it out".to_string(),
        ));
    }
    let processor = processor.unwrap_or("native");
    if async_copies == AsyncCopies::Engine && !matches!(target, Target::Msl) {
        return Err(Refusal(
            "only MSL has async copies by a copy engine: ask for the target msl, or for expanded ones"
                .to_string(),
        ));
    }
    match target {
        Target::Msl => {
            let options = msl::MslOptions {
                threadgroup_size: size,
                async_copies: match async_copies {
                    AsyncCopies::Expanded => msl::AsyncCopies::Expanded,
                    AsyncCopies::Engine => msl::AsyncCopies::Apple9Extern,
                },
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
            let features = match matrices {
                Matrices::Expanded => wgsl::Features::DESKTOP,
                Matrices::Cooperative => wgsl::Features {
                    cooperative_matrices: wgsl::CooperativeMatrices::ALL,
                    ..wgsl::Features::DESKTOP
                },
            };
            let options = wgsl::WgslOptions::new(features, size);
            Ok(wgsl::write(module, &kernel.name, &options).map(|source| source.text))
        }
        Target::Llvm => native(module, kernel, size, llvm::Text::Llvm, processor),
        Target::Asm => native(module, kernel, size, llvm::Text::Asm, processor),
    }
}

/// The kernel as the CPU device compiles it.
fn native(
    module: &Verified,
    kernel: &Kernel,
    threadgroup_size: Option<[u32; 3]>,
    text: llvm::Text,
    processor: &str,
) -> Result<Result<String, Diagnostics>, Refusal> {
    let target = llvm::Target::from_name(processor).ok_or_else(|| {
        let names: Vec<&str> = llvm::Target::ALL.iter().map(|t| t.name()).collect();
        Refusal(format!(
            "there is no processor `{processor}`; there is {}",
            names.join(", ")
        ))
    })?;
    let options = llvm::CompileOptions {
        target,
        threadgroup_size,
        ..llvm::CompileOptions::default()
    };
    Ok(llvm::emit(module, &kernel.name, &options, text))
}
