//! The MSL writer: what it writes is what golden files say (`BLESS=1` rewrites them), clang takes it, and it
//! computes what the reference machine does.

use std::path::{Path, PathBuf};

use invar_codegen::msl::{AsyncCopies, MslOptions, write};
use invar_conformance::metal::{self, Batch, Outcome, options as shim_options};
use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::text::case::{Tolerance, cases};
use invar_ir::text::{
    data::{Wanted, compare},
    parse,
};
use invar_ir::{Const, ConstantKey, ParamKind, Verified, verify};

mod operations;
mod places;
mod print;
mod random;
mod textures;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
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

/// The kernels of a module as text, with what is refused.
fn written(module: &Verified, options: &MslOptions) -> String {
    let mut text = String::new();
    for kernel in &module.kernels {
        match write(module, &kernel.name, options) {
            Ok(source) => {
                let again = write(module, &kernel.name, options).unwrap();
                assert_eq!(source, again, "`{}` differs each time", kernel.name);
                text.push_str(&source.text);
            }
            Err(errors) => {
                for error in errors.0 {
                    text.push_str(&format!("// {error}\n"));
                }
            }
        }
    }
    text
}

#[test]
fn golden_files() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let whole = MslOptions {
        whole_threadgroups: true,
        ..MslOptions::default()
    };
    let full = MslOptions {
        full_threadgroups: true,
        ..MslOptions::default()
    };
    let by_engine = MslOptions {
        async_copies: AsyncCopies::Apple9Extern,
        ..MslOptions::default()
    };
    // How a golden file's name ends, and the files that have one; without any, all of them.
    let goldens: [(&str, MslOptions, &[&str]); 4] = [
        ("msl", MslOptions::default(), &[]),
        ("whole.msl", whole, &["saxpy", "transpose", "simdgroup-sum"]),
        ("full.msl", full, &["transpose"]),
        ("apple9.msl", by_engine, &["async-copy"]),
    ];
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files("emit") {
        let (module, _) = load(&path);
        let name = path.file_stem().and_then(|n| n.to_str()).unwrap();
        for (extension, options, names) in &goldens {
            if !names.is_empty() && !names.contains(&name) {
                continue;
            }
            let text = written(&module, options);
            let golden = path.with_extension(extension);
            count += 1;
            if bless {
                std::fs::write(&golden, &text).unwrap();
            } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
                wrong.push(golden.display().to_string());
            }
        }
    }
    assert!(count >= 26, "only {count} golden files");
    assert!(
        wrong.is_empty(),
        "these differ (BLESS=1 rewrites them): {}",
        wrong.join(", ")
    );
}

/// Runs a batch in a folder of this name.
fn run_batch(batch: &Batch, name: &str, optimise: bool) -> Vec<Outcome> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("msl-{name}"));
    batch
        .run(&folder, optimise)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn no_files(name: &str, _: &Wanted) -> Result<Vec<u8>, String> {
    Err(format!("no file `{name}`"))
}

