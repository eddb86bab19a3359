//! File tests of the verifier: `tests/ir/verify/*.inv`.
//!
//! A line that breaks a rule ends with `; error[RULE]: part of the message`, more than one if it breaks
//! more. An error that has no place is expected by such a comment on a line of its own. A file's
//! errors are exactly those expected, wherever they are found: by the parser, or by the verifier. What
//! has no expectation is a control. `BLESS=1` rewrites the expectations to what is reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use invar_ir::{Diagnostic, Rule, Stage, text, verify};

/// What no text can break; `verify_modules.rs` tests it on modules made wrong.
const NOT_IN_TEXT: [Rule; 1] = [Rule::MalformedModule];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = repository().join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "inv"))
        .collect();
    files.sort();
    files
}

/// Everything that is wrong with a text.
fn errors(name: &str, text: &str) -> Vec<Diagnostic> {
    match text::parse(name, text).and_then(verify) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0,
    }
}

/// A line number (0 for none), a rule's name and a part of the message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    line: u32,
    rule: String,
    message: String,
}

const MARK: &str = "; error[";

fn expectations(text: &str) -> Vec<Expected> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let alone = line.trim_start().starts_with(MARK);
        for part in line.split(MARK).skip(1) {
            let (rule, message) = part
                .split_once("]:")
                .unwrap_or_else(|| panic!("line {}: expected `; error[rule]: message`", i + 1));
            all.push(Expected {
                line: if alone { 0 } else { i as u32 + 1 },
                rule: rule.to_string(),
                message: message.trim().to_string(),
            });
        }
    }
    all
}

fn line(error: &Diagnostic) -> u32 {
    error.span().start.line
}

fn bless(path: &Path, text: &str, errors: &[Diagnostic]) {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(MARK))
        .map(|line| {
            line.split(MARK)
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_string()
        })
        .collect();
    let dropped = text
        .lines()
        .take_while(|line| line.trim_start().starts_with(MARK))
        .count();
    for error in errors {
        let comment = format!("{MARK}{}]: {}", error.rule, error.message);
        match line(error) as usize {
            0 => lines.push(comment),
            n => lines[n - 1 - dropped] += &format!(" {comment}"),
        }
    }
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// How what was found differs from what was expected.
fn differences(name: &str, found: &[Diagnostic], mut expected: Vec<Expected>) -> Vec<String> {
    let mut wrong = Vec::new();
    for error in found {
        let fits = |e: &Expected| {
            e.line == line(error)
                && e.rule == error.rule.name()
                && error.message.contains(&e.message)
        };
        match expected.iter().position(fits) {
            Some(at) => drop(expected.remove(at)),
            None => wrong.push(format!("{name}: not expected: {error}")),
        }
    }
    wrong.extend(
        expected
            .iter()
            .map(|e| format!("{name}: not reported: {e:?}")),
    );
    wrong
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
            wrong.extend(differences(&name, &found, expectations(&text)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_rule_of_the_verifier_has_a_file_test() {
    let expected: BTreeSet<String> = files("tests/ir/verify")
        .iter()
        .flat_map(|path| expectations(&fs::read_to_string(path).unwrap()))
        .map(|e| e.rule)
        .collect();
    let missing: Vec<&str> = Rule::ALL
        .iter()
        .filter(|rule| rule.stage() == Stage::Verify && !NOT_IN_TEXT.contains(rule))
        .map(|rule| rule.name())
        .filter(|name| !expected.contains(*name))
        .collect();
    assert!(missing.is_empty(), "rules without a file test: {missing:?}");
}

#[test]
fn expectations_name_rules_that_exist_and_say_something() {
    for path in files("tests/ir/verify") {
        for e in expectations(&fs::read_to_string(&path).unwrap()) {
            assert!(
                Rule::from_name(&e.rule).is_some(),
                "{}: {e:?}",
                path.display()
            );
            assert!(!e.message.is_empty(), "{}: {e:?}", path.display());
        }
    }
}

#[test]
fn every_error_says_where_and_what_to_do() {
    for path in files("tests/ir/verify") {
        let text = fs::read_to_string(&path).unwrap();
        for error in errors("test.inv", &text) {
            if error.rule.stage() == Stage::Verify && error.rule != Rule::NoKernel {
                assert_ne!(line(&error), 0, "{}: {error}", path.display());
            }
            let first = error.message.chars().next().unwrap();
            assert!(!first.is_uppercase(), "{}: {error}", path.display());
            assert!(!error.message.ends_with('.'), "{}: {error}", path.display());
        }
    }
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
fn kernels_that_race_or_measure_are_valid_but_for_what_they_expect() {
    let mut wrong = Vec::new();
    for folder in ["tests/ir/race", "benches/kernels"] {
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            let name = file_name(&path);
            // What a run would report is for the tests of the checkers.
            let mut expected = expectations(&text);
            expected.retain(|e| {
                Rule::from_name(&e.rule).is_some_and(|rule| rule.stage() == Stage::Verify)
            });
            wrong.extend(differences(&name, &errors(&name, &text), expected));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
