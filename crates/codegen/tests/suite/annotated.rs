//! File tests of analyses: each line that defines values says in a comment what is found of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use invar_ir::text::case::files;

/// The text with what is found of each line, by its number, at its end.
fn annotated(found: &BTreeMap<u32, String>, source: &str) -> String {
    let lines = (1..).zip(source.lines()).map(|(number, line)| {
        let code = match line.split_once(" ; ") {
            Some((code, _)) => code,
            None => line,
        };
        match found.get(&number) {
            Some(says) => format!("{code} ; {says}\n"),
            None => format!("{code}\n"),
        }
    });
    lines.collect()
}

/// Compares what each file of a folder of `tests/ir` says with what `find` finds of its name and text. `BLESS=1`
/// rewrites the comments.
pub fn check(folder: &str, least: usize, find: impl Fn(&str, &str) -> BTreeMap<u32, String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let paths = files(&root.join(folder)).expect("the folder of file tests");
    assert!(paths.len() >= least, "only {} files", paths.len());
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let source = fs::read_to_string(&path).expect("a text");
        let output = annotated(&find(&name, &source), &source);
        if bless {
            fs::write(&path, output).expect("the file can be written");
            continue;
        }
        for (number, (is, says)) in (1..).zip(output.lines().zip(source.lines())) {
            if is != says {
                wrong.push(format!("{name}:{number} says\n{says}\nand is\n{is}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
