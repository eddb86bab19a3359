//! Checks every kernel of `tests/ir/race/*.inv` and `tests/ir/textures/race/*.inv`: what is reported is what the lines expect, and
//! nothing else. A race has two places; the expectation may stand at either. A line `; verdict: every
//! schedule` or `; verdict: schedules tried` says what the reports must say of their reach (R3).

use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::{CheckOptions, Options, Schedules, check};
use invar_ir::text::case::{ExpectedDiagnostic, cases, expectations};
use invar_ir::text::parse;
use invar_ir::{Diagnostic, Severity, verify};

fn files() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let of = |folder| invar_ir::text::case::files(&tests.join(folder)).expect("file tests");
    [of("race"), of("textures/race")].concat()
}

fn fits(expected: &ExpectedDiagnostic, found: &Diagnostic) -> bool {
    expected.rule == found.rule
        && expected.severity == found.severity
        && found.message.contains(&expected.message)
        && found
            .labels
            .iter()
            .any(|l| l.span.start.line == expected.line)
}

/// Everything that is found in a file, with one simdgroup size.
fn findings(name: &str, source: &str, simdgroup_size: u32) -> Result<Vec<Diagnostic>, String> {
    let module = match parse(name, source).and_then(verify) {
        Ok(module) => module,
        Err(errors) => return Ok(errors.0),
    };
    let cases = cases(source).map_err(|e| e.to_string())?;
    if cases.is_empty() {
        return Err("it has no `; run:` directive".to_string());
    }
    let mut found = Vec::new();
    for case in &cases {
        let kernel = module.kernel(&case.kernel.name);
        let size = kernel
            .and_then(|k| k.simdgroup_size)
            .unwrap_or(simdgroup_size);
        let options = Options {
            simdgroup_size: Some(size),
            step_limit: 10_000_000,
            ..Options::default()
        };
        let mut files = |name: &str, _: &_| Err(format!("no file `{name}`"));
        let bound = bind(&module, case, &options, &mut files).map_err(|e| e.to_string())?;
        let check_options = CheckOptions {
            run: bound.options,
            seeds: None,
            ..CheckOptions::default()
        };
        let report = check(
            &module,
            &bound.kernel,
            &bound.dispatch,
            &bound.args,
            &check_options,
        )
        .map_err(|e| e.to_string())?;
        let reach = match report.schedules {
            Schedules::All => "every schedule",
            Schedules::Tried { .. } => "schedules tried",
        };
        let mut expected = source.lines().filter_map(|l| l.strip_prefix("; verdict: "));
        if let Some(wrong) = expected.find(|expected| *expected != reach) {
            return Err(format!(
                "the verdict is not for {wrong}: {}",
                report.reach()
            ));
        }
        let outputs = report.outputs.iter().cloned();
        let after: Vec<_> = (bound.args.iter().zip(outputs))
            .map(|(arg, bytes)| arg.holding(bytes))
            .collect();
        let wrong = mismatches(&module, case, &after, &after, &mut files);
        found.extend(wrong.into_iter().chain(report.diagnostics));
    }
    Ok(found)
}

fn check_file(path: &Path, simdgroup_size: u32) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let expected = expectations(&source).map_err(|e| e.to_string())?;
    let found = findings(name, &source, simdgroup_size)?;
    let mut wrong = Vec::new();
    for e in &expected {
        if !found.iter().any(|d| fits(e, d)) {
            wrong.push(format!("line {}: {} was not found", e.line, e.rule));
        }
    }
    for d in &found {
        if d.severity == Severity::Error && !expected.iter().any(|e| fits(e, d)) {
            wrong.push(format!("not expected: {d}"));
        }
    }
    // The corpus says in its names which kernels are wrong.
    if name.contains("-racy") == expected.is_empty() {
        wrong.push("its name and its expectations disagree".to_string());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n    "))
    }
}

#[test]
fn the_corpus_gives_exactly_the_races_expected() {
    let files = files();
    assert!(files.len() >= 155, "only {} files", files.len());
    let mut failures = Vec::new();
    for path in &files {
        for simdgroup_size in [4, 32] {
            if let Err(error) = check_file(path, simdgroup_size) {
                failures.push(format!(
                    "{} with simdgroups of {simdgroup_size}:\n    {error}",
                    path.display()
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}
