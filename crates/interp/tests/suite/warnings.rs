//! Warnings on what is allowed and seldom meant: loads that are thrown away (B6), atomics whose order shows (R5).

use std::path::{Path, PathBuf};

use invar_interp::case::bind;
use invar_interp::{CheckOptions, Options, Verdict, check};
use invar_ir::text::case::cases;
use invar_ir::{Diagnostic, Rule, text, verify};

/// Everything that the runs of the corpus's files find whose names begin so.
fn found(beginning: &str, options: &CheckOptions) -> Vec<(String, Vec<Diagnostic>, Verdict)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/race");
    let files = text::case::files(&folder).expect("the folder of file tests");
    let name = |path: &PathBuf| {
        path.file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let files = files
        .iter()
        .filter(|path| name(path).starts_with(beginning));
    let mut all = Vec::new();
    for path in files {
        let source = std::fs::read_to_string(path).expect("a text");
        let module = text::parse("test.inv", &source).expect("it parses");
        let module = verify(module).expect("it verifies");
        for case in &cases(&source).expect("directives") {
            let mut none = |name: &str, _: &_| Err(format!("no file `{name}`"));
            let run = Options {
                step_limit: 10_000_000,
                ..Options::default()
            };
            let bound = bind(&module, case, &run, &mut none).expect("arguments");
            let options = CheckOptions {
                run: bound.options,
                ..options.clone()
            };
            let report = check(
                &module,
                &bound.kernel,
                &bound.dispatch,
                &bound.args,
                &options,
            );
            let report = report.expect("it runs");
            all.push((name(path), report.diagnostics, report.verdict));
        }
    }
    assert!(all.len() >= 2, "only {} runs", all.len());
    all
}

#[test]
fn r5_atomics_that_do_not_commute_are_warned_of_with_both_places() {
    for (name, found, verdict) in found("unordered-", &CheckOptions::default()) {
        let rule = Rule::UnorderedAtomics;
        let warnings: Vec<_> = found.iter().filter(|d| d.rule == rule).collect();
        assert_eq!(verdict, Verdict::Pass, "{name}: {found:?}");
        if name.ends_with("-fixed") {
            assert!(warnings.is_empty(), "{name}: {warnings:?}");
            continue;
        }
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert_eq!(warnings[0].labels.len(), 2, "{name}");
    }
}

#[test]
fn r5_a_warning_can_be_allowed_or_denied() {
    let allow = CheckOptions {
        allow: vec![Rule::UnorderedAtomics, Rule::ScheduleDependent],
        deny_warnings: true,
        ..CheckOptions::default()
    };
    for (name, found, verdict) in found("unordered-", &allow) {
        assert!(
            found.is_empty() && verdict == Verdict::Pass,
            "{name}: {found:?}"
        );
    }
    let deny = CheckOptions {
        deny_warnings: true,
        ..CheckOptions::default()
    };
    for (name, found, verdict) in found("unordered-stores", &deny) {
        let expected = if name.ends_with("-fixed") {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        assert_eq!(verdict, expected, "{name}: {found:?}");
    }
}

#[test]
fn b6_a_load_that_a_select_throws_away_is_a_warning() {
    for (name, found, verdict) in found("discarded-load", &CheckOptions::default()) {
        let rules: Vec<&str> = found.iter().map(|d| d.rule.name()).collect();
        let (expected, passes): (&[&str], _) = match &*name {
            "discarded-load-fixed" => (&[], Verdict::Pass),
            "discarded-load-racy" => (&["discarded-load"], Verdict::Pass),
            _ => (&["out-of-bounds"], Verdict::Fail),
        };
        assert_eq!((&rules[..], verdict), (expected, passes), "{name}");
    }
}
