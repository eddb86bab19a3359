//! File tests of the verifier: `tests/ir/verify/*.inv`.
//!
//! A file's errors are exactly those that it expects (`invar_ir::text::expectations`), whether the
//! parser finds them or the verifier. What has no expectation is a control. `BLESS=1` rewrites the
//! expectations to what is reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use invar_ir::text::case::{ExpectedDiagnostic, differences};
use invar_ir::{Diagnostic, Rule, Stage, text, verify};

/// What no text can break; `verify_modules.rs` tests it on modules made wrong.
const NOT_IN_TEXT: [Rule; 1] = [Rule::MalformedModule];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str) -> Vec<PathBuf> {
    text::case::files(&repository().join(folder)).expect("the folder of file tests")
}

/// Everything that is wrong with a text.
fn errors(name: &str, text: &str) -> Vec<Diagnostic> {
    match text::parse(name, text).and_then(verify) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0,
    }
}

fn expectations(path: &Path, text: &str) -> Vec<ExpectedDiagnostic> {
    text::expectations(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How what is reported differs from what is expected.
fn check(name: &str, found: &[Diagnostic], expected: &[ExpectedDiagnostic]) -> Vec<String> {
    let wrong = differences(expected, found);
    wrong.iter().map(|what| format!("{name}: {what}")).collect()
}

const MARK: &str = "; error[";

fn bless(path: &Path, text: &str, errors: &[Diagnostic]) {
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with(MARK) {
            continue;
        }
        out += line.split(MARK).next().unwrap_or_default().trim_end();
        let here = errors
            .iter()
            .filter(|e| e.span().start.line as usize == i + 1);
        for (n, error) in here.enumerate() {
            // One stands on its line, further ones on lines of their own below it.
            out += if n == 0 { " " } else { "\n" };
            out += &format!("{MARK}{}]: {}", error.rule, error.message);
        }
        out.push('\n');
    }
    fs::write(path, out).unwrap();
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn files_have_exactly_the_errors_they_expect() {
    let mut wrong = Vec::new();
    for path in files("tests/ir/verify") {
        let text = fs::read_to_string(&path).unwrap();
        let name = file_name(&path);
        let found = errors(&name, &text);
        if std::env::var_os("BLESS").is_some() {
            bless(&path, &text, &found);
        } else {
            wrong.extend(check(&name, &found, &expectations(&path, &text)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_rule_of_the_verifier_has_a_file_test() {
    let expected: BTreeSet<Rule> = files("tests/ir/verify")
        .iter()
        .flat_map(|path| expectations(path, &fs::read_to_string(path).unwrap()))
        .map(|e| e.rule)
        .collect();
    let missing: Vec<&Rule> = Rule::ALL
        .iter()
        .filter(|rule| rule.stage() == Stage::Verify && !NOT_IN_TEXT.contains(rule))
        .filter(|rule| !expected.contains(rule))
        .collect();
    assert!(missing.is_empty(), "rules without a file test: {missing:?}");
}

#[test]
fn every_error_says_where_and_what_to_do() {
    let mut count = 0;
    for folder in ["tests/ir/verify", "tests/ir/text/errors"] {
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            for error in errors("test.inv", &text) {
                count += 1;
                let report = format!("{}: {error}", path.display());
                assert!(error.span().source.is_some(), "{report}");
                let first = error.message.chars().next().unwrap();
                assert!(!first.is_uppercase(), "{report}");
                assert!(!error.message.ends_with('.'), "{report}");
                // What was expected instead is what to write.
                let told = error.rule == Rule::Syntax && error.message.starts_with("expected ");
                assert!(error.help.is_some() || told, "{report}");
            }
        }
    }
    assert!(count > 150, "only {count} errors");
}

/// The examples of an explanation: the blocks after `Wrong:` and after `Right:`.
fn example<'a>(explanation: &'a str, which: &str) -> Option<&'a str> {
    let (_, after) = explanation.split_once(&format!("{which}:\n ```inv\n"))?;
    after.split_once("\n ```").map(|(code, _)| code)
}

#[test]
fn the_examples_of_every_explanation_are_wrong_and_right() {
    for rule in Rule::ALL.iter().copied() {
        if rule.stage() != Stage::Verify || NOT_IN_TEXT.contains(&rule) {
            continue;
        }
        let explanation = rule.explanation();
        let wrong =
            example(explanation, "Wrong").unwrap_or_else(|| panic!("{rule} has no wrong example"));
        let right =
            example(explanation, "Right").unwrap_or_else(|| panic!("{rule} has no right example"));
        let rules: Vec<Rule> = errors("wrong.inv", wrong).iter().map(|e| e.rule).collect();
        assert_eq!(rules, [rule], "{rule}: the wrong example");
        assert_eq!(errors("right.inv", right), [], "{rule}: the right example");
    }
}

#[test]
fn kernels_of_other_tests_are_valid_but_for_what_they_expect() {
    let mut wrong = Vec::new();
    for folder in ["tests/ir/race", "tests/ir/run", "benches/kernels"] {
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            let name = file_name(&path);
            // What a run would report is for the tests of the checkers.
            let mut expected = expectations(&path, &text);
            expected.retain(|e| e.rule.stage() == Stage::Verify);
            wrong.extend(check(&name, &errors(&name, &text), &expected));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
