//! The kernels of `tests/ir/conditions`: each says in the line above it what comes out, `; proved: ` and the conditions
//! that are found, `; broken: ` or `; open: ` and why. What is broken is so by a launch in which each buffer has elements.

use std::path::Path;

use invar_ir::text::case::files;
use invar_ir::{text, verify};
use invar_prove::{Options, Verdict, prove};

#[test]
fn each_kernel_has_the_conditions_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/conditions");
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files(&root).expect("its files") {
        let source = std::fs::read_to_string(&file).expect("a file");
        let module = text::parse(&file.display().to_string(), &source).expect("it parses");
        let module = verify(module).expect("it is valid");
        let lines: Vec<&str> = source.lines().collect();
        for kernel in &module.kernels {
            let above = lines[kernel.span.start.line as usize - 2];
            let (verdict, rest) = above.split_once(':').unwrap_or((above, ""));
            let report =
                prove(&module, &kernel.name, &[], Options::default()).expect("it is there");
            count += 1;
            let conditions = report.texts.join(" and ");
            let is_meant = match report.verdict {
                Verdict::Proved => verdict == "; proved" && rest.trim() == conditions,
                Verdict::Broken => {
                    let launch = &report.counterexample.as_ref().expect("a launch").launch;
                    let is_empty = |(_, data): &(String, String)| data.ends_with("(0)");
                    verdict == "; broken" && !launch.args.iter().any(is_empty)
                }
                Verdict::Open => verdict == "; open",
            };
            if !is_meant {
                let words = report.in_words(&module, false);
                wrong.push(format!("{above}\n{words}"));
            }
        }
    }
    assert!(count > 20, "only {count} kernels");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
