//! The `; run:` and `; program:` lines of a folder of `.inv` files through a target.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use invar_interp::case::{Bound, bind, mismatches};
use invar_interp::passes::BoundProgram;
use invar_interp::{Options as RunOptions, run};
use invar_ir::text::case::{Program, files};
use invar_ir::text::{cases, parse, programs};
use invar_ir::{Diagnostics, Kernel, Verified, verify};

use crate::compare::is_refusal;
use crate::target::Target;

/// What the target is like.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// The size of its simdgroups in kernels that require none.
    pub simdgroup_size: u32,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions { simdgroup_size: 32 }
    }
}

/// What was run and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSummary {
    /// Files that were read.
    pub files: u64,
    /// Directives that held.
    pub runs: u64,
    /// Directives that were skipped, by the reason.
    pub skipped: BTreeMap<String, u64>,
    /// What did not hold: the file and what is wrong.
    pub failures: Vec<String>,
}

impl fmt::Display for FileSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files, {} runs", self.files, self.runs)?;
        for (why, count) in &self.skipped {
            write!(f, "\n{count} skipped: {why}")?;
        }
        for failure in &self.failures {
            write!(f, "\n{failure}")?;
        }
        Ok(())
    }
}

/// How one directive ended.
enum End {
    Held,
    Skipped(String),
}

/// Runs every directive of the `.inv` files of a folder on the target. What a directive expects of
/// `reference` the reference machine computes.
///
/// # Errors
/// A file or folder that cannot be read. Directives that do not hold are in the summary.
pub fn file_tests(
    target: &mut Target<'_>,
    folder: &Path,
    options: &FileOptions,
) -> std::io::Result<FileSummary> {
    let paths = files(folder)?;
    let mut summary = FileSummary::default();
    for path in &paths {
        let source = std::fs::read_to_string(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        summary.files += 1;
        let ends = match file(target, &name, &source, options) {
            Ok(ends) => ends,
            Err(errors) => vec![Err(errors.to_string())],
        };
        if ends.is_empty() {
            summary
                .failures
                .push(format!("{name}: it has no `; run:` or `; program:` line"));
        }
        for end in ends {
            match end {
                Ok(End::Held) => summary.runs += 1,
                Ok(End::Skipped(why)) => *summary.skipped.entry(why).or_default() += 1,
                Err(what) => summary.failures.push(format!("{name}: {what}")),
            }
        }
    }
    Ok(summary)
}

fn file(
    target: &mut Target<'_>,
    name: &str,
    source: &str,
    options: &FileOptions,
) -> Result<Vec<Result<End, String>>, Diagnostics> {
    let module = parse(name, source).and_then(verify)?;
    let mut ends = Vec::new();
    for case in cases(source)? {
        let kernel = module.kernel(&case.kernel.name);
        let required = kernel.and_then(|k| k.simdgroup_size);
        if let Some(size) = case.simdgroup
            && required.is_none()
            && size != options.simdgroup_size
            && kernel.is_some_and(Kernel::depends_on_simdgroup_size)
        {
            let why = format!("simdgroups of {size}, which the kernel does not require");
            ends.push(Ok(End::Skipped(why)));
            continue;
        }
        let run_options = RunOptions {
            simdgroup_size: required.or(Some(options.simdgroup_size)),
            step_limit: 100_000_000,
            ..RunOptions::default()
        };
        let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
        let mut case = case;
        if case.simdgroup != required {
            case.simdgroup = None;
        }
        let mut end = || {
            let mut expected = bind(&module, &case, &run_options, &mut no_files)?;
            let mut actual = bind(&module, &case, &run_options, &mut no_files)?;
            let fixed = module.clone().specialise(&expected.options.constants)?;
            run(
                &fixed,
                &expected.kernel,
                &expected.dispatch,
                &mut expected.args,
                &RunOptions {
                    constants: Vec::new(),
                    ..expected.options.clone()
                },
                &mut [],
            )?;
            let (kernel, dispatch) = (&actual.kernel, &actual.dispatch);
            match target(&fixed, kernel, dispatch, &mut actual.args) {
                Ok(()) => {}
                Err(errors) if errors.0.iter().all(|d| is_refusal(d.rule)) => {
                    let first = errors.0.first().map(|d| d.message.clone());
                    return Ok(End::Skipped(first.unwrap_or_default()));
                }
                Err(errors) => return Err(errors),
            }
            let wrong = mismatches(&module, &case, &actual.args, &expected.args, &mut no_files);
            if wrong.is_empty() {
                Ok(End::Held)
            } else {
                Err(Diagnostics(wrong))
            }
        };
        ends.push(end().map_err(|errors| errors.to_string()));
    }
    for one in programs(source)? {
        ends.push(program(target, &module, &one, options).map_err(|errors| errors.to_string()));
    }
    Ok(ends)
}

/// Runs a program on the target; what it refuses of one run it refuses of the whole.
fn program(
    target: &mut Target<'_>,
    module: &Verified,
    program: &Program,
    options: &FileOptions,
) -> Result<End, Diagnostics> {
    let run_options = RunOptions {
        simdgroup_size: Some(options.simdgroup_size),
        step_limit: 100_000_000,
        ..RunOptions::default()
    };
    let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
    let mut actual = BoundProgram::new(module, program, &run_options, &mut no_files)?;
    let mut expected = actual.copy();
    let specialised = |b: &mut Bound| {
        let constants = std::mem::take(&mut b.options.constants);
        module.clone().specialise(&constants)
    };
    expected.run(|b| {
        let fixed = specialised(b)?;
        let (args, options) = (&mut b.args, &b.options);
        run(&fixed, &b.kernel, &b.dispatch, args, options, &mut []).map(drop)
    })?;
    match actual.run(|b| target(&specialised(b)?, &b.kernel, &b.dispatch, &mut b.args)) {
        Ok(()) => {}
        Err(errors) if errors.0.iter().all(|d| is_refusal(d.rule)) => {
            let first = errors.0.first().map(|d| d.message.clone());
            return Ok(End::Skipped(first.unwrap_or_default()));
        }
        Err(errors) => return Err(errors),
    }
    match actual.mismatches(module, program, &expected, &mut no_files) {
        wrong if wrong.is_empty() => Ok(End::Held),
        wrong => Err(Diagnostics(wrong)),
    }
}
