//! The table of LLVM and processors in `docs/drivers.md` is that of the code, and the tests that it names are there.

use std::fs;
use std::path::Path;

use invar_llvm::workarounds::PROCESSORS;

#[test]
fn the_table_of_the_documents_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/drivers.md")).expect("docs/drivers.md");
    let table = document.split_once("\n## LLVM and processors\n");
    let (_, table) = table.expect("a table of processors");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<&str> = rows.skip(1).collect();
    let code: Vec<String> = PROCESSORS.iter().map(|one| one.row()).collect();
    assert_eq!(rows, code);
}

#[test]
fn the_tests_that_it_names_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for one in PROCESSORS {
        let (file, function) = one.test.split_once(": ").unwrap_or((one.test, ""));
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(text.contains(function), "{file} has no {function}");
    }
}
