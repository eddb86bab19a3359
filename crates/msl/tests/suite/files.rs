//! Checks every source of `tests/metal`: its `// run:` lines give what they say, with several orders of
//! threads, and the checkers find what its lines expect and nothing else.

use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, CheckOptions, Options, check};
use invar_ir::text::case::{ExpectedDiagnostic, cases, expectations};
use invar_ir::{Diagnostic, Diagnostics, ElementType, Rule, Severity, verify};
use invar_msl::{Library, directives, find_clang};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/metal");
    let entries = std::fs::read_dir(folder).expect("the folder of file tests");
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "metal"));
    files.sort();
    files
}

fn fits(expected: &ExpectedDiagnostic, found: &Diagnostic) -> bool {
    let at = |line| move |l: &invar_ir::Label| l.span.start.line == line;
    expected.rule == found.rule
        && expected.severity == found.severity
        && found.message.contains(&expected.message)
        && found.labels.iter().any(at(expected.line))
}

fn findings(name: &str, text: &str) -> Result<Vec<Diagnostic>, String> {
    let constants = text
        .lines()
        .filter_map(|l| l.trim().strip_prefix("// const: "));
    let constants = constants.filter_map(|l| l.split_once('='));
    let library = Library {
        name: name.to_string(),
        text: text.to_string(),
        constants: constants
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect(),
        ..Library::default()
    };
    let module = match library.kernels(None).map(|all| all.module).and_then(verify) {
        Ok(module) => module,
        Err(Diagnostics(errors)) => return Ok(errors),
    };
    let cases = cases(&directives(text)).map_err(|e| e.to_string())?;
    if cases.is_empty() {
        return Err("it has no `// run:` line".to_string());
    }
    let mut found = Vec::new();
    for case in &cases {
        for (seed, size) in [(0, 32), (1, 4), (2, 32)] {
            let options = Options {
                seed,
                simdgroup_size: Some(case.simdgroup.unwrap_or(size)),
                step_limit: 10_000_000,
                ..Options::default()
            };
            let mut files = |name: &str, _: &ElementType| Err(format!("no file `{name}`"));
            let bound = bind(&module, case, &options, &mut files).map_err(|e| e.to_string())?;
            let options = CheckOptions {
                run: bound.options,
                seeds: Some(1),
                allow: vec![Rule::UninitialisedRead],
                ..CheckOptions::default()
            };
            let report = check(
                &module,
                &bound.kernel,
                &bound.dispatch,
                &bound.args,
                &options,
            )
            .map_err(|e| e.to_string())?;
            let outputs = report.outputs.iter().cloned();
            let after: Vec<_> = outputs.map(Arg::OwnedBuffer).collect();
            let wrong = mismatches(&module, case, &after, &after, &mut files);
            for finding in wrong.into_iter().chain(report.diagnostics) {
                if !found.contains(&finding) {
                    found.push(finding);
                }
            }
        }
    }
    Ok(found)
}

fn check_file(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let expected = expectations(&directives(&text)).map_err(|e| e.to_string())?;
    let name = path.file_name().and_then(|n| n.to_str());
    let found = findings(name.unwrap_or_default(), &text)?;
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
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n    "))
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn every_source_gives_what_its_lines_say() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let files = files();
    assert!(files.len() >= 12, "only {} files", files.len());
    let mut failures = Vec::new();
    for path in &files {
        if let Err(error) = check_file(path) {
            failures.push(format!("{}:\n    {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