/// Names and texts of files.
fn texts(paths: &[PathBuf]) -> Vec<(String, String)> {
    let text = |path: &PathBuf| {
        let name = path.file_stem().unwrap().display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(text).collect()
}

/// What came of running directives as MSL.
#[derive(Default)]
struct Report {
    runs: usize,
    skipped: Vec<String>,
    failures: Vec<String>,
}

/// Runs the directives of files through the reference machine and through MSL on the CPU. Where a directive expects
/// nothing, every buffer must hold what the reference machine leaves.
fn run_directives(
    name: &str,
    texts: &[(String, String)],
    options: &MslOptions,
    optimise: bool,
) -> Report {
    let mut batch = Batch::default();
    let mut report = Report::default();
    let mut runs = Vec::new();
    for (file, source) in texts {
        let module = parse(file, source)
            .and_then(verify)
            .unwrap_or_else(|e| panic!("{file}: {e}\n{source}"));
        for (number, case) in cases(source).unwrap().into_iter().enumerate() {
            let name = format!("{file} {number}");
            let on_reference = Options {
                simdgroup_size: Some(32),
                ..Options::default()
            };
            let bound = bind(&module, &case, &on_reference, &mut no_files).unwrap();
            let size = bound.options.simdgroup_size.unwrap_or(32);
            if size != 32 {
                report.skipped.push(format!("{name}: simdgroups of {size}"));
                continue;
            }
            let fixed = module.clone().specialise(&bound.options.constants).unwrap();
            let msl = metal::fitted(options, &bound.dispatch, &bound.args);
            let entry = match batch.add(&fixed, &bound.kernel, &msl) {
                Ok(entry) => entry,
                Err(errors) => {
                    let rule = errors.0[0].rule.name();
                    assert!(rule.starts_with("unsupported-"), "{name}: {errors}");
                    report.skipped.push(format!("{name}: {}", errors.0[0]));
                    continue;
                }
            };
            let mut reference = bind(&module, &case, &on_reference, &mut no_files).unwrap();
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
                    Err(reason) => report.skipped.push(format!("{name}: {reason}")),
                }
            }
        }
    }
    report.runs = runs.len();
    for ((name, module, case, reference), outcome) in
        runs.iter().zip(run_batch(&batch, name, optimise))
    {
        let after = match outcome {
            Err(error) => {
                report.failures.push(format!("{name}: {error}"));
                continue;
            }
            Ok(after) => after,
        };
        let wrong = mismatches(module, case, &after, reference, &mut no_files);
        let wrong = wrong.iter().map(|d| format!("{name}: {d}"));
        report.failures.extend(wrong);
        if case.expects.is_empty() {
            let kernel = module.kernel(&case.kernel.name).unwrap();
            for ((param, now), then) in kernel.params.iter().zip(&after).zip(reference) {
                if let ParamKind::Buffer { element, .. } = &param.kind
                    && let Err(difference) = compare(
                        Tolerance::Exact,
                        then.bytes(),
                        now.bytes(),
                        element,
                        &module.structs,
                    )
                {
                    report
                        .failures
                        .push(format!("{name}: `{}`: {difference}", param.name));
                }
            }
        }
    }
    report
}

/// Shows what was done, and fails if anything did.
#[expect(
    clippy::print_stdout,
    reason = "a test says what it did not do, and why"
)]
fn judge(what: &str, report: &Report, least: usize) {
    println!(
        "{what}: {} dispatches as MSL, {} skipped",
        report.runs,
        report.skipped.len()
    );
    for skip in &report.skipped {
        println!("  {skip}");
    }
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    assert!(report.runs >= least, "only {} dispatches", report.runs);
}

/// Whether MSL can run here; says so if not.
#[expect(
    clippy::print_stdout,
    reason = "a test says what it did not do, and why"
)]
fn can_run(what: &str) -> bool {
    let missing = metal::missing();
    if let Some(reason) = &missing {
        println!("skipped: {what} as MSL: {reason}");
    }
    missing.is_none()
}

#[test]
fn the_run_suite_gives_what_the_reference_machine_gives() {
    if can_run("all of the run suite") {
        let report = run_directives("run", &texts(&files("run")), &shim_options(), true);
        judge("the run suite", &report, 100);
    }
}

/// As where a host launches whole threadgroups only: threads outside the grid go along and change nothing.
#[test]
fn x2_threads_outside_the_grid_change_nothing() {
    if can_run("whole threadgroups") {
        let options = MslOptions {
            whole_threadgroups: true,
            ..shim_options()
        };
        let report = run_directives("whole", &texts(&files("run")), &options, true);
        judge("whole threadgroups", &report, 100);
    }
}

/// The kernels without races among those that show races, and the examples.
#[test]
fn kernels_without_races_give_what_the_reference_machine_gives() {
    if !can_run("kernels without races") {
        return;
    }
    let mut paths = files("race");
    paths.retain(|path| path.to_string_lossy().ends_with("-fixed.inv"));
    paths.extend(files("../../examples"));
    // The first has a race; what the others leave depends on the order of their atomics (R4).
    let left_out = [
        "smooth-broken.inv",
        "mixed-atomic-and-plain-fixed.inv",
        "plain-store-and-atomic-load-fixed.inv",
    ];
    paths.retain(|path| !left_out.iter().any(|name| path.ends_with(name)));
    judge(
        "kernels without races",
        &run_directives("race", &texts(&paths), &shim_options(), true),
        80,
    );
}

