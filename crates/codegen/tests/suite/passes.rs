//! The passes: what each does to a kernel, as text, and that none changes what a kernel leaves.

use std::fs;
use std::path::{Path, PathBuf};

use invar_codegen::passes::{PassOptions, run};
use invar_codegen::pipeline::OPTIMISATION;
use invar_conformance::{FileOptions, Options, compare, file_tests};
use invar_interp::{Arg, Dispatch};
use invar_ir::contract::contract;
use invar_ir::expand::expand;
use invar_ir::text::case::files;
use invar_ir::{Diagnostics, FloatMode, Verified, text, verify};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(name)
}

fn options() -> PassOptions {
    PassOptions {
        simdgroup_size: Some(32),
        verify: true,
        ..PassOptions::default()
    }
}

/// The kernels of a text after the passes that it names, as comments.
fn after(name: &str, source: &str) -> String {
    let passes = source
        .lines()
        .find_map(|line| line.strip_prefix("; passes: "))
        .unwrap_or_else(|| panic!("{name}: no line `; passes: NAME, ...`"));
    let passes: Vec<&str> = passes.split(", ").collect();
    let module = text::parse(name, source)
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut module = module.into_module();
    for index in 0..module.kernels.len() {
        module = run(module, index, &passes, &options())
            .unwrap_or_else(|e| panic!("{name}: {e}"))
            .0;
    }
    module.to_string()
}

/// Each file of `tests/ir/passes` is kernels, a line `; passes: NAME, ...`, and what becomes of them in
/// comments after a line `; gives:`. `BLESS=1` rewrites what comes after it.
#[test]
fn every_file_becomes_what_it_says() {
    let paths = files(&folder("passes")).expect("the folder of file tests");
    assert!(paths.len() >= 28, "only {} files", paths.len());
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let source = fs::read_to_string(&path).expect("a text");
        let (input, expected) = source.split_once("\n; gives:\n").unwrap_or((&source, ""));
        let output = after(&name, &source);
        let lines = output.trim_end().lines();
        let lines: Vec<String> = lines
            .map(|line| format!("; {line}").trim_end().to_string())
            .collect();
        let output = lines.join("\n") + "\n";
        if bless {
            let text = format!("{}\n; gives:\n{output}", input.trim_end());
            fs::write(&path, text).expect("the file can be written");
        } else if output != expected {
            wrong.push(format!("{name} becomes\n{output}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reference machine on what the passes leave. What has been contracted is not contracted again.
fn optimised(
    passes: &[&str],
    expanded: bool,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
) -> Result<(), Diagnostics> {
    let mut module = contract(module.clone().into_module())?;
    if expanded {
        module = expand(module, &|_, _, _| false)?;
    }
    for index in 0..module.kernels.len() {
        module = run(module, index, passes, &options())?.0;
        module.kernels[index].float_mode = FloatMode::Strict;
    }
    let module = verify(module)?;
    let options = invar_interp::Options {
        step_limit: 100_000_000,
        ..Default::default()
    };
    invar_interp::run(&module, kernel, dispatch, args, &options, &mut []).map(|_| ())
}

#[test]
fn every_run_case_leaves_the_same_bytes() {
    for expanded in [false, true] {
        let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
            optimised(OPTIMISATION, expanded, module, kernel, dispatch, args)
        };
        let summary = file_tests(&mut target, &folder("run"), &FileOptions::default());
        let summary = summary.expect("the folder");
        assert!(summary.failures.is_empty(), "{summary}");
        let skipped: u64 = summary.skipped.values().sum();
        assert!(summary.runs > 10 * skipped.max(5), "{summary}");
    }
}

#[test]
fn every_run_case_leaves_the_same_bytes_with_indices_of_32_bits() {
    let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
        let passes = ["narrow-indices", "dead"];
        optimised(&passes, false, module, kernel, dispatch, args)
    };
    let summary = file_tests(&mut target, &folder("run"), &FileOptions::default());
    let summary = summary.expect("the folder");
    assert!(summary.failures.is_empty(), "{summary}");
}

#[test]
fn random_kernels_leave_the_same_bytes_after_the_pipeline() {
    let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
        optimised(OPTIMISATION, false, module, kernel, dispatch, args)
    };
    let summary =
        compare(&mut target, &Options::default(), 0..400).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(summary.same, 400, "{summary}");
}

#[test]
fn random_kernels_leave_the_same_bytes_after_each_pass() {
    for (i, pass) in invar_codegen::passes::PASSES.iter().enumerate() {
        let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
            optimised(&[pass.name], i % 2 == 0, module, kernel, dispatch, args)
        };
        let seeds = 1000 * (i as u64 + 1);
        let summary = compare(&mut target, &Options::default(), seeds..seeds + 60);
        let summary = summary.unwrap_or_else(|f| panic!("{}: {f}", pass.name));
        assert_eq!(summary.same, 60, "{}: {summary}", pass.name);
    }
}

#[test]
fn a_pass_that_does_not_exist_is_an_error() {
    let text = "kernel @k() {\n}";
    let module = text::parse("k.inv", text).expect("a module");
    let error = run(module, 0, &["folds"], &options()).expect_err("no such pass");
    assert!(error.to_string().contains("`folds`"), "{error}");
}
