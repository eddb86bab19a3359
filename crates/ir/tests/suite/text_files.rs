//! Every `.inv` file under `tests/ir`: parsing and printing are inverse, the binary form keeps all,
//! and the errors of a text that cannot be read are those that it expects.

use std::fs;
use std::path::{Path, PathBuf};

use invar_ir::{Module, binary, text};

fn files() -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the folder of the file tests") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|e| e == "inv") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    collect(&root, &mut found);
    found.sort();
    found
}

/// What of a file does not hold.
fn check(path: &Path) -> Vec<String> {
    let name = path.display().to_string();
    let source = fs::read_to_string(path).expect("a text");
    let mut problems = Vec::new();
    if let Err(errors) = text::cases(&source) {
        problems.push(errors.to_string());
    }
    if let Err(errors) = text::programs(&source) {
        problems.push(errors.to_string());
    }
    let expected = text::expectations(&source).unwrap_or_else(|errors| {
        problems.push(errors.to_string());
        Vec::new()
    });
    match text::parse(&name, &source) {
        Ok(module) => problems.extend(check_module(&name, &source, &module)),
        Err(errors) => problems.extend(text::case::differences(&expected, &errors.0)),
    }
    problems
}

fn check_module(name: &str, source: &str, module: &Module) -> Vec<String> {
    let mut problems = Vec::new();
    let printed = module.to_string();
    match text::parse(name, &printed) {
        Ok(again) => {
            if !again.same_up_to_spans(module) {
                problems.push(format!(
                    "parsing what was printed gives another module:\n{printed}"
                ));
            }
            if again.to_string() != printed {
                problems.push(format!("printing again gives another text:\n{again}"));
            }
        }
        Err(errors) => problems.push(format!("what was printed does not parse:\n{errors}")),
    }
    // A file of this folder is written as printed, but for comments and what `free-form` is about.
    let canonical = name.contains("tests/ir/text/") && !name.ends_with("free-form.inv");
    let code: Vec<&str> = source.lines().filter(|l| !l.starts_with(';')).collect();
    if canonical && code.join("\n").trim() != printed.trim() {
        problems.push(format!("it is not written as it prints:\n{printed}"));
    }
    let bytes = binary::encode(module);
    if binary::decode(&bytes).as_ref() != Ok(module) {
        problems.push("the binary form gives another module".to_string());
    }
    problems
}

#[test]
fn every_file_prints_parses_and_encodes_to_itself() {
    let files = files();
    assert!(files.len() >= 470, "only {} files found", files.len());
    let mut failed = 0;
    let mut report = String::new();
    for path in &files {
        let problems = check(path);
        failed += usize::from(!problems.is_empty());
        for problem in problems {
            report.push_str(&format!("{}: {problem}\n", path.display()));
        }
    }
    assert_eq!(
        failed,
        0,
        "{failed} of {} files fail:\n{report}",
        files.len()
    );
}

#[test]
fn every_example_of_the_documentation_parses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/text-format.md");
    let page = fs::read_to_string(path).expect("the page");
    let examples: Vec<&str> = page
        .split("```inv\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(examples.len() >= 7, "{} examples", examples.len());
    for example in examples {
        let module = text::parse("text-format.md", example)
            .unwrap_or_else(|errors| panic!("{errors}\n{example}"));
        assert_eq!(check_module("text-format.md", example, &module), [""; 0]);
        assert_eq!(
            text::cases(example).map(|cases| cases.len()),
            Ok(example.matches("; run:").count())
        );
    }
}
