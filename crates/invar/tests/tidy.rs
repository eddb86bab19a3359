//! What holds for the repository as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder that the repository could hold: no build outputs, nothing hidden.
fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

fn all_files() -> Vec<PathBuf> {
    let mut out = Vec::new();
    files(&root(), &mut out);
    out.sort();
    out
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// Crates in the order of docs/architecture.md: each may depend only on earlier ones.
const ORDER: [&str; 13] = [
    "invar-layout",
    "invar-ir",
    "invar-interp",
    "invar-wgsl",
    "invar-codegen",
    "invar-conformance",
    "invar-prove",
    "invar-llvm",
    "invar-runtime",
    "invar-macros",
    "invar",
    "invar-cli",
    "invar-py",
    "invar-bench",
];

#[test]
fn crates_depend_only_downward() {
    let place: BTreeMap<&str, usize> = ORDER.iter().enumerate().map(|(i, n)| (*n, i)).collect();
    let mut seen = 0;
    for file in all_files() {
        if file.file_name().is_none_or(|n| n != "Cargo.toml")
            || file.starts_with(root().join("fuzz"))
        {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a manifest");
        let Some(name) = text.lines().find_map(|l| l.strip_prefix("name = \"")) else {
            continue;
        };
        let name = name.trim_end_matches('"');
        let here = place
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no place in the order of crates"));
        seen += 1;
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines() {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if let Some(there) = place.get(dependency) {
                assert!(
                    there < here,
                    "{name} depends on {dependency}, which is not below it"
                );
            }
        }
    }
    assert!(seen >= 4, "only {seen} manifests were found");
}

#[test]
fn every_rule_of_the_memory_model_has_a_test_named_after_it() {
    let model = fs::read_to_string(root().join("docs/memory-model.md")).expect("the memory model");
    let mut rules = BTreeSet::new();
    for part in model.split("**").skip(1).step_by(2) {
        let id = part.split([' ', '.']).next().unwrap_or_default();
        let mut chars = id.chars();
        if chars.next().is_some_and(|c| c.is_ascii_uppercase())
            && id.len() > 1
            && chars.all(|c| c.is_ascii_digit())
        {
            rules.insert(id.to_string());
        }
    }
    assert!(rules.len() >= 50, "only {} rules were found", rules.len());
    let mut tested = BTreeSet::new();
    for file in all_files() {
        if has_extension(&file, "inv") {
            let name = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            tested.extend(name.split('-').next().map(str::to_string));
        } else if has_extension(&file, "rs") {
            let text = fs::read_to_string(&file).unwrap_or_default();
            for function in text.split("fn ").skip(1) {
                let id = function.split('_').next().unwrap_or_default();
                tested.insert(id.to_uppercase());
            }
        }
    }
    let missing: Vec<_> = rules.difference(&tested).collect();
    assert!(missing.is_empty(), "rules without a test: {missing:?}");
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = all_files()
        .iter()
        .filter(|f| has_extension(f, "rs") || has_extension(f, "py"))
        .filter_map(|f| {
            let lines = fs::read_to_string(f).unwrap_or_default().lines().count();
            (lines > 1500 && f.file_stem().is_none_or(|n| n != "table"))
                .then(|| format!("{}: {lines} lines", f.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