/// As on devices of Apple's family 9, whose copy engine the runtime of the shim stands in for.
#[test]
fn async_copies_by_the_copy_engine_give_the_same() {
    if !can_run("the copy engine") {
        return;
    }
    let options = MslOptions {
        async_copies: AsyncCopies::Apple9Extern,
        ..shim_options()
    };
    let mut paths = files("race");
    paths.retain(|path| path.to_string_lossy().ends_with("-fixed.inv"));
    paths.extend(files("run"));
    paths.retain(|path| {
        std::fs::read_to_string(path)
            .unwrap()
            .contains("async_copy")
    });
    judge(
        "the copy engine",
        &run_directives("engine", &texts(&paths), &options, true),
        12,
    );
}

/// Constants of bfloat that no literal says keep their bits in code that is not optimised, too.
#[test]
fn bits_of_bfloat_constants_are_kept() {
    if !can_run("constants of bfloat") {
        return;
    }
    let text = "constant @table: bf16x2[2] = [1.0, -2.73, 1.59, -inf]
kernel @bits(%out: device write u16) {
    %i = thread_position_in_grid x
    %pair = load @table[%i]
    %one = const u32 1
    %part = extract %pair, %one
    %bits = as_type u16 %part
    store %out[%i], %bits
}
; run: @bits(out = zeros(2)) grid(2) threadgroup(2) -> out == [49199, 65408]
";
    let texts = [("bits".to_string(), text.to_string())];
    for optimise in [false, true] {
        judge(
            "constants of bfloat",
            &run_directives("bits", &texts, &shim_options(), optimise),
            2,
        );
    }
}

/// Guards are all that stands between an index and its memory: without them the runtime of the shim sees a store
/// beside a buffer, so it would see a guard that is missing.
#[test]
fn a_store_beside_a_buffer_is_seen() {
    if !can_run("kernels without guards") {
        return;
    }
    let text = "kernel @beside(%x: device write u32) {
        %i = thread_position_in_grid x
        store %x[%i], %i
    }";
    let module = parse("beside.inv", text).and_then(verify).unwrap();
    let mut batch = Batch::default();
    for guards in [true, false] {
        let options = MslOptions {
            guards,
            ..shim_options()
        };
        let entry = batch.add(&module, "beside", &options).unwrap();
        let dispatch = Dispatch::linear(9, 32);
        batch
            .dispatch(entry, &dispatch, &[Arg::zeros(32)], 0)
            .unwrap();
    }
    let outcomes = run_batch(&batch, "beside", false);
    let held: Vec<u8> = (0..8u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(outcomes[0].as_ref().unwrap()[0].bytes(), held);
    assert!(
        outcomes[1]
            .as_ref()
            .unwrap_err()
            .contains("beside a buffer")
    );
}

/// Clang takes everything that the verifier passes, with either kind of async copies.
#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it did")]
fn clang_takes_every_kernel() {
    if !can_run("every kernel") {
        return;
    }
    let (mut taken, mut refused) = (0, 0);
    for (name, async_copies) in [
        ("expanded", AsyncCopies::Expanded),
        ("extern", AsyncCopies::Apple9Extern),
    ] {
        let mut batch = Batch::default();
        for folder in ["run", "race", "text", "verify", "emit", "../../examples"] {
            for path in files(folder) {
                let source = std::fs::read_to_string(&path).unwrap();
                // Some files show what the verifier refuses.
                let Ok(module) = parse("test.inv", &source).and_then(verify) else {
                    continue;
                };
                // Only async copies are written in two ways.
                if async_copies == AsyncCopies::Apple9Extern && !source.contains("async_copy") {
                    continue;
                }
                let constants: Vec<(ConstantKey, Const)> = module
                    .function_constants
                    .iter()
                    .map(|c| {
                        let zero = Const {
                            scalar: c.scalar,
                            bits: 0,
                        };
                        (ConstantKey::Id(c.id), c.default.unwrap_or(zero))
                    })
                    .collect();
                let module = module.specialise(&constants).unwrap();
                for kernel in &module.kernels {
                    let options = MslOptions {
                        async_copies,
                        ..shim_options()
                    };
                    match batch.add(&module, &kernel.name, &options) {
                        Ok(_) => taken += 1,
                        Err(errors) => {
                            let rule = errors.0[0].rule.name();
                            assert!(rule.starts_with("unsupported-"), "{errors}");
                            refused += 1;
                        }
                    }
                }
            }
        }
        run_batch(&batch, name, false);
    }
    println!("{taken} kernels taken by clang, {refused} refused by the writer");
    assert!(taken >= 180, "only {taken} kernels");
}
