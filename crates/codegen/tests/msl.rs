//! The MSL writer: what it writes is what golden files say. `BLESS=1` rewrites golden files.

use std::path::{Path, PathBuf};

use invar_codegen::msl::{MslOptions, write};
use invar_ir::text::parse;
use invar_ir::{Verified, verify};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "inv"))
        .collect();
    files.sort();
    files
}

fn load(path: &Path) -> (Verified, String) {
    let source = std::fs::read_to_string(path).unwrap();
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let module = parse(name, &source)
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (module, source)
}

#[test]
fn golden_files() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files("emit") {
        let (module, _) = load(&path);
        let mut text = String::new();
        for kernel in &module.kernels {
            let options = MslOptions::default();
            match write(&module, &kernel.name, &options) {
                Ok(source) => {
                    let again = write(&module, &kernel.name, &options).unwrap();
                    assert_eq!(
                        source,
                        again,
                        "{} is written differently each time",
                        path.display()
                    );
                    text.push_str(&source.text);
                }
                Err(errors) => {
                    for error in errors.0 {
                        text.push_str(&format!("// {error}\n"));
                    }
                }
            }
        }
        let golden = path.with_extension("msl");
        count += 1;
        if bless {
            std::fs::write(&golden, &text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            wrong.push(golden.display().to_string());
        }
    }
    assert!(count >= 12, "only {count} golden files");
    assert!(
        wrong.is_empty(),
        "these differ (BLESS=1 rewrites them): {}",
        wrong.join(", ")
    );
}
