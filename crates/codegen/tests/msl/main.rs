//! The MSL writer: what it writes is what golden files say (`BLESS=1` rewrites them), clang takes it, and it
//! computes what the reference machine does.

use std::path::{Path, PathBuf};

use invar_codegen::msl::{MslOptions, write};
use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, Options, run};
use invar_ir::text::{case::cases, parse};
use invar_ir::{ElementType, Verified, verify};

mod device;
mod operations;

use device::Batch;

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

/// The options for a device of the shim: clang keeps every float rule.
fn shim_options(threadgroup_size: Option<[u32; 3]>) -> MslOptions {
    MslOptions {
        threadgroup_size,
        ieee_float: true,
        ..MslOptions::default()
    }
}

fn no_files(name: &str, _: &ElementType) -> Result<Vec<u8>, String> {
    Err(format!("no file `{name}`"))
}

/// Every `; run:` directive, through the reference machine and through MSL on the CPU.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "a test says what it did not do, and why"
)]
fn the_run_suite_gives_what_the_reference_machine_gives() {
    if let Some(reason) = device::missing() {
        println!("skipped: all of the run suite as MSL: {reason}");
        return;
    }
    let mut batch = Batch::default();
    let mut skipped = Vec::new();
    let mut runs = Vec::new();
    for path in files("run") {
        let (module, source) = load(&path);
        let file = path.file_stem().unwrap().display().to_string();
        for (number, case) in cases(&source).unwrap().into_iter().enumerate() {
            let name = format!("{file} {number}");
            let options = Options {
                simdgroup_size: Some(32),
                ..Options::default()
            };
            let bound = bind(&module, &case, &options, &mut no_files).unwrap();
            let size = bound.options.simdgroup_size.unwrap_or(32);
            if size != 32 {
                skipped.push(format!("{name}: simdgroups of {size}"));
                continue;
            }
            let fixed = module.clone().specialise(&bound.options.constants).unwrap();
            let msl = shim_options(Some(bound.dispatch.threadgroup));
            let entry = match batch.add(&fixed, &bound.kernel, &msl) {
                Ok(entry) => entry,
                Err(errors) => {
                    let rule = errors.0[0].rule.name();
                    assert!(rule.starts_with("unsupported-"), "{name}: {errors}");
                    skipped.push(format!("{name}: {}", errors.0[0]));
                    continue;
                }
            };
            let mut reference = bind(&module, &case, &options, &mut no_files).unwrap();
            run(
                &module,
                &reference.kernel,
                &reference.dispatch,
                &mut reference.args,
                &reference.options,
                &mut [],
            )
            .unwrap();
            for seed in 0..2 {
                match batch.dispatch(entry, &bound.dispatch, &bound.args, seed) {
                    Ok(()) => {
                        let natural: Vec<Arg> = reference
                            .args
                            .iter()
                            .map(|a| Arg::OwnedBuffer(a.bytes().to_vec()))
                            .collect();
                        runs.push((name.clone(), module.clone(), case.clone(), natural));
                    }
                    Err(reason) => skipped.push(format!("{name}: {reason}")),
                }
            }
        }
    }
    let mut failures = Vec::new();
    for ((name, module, case, reference), outcome) in runs.iter().zip(batch.run("run", true)) {
        match outcome {
            Err(error) => failures.push(format!("{name}: {error}")),
            Ok(after) => {
                let wrong = mismatches(module, case, &after, reference, &mut no_files);
                failures.extend(wrong.iter().map(|d| format!("{name}: {d}")));
            }
        }
    }
    println!(
        "{} dispatches as MSL, {} skipped",
        runs.len(),
        skipped.len()
    );
    for skip in &skipped {
        println!("  {skip}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(runs.len() >= 100, "only {} dispatches", runs.len());
}
