//! Metal sources as inputs: `.metal` files, with what they are compiled with.

use std::path::{Path, PathBuf};

use clap::Args;
use invar_ir::{Diagnostic, Diagnostics, Rule, Source, text};
use invar_msl::{Library, Wrong};

use crate::options::{split, usage};
use crate::outcome::Refusal;
use crate::read::{Asked, Parsed, Read};

/// What a Metal source is compiled with.
#[derive(Args, Clone, Default)]
pub struct With {
    /// A folder of files that a Metal source includes (repeatable).
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    includes: Vec<PathBuf>,
    /// A macro of a Metal source (repeatable).
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    defines: Vec<String>,
}

impl With {
    /// The options that say the same.
    pub fn options(&self) -> Vec<String> {
        let includes = self
            .includes
            .iter()
            .map(|folder| ("-I", folder.display().to_string()));
        let defines = self.defines.iter().map(|macro_| ("-D", macro_.clone()));
        let all = includes.chain(defines);
        all.flat_map(|(option, value)| [option.to_string(), value])
            .collect()
    }
}

/// Whether a file is a Metal source, by its name.
pub fn is_metal(file: &Path) -> bool {
    invar_msl::is_metal(file)
}

/// Reads a Metal source.
pub fn read(name: &str, text: &str, asked: Asked) -> Result<Parsed, Refusal> {
    let mut constants = Vec::new();
    for given in asked.constants {
        let (name, value) = split(given, "--const", "N=16")?;
        let name = name.trim_start_matches('@').to_string();
        constants.push((name, value.to_string()));
    }
    if asked.of_runs {
        let more = of_runs(text, asked.entry, &constants)?;
        constants.extend(more);
    }
    let with = asked.with.cloned().unwrap_or_default();
    let library = Library {
        name: name.to_string(),
        text: text.to_string(),
        includes: with.includes,
        defines: with.defines,
        constants,
    };
    let wrong = |sources: Vec<Source>, Diagnostics(all): Diagnostics| {
        // Without a place it speaks of the command line.
        match all.iter().all(|d| d.span().source.is_none()) {
            true => Err(usage(all)),
            false => Ok(Err((sources, all))),
        }
    };
    match library.possible(asked.entry) {
        Err(Wrong {
            sources,
            diagnostics,
        }) => wrong(sources, diagnostics),
        Ok(kernels) if kernels.entries.is_empty() => {
            let refusals = kernels.refusals();
            wrong(kernels.module.sources, refusals)
        }
        Ok(kernels) => Ok(Ok(Read {
            module: kernels.module,
            entries: kernels.entries,
            shader: None,
            refused: kernels.refused,
        })),
    }
}

/// The function constants that diagnostics say a kernel needs values of.
pub fn without_value(all: &[Diagnostic]) -> Vec<String> {
    const ONE: &str = "`, a function constant without a value";
    let of_constants = all.iter().filter(|d| d.rule == Rule::FunctionConstant);
    let names = of_constants.flat_map(|d| {
        let one = d.message.strip_suffix(ONE);
        let one = one.and_then(|before| before.rsplit('`').next());
        let (_, several) = d.message.split_once(" have no value: ").unwrap_or_default();
        one.into_iter().chain(several.split('`').skip(1).step_by(2))
    });
    names.map(str::to_string).collect()
}

/// The values of function constants that the `// run:` lines of a source say, those of one kernel or of all, but for
/// those that are given.
fn of_runs(
    text: &str,
    kernel: Option<&str>,
    given: &[(String, String)],
) -> Result<Vec<(String, String)>, Refusal> {
    // Lines that are wrong are told when they run.
    let cases = text::cases(&invar_msl::directives(text)).unwrap_or_default();
    let mut all: Vec<(String, String)> = Vec::new();
    for case in &cases {
        if kernel.is_some_and(|name| *name != case.kernel.name) {
            continue;
        }
        for (name, value) in &case.constants {
            if given.iter().any(|(known, _)| *known == name.name) {
                continue;
            }
            match all.iter().find(|(known, _)| *known == name.name) {
                None => all.push((name.name.clone(), value.text.clone())),
                Some((_, known)) if *known == value.text => {}
                Some((_, known)) => {
                    return Err(Refusal(format!(
                        "the `// run:` lines give `{}` the values {known} and {}, and a Metal source is compiled \
                         with one: choose a kernel with --kernel, or say --const {}=",
                        name.name, value.text, name.name
                    )));
                }
            }
        }
    }
    Ok(all)
}
