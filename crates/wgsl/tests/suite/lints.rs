//! Warnings of what browsers refuse: the shaders of `tests/wgsl/lints` have those that their lines say and no
//! others, and all are kernels nevertheless; so do the examples of the rules.

use std::path::{Path, PathBuf};

use invar_ir::text::case::expectations;
use invar_ir::{Diagnostic, Rule, Stage, verify};
use invar_wgsl::{Shader, directives};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/wgsl")
        .join(folder);
    let entries = std::fs::read_dir(folder).expect("the folder of file tests");
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "wgsl"));
    files.sort();
    files
}

fn lints(name: &str, text: &str) -> Vec<Diagnostic> {
    match Shader::parse(name, text) {
        Ok(shader) => shader.lints(),
        Err(errors) => panic!("{name}: {errors:?}"),
    }
}

#[test]
fn shaders_have_the_lints_that_their_lines_say() {
    let mut wrong = Vec::new();
    let files = files("lints");
    assert!(files.len() >= 5, "only {} files", files.len());
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.display().to_string();
        let module = invar_wgsl::read(&name, &text).and_then(verify);
        if let Err(errors) = module {
            wrong.push(format!("{name}: {errors:?}"));
        }
        let found = lints(&name, &text);
        let expected = expectations(&directives(&text)).expect("directives");
        for e in &expected {
            let fits = |d: &&Diagnostic| {
                let mut lines = d.labels.iter().map(|l| l.span.start.line);
                d.rule == e.rule && d.message.contains(&e.message) && lines.any(|l| l == e.line)
            };
            if !found.iter().any(|d| fits(&d)) {
                wrong.push(format!("{name}:{}: {} was not found", e.line, e.rule));
            }
        }
        for d in &found {
            let line = d.span().start.line;
            if !expected.iter().any(|e| e.rule == d.rule && e.line == line) {
                wrong.push(format!("{name}: not expected: {d}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_shaders_have_no_lints_but_for_one_that_is_about_aliases() {
    for path in files("") {
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.display().to_string();
        let module = invar_wgsl::read(&name, &text).and_then(verify);
        let Ok(shader) = Shader::parse(&name, &text) else {
            continue;
        };
        let mut found = shader.lints();
        // What the verifier refuses, a browser refuses as well.
        found.retain(|d| d.rule != Rule::WgslUniformity || module.is_ok());
        if !name.ends_with("two-pointers-to-one.wgsl") && !name.ends_with("uniform-in-parts.wgsl") {
            assert_eq!(found, [], "{name}");
        }
    }
}

/// The examples of an explanation: the blocks after `Wrong:` and after `Right:`.
fn example<'a>(explanation: &'a str, which: &str) -> Option<&'a str> {
    let (_, after) = explanation.split_once(&format!("{which}:\n ```wgsl\n"))?;
    after.split_once("\n ```").map(|(code, _)| code)
}

#[test]
fn the_examples_of_every_explanation_are_wrong_and_right() {
    let rules = Rule::ALL.iter().filter(|r| r.stage() == Stage::Lint);
    let rules: Vec<Rule> = rules.copied().collect();
    assert_eq!(rules.len(), 2);
    for rule in rules {
        let explanation = rule.explanation();
        let wrong =
            example(explanation, "Wrong").unwrap_or_else(|| panic!("{rule} has no wrong example"));
        let right =
            example(explanation, "Right").unwrap_or_else(|| panic!("{rule} has no right example"));
        let found: Vec<Rule> = lints("wrong.wgsl", wrong).iter().map(|d| d.rule).collect();
        assert_eq!(found, [rule], "{rule}: the wrong example");
        assert_eq!(lints("right.wgsl", right), [], "{rule}: the right example");
    }
}
