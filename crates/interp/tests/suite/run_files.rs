//! Runs every `; run:` and `; program:` directive of `tests/ir/run/*.inv`, with several seeds, and with several
//! simdgroup sizes unless the result depends on them.

use std::path::{Path, PathBuf};

use invar_interp::case::{Bound, bind, mismatches};
use invar_interp::passes::BoundProgram;
use invar_interp::{Options, run};
use invar_ir::text::case::{Program, cases, programs};
use invar_ir::text::parse;
use invar_ir::{Kernel, Verified, verify};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
}

/// How many runs a file took, or what is wrong with it.
fn run_file(path: &Path) -> Result<u32, String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let module = parse(name, &source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    let cases = cases(&source).map_err(|e| e.to_string())?;
    let programs = programs(&source).map_err(|e| e.to_string())?;
    if cases.is_empty() && programs.is_empty() {
        return Err("it has no `; run:` or `; program:` directive".to_string());
    }
    let mut runs = 0;
    for program in &programs {
        for simdgroup_size in [4, 8, 32, 128] {
            for seed in 0..5 {
                run_program(&module, program, simdgroup_size, seed).map_err(|e| {
                    format!("with seed {seed} and simdgroups of {simdgroup_size}: {e}")
                })?;
                runs += 1;
            }
        }
    }
    for case in &cases {
        let kernel = module.kernel(&case.kernel.name);
        let fixed = case.simdgroup.or(kernel.and_then(|k| k.simdgroup_size));
        let sizes = match fixed {
            Some(size) => vec![size],
            None if kernel.is_some_and(Kernel::depends_on_simdgroup_size) => vec![32],
            None => vec![4, 8, 32, 128],
        };
        if case.expects.is_empty() {
            return Err("a `; run:` directive expects nothing".to_string());
        }
        for simdgroup_size in sizes {
            for seed in 0..5 {
                let options = Options {
                    seed,
                    simdgroup_size: Some(simdgroup_size),
                    step_limit: 100_000_000,
                    ..Options::default()
                };
                let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
                let bound = || {
                    bind(&module, case, &options, &mut |n: &str, _: &_| {
                        Err(format!("no file `{n}`"))
                    })
                };
                let at = |e: &dyn std::fmt::Display| {
                    format!("with seed {seed} and simdgroups of {simdgroup_size}: {e}")
                };
                let mut now = bound().map_err(|e| at(&e))?;
                let mut natural = bound().map_err(|e| at(&e))?;
                natural.options.seed = 0;
                for b in [&mut now, &mut natural] {
                    run(
                        &module,
                        &b.kernel,
                        &b.dispatch,
                        &mut b.args,
                        &b.options,
                        &mut [],
                    )
                    .map_err(|e| at(&e))?;
                }
                let wrong = mismatches(&module, case, &now.args, &natural.args, &mut no_files);
                if let Some(first) = wrong.first() {
                    return Err(at(first));
                }
                runs += 1;
            }
        }
    }
    Ok(runs)
}

/// A program whose result does not depend on the order of threads, nor on the size of simdgroups.
fn run_program(
    module: &Verified,
    program: &Program,
    simdgroup_size: u32,
    seed: u64,
) -> Result<(), String> {
    if program.expects.is_empty() {
        return Err("a `; program:` directive expects nothing".to_string());
    }
    let options = Options {
        seed,
        simdgroup_size: Some(simdgroup_size),
        step_limit: 100_000_000,
        ..Options::default()
    };
    let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
    let bound = BoundProgram::new(module, program, &options, &mut no_files);
    let mut now = bound.map_err(|e| e.to_string())?;
    let mut natural = now.copy();
    let runs = |seed: Option<u64>| {
        move |b: &mut Bound| {
            b.options.seed = seed.unwrap_or(b.options.seed);
            let (args, options) = (&mut b.args, &b.options);
            run(module, &b.kernel, &b.dispatch, args, options, &mut []).map(drop)
        }
    };
    now.run(runs(None)).map_err(|e| e.to_string())?;
    natural.run(runs(Some(0))).map_err(|e| e.to_string())?;
    match now
        .mismatches(module, program, &natural, &mut no_files)
        .first()
    {
        Some(first) => Err(first.to_string()),
        None => Ok(()),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_run_directive_holds() {
    let mut failures = Vec::new();
    let mut runs = 0;
    let files = files("run");
    for path in &files {
        match run_file(path) {
            Ok(n) => runs += n,
            Err(error) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{} files, {runs} runs", files.len());
    assert!(files.len() >= 165, "only {} files", files.len());
    assert!(runs >= 500, "only {runs} runs");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The rules of the memory model that a run shows.
const RULES: &[&str] = &[
    "X1", "X2", "X3", "X5", "X6", "X7", "S1", "S2", "L1", "L2", "L3", "B1", "B2", "B3", "B4", "B5",
    "I1", "I2", "I3", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "O1", "O2", "O3", "O4", "O5", "O6",
    "O7", "O8", "T1", "T2", "T3", "F1",
];

#[test]
fn every_rule_that_a_run_shows_has_a_file() {
    let names: Vec<String> = files("run")
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let missing: Vec<&&str> = RULES
        .iter()
        .filter(|rule| {
            !names
                .iter()
                .any(|name| name.starts_with(&format!("{rule}-")))
        })
        .collect();
    assert!(missing.is_empty(), "no file for {missing:?}");
}
