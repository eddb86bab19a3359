//! File tests in another language than Invar's, for the suites of all its front ends: the `// run:` lines of a
//! file give what they say, with several orders of threads, and the checkers find what its lines expect and
//! nothing else.

use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, CheckOptions, Options, check};
use invar_ir::text::case::{ExpectedDiagnostic, cases, expectations};
use invar_ir::{Diagnostic, Diagnostics, Module, Severity, verify};

fn fits(expected: &ExpectedDiagnostic, found: &Diagnostic) -> bool {
    let at = |line| move |l: &invar_ir::Label| l.span.start.line == line;
    expected.rule == found.rule
        && expected.severity == found.severity
        && found.message.contains(&expected.message)
        && found.labels.iter().any(at(expected.line))
}

/// What is wrong with kernels, or with what their `// run:` lines give.
pub fn findings(
    read: Result<Module, Diagnostics>,
    directives: &str,
) -> Result<Vec<Diagnostic>, String> {
    let module = match read.and_then(verify) {
        Ok(module) => module,
        Err(Diagnostics(errors)) => return Ok(errors),
    };
    let cases = cases(directives).map_err(|e| e.to_string())?;
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
            let mut files = |name: &str, _: &_| Err(format!("no file `{name}`"));
            let bound = bind(&module, case, &options, &mut files).map_err(|e| e.to_string())?;
            let options = CheckOptions {
                run: bound.options,
                seeds: Some(1),
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
            let after = bound.args.iter().zip(outputs);
            let after: Vec<Arg> = after.map(|(arg, bytes)| arg.holding(bytes)).collect();
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

/// Checks every file of a folder of `tests` whose names have an ending, of which there are some; `read` makes
/// kernels of a name and a text.
pub fn check_all(
    (folder, ending, least): (&str, &str, usize),
    read: &dyn Fn(&str, &str) -> Result<Module, Diagnostics>,
    directives: &dyn Fn(&str) -> String,
) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .join(folder);
    let entries = std::fs::read_dir(folder).expect("the folder of file tests");
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == ending));
    files.sort();
    assert!(files.len() >= least, "only {} files", files.len());
    let mut failures = Vec::new();
    for path in &files {
        let check = |text: String| {
            let name = path.file_name().and_then(|n| n.to_str());
            let lines = directives(&text);
            check_file(read(name.unwrap_or_default(), &text), &lines)
        };
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
        if let Err(error) = text.and_then(check) {
            failures.push(format!("{}:\n    {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check_file(read: Result<Module, Diagnostics>, directives: &str) -> Result<(), String> {
    let expected = expectations(directives).map_err(|e| e.to_string())?;
    let found = findings(read, directives)?;
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
