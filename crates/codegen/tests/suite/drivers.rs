//! The table of GPUs' drivers in `docs/drivers.md` is that of the code, and the tests that it names are there.

use std::fs;
use std::path::Path;

use invar_codegen::drivers::GPUS;

#[test]
fn the_table_of_the_documents_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/drivers.md")).expect("docs/drivers.md");
    let (_, table) = document.split_once("\n## GPUs\n").expect("a table of GPUs");
    let (table, _) = table.split_once("\n## ").expect("a section behind it");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<&str> = rows.skip(1).collect();
    let code: Vec<String> = GPUS.iter().map(|one| one.row()).collect();
    assert_eq!(rows, code);
}

#[test]
fn the_tests_that_it_names_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for one in GPUS {
        let (file, function) = one.test.split_once(": ").unwrap_or((one.test, ""));
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(text.contains(function), "{file} has no {function}");
    }
}

#[test]
fn the_code_that_it_names_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let features = crates.join("codegen/src/wgsl/interface.rs");
    let features = fs::read_to_string(features).expect("the features of a target");
    for one in GPUS {
        let (named, places) = one.remedy.split_once('(').unwrap_or((one.remedy, ""));
        for word in one
            .remedy
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| word.ends_with(".rs"))
        {
            let folder = if word.starts_with("wgsl/") {
                "codegen/src"
            } else {
                ""
            };
            let file = crates.join(folder).join(word);
            assert!(file.is_file(), "{word}: there is no such file");
        }
        assert!(!places.is_empty(), "{}: it names no file", one.remedy);
        if let Some((feature, _)) = named.split_once("`:") {
            for feature in feature.split('`').skip(1).step_by(2) {
                assert!(
                    features.contains(&format!("pub {feature}:")),
                    "there is no feature {feature}"
                );
            }
        }
    }
}
