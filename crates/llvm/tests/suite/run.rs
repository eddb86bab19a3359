//! Every `; run:` directive of `tests/ir/run/*.inv`, compiled for each processor that this machine can
//! stand in for, with several shapes of chunks, and run in one thread.

use std::path::{Path, PathBuf};

use invar_conformance::Side;
use invar_interp::Options;
use invar_interp::case::{bind, mismatches};
use invar_ir::text::{case::cases, parse};
use invar_ir::verify;
use invar_llvm::{CompileOptions, KernelInfo, Object, Program, Target, Text, compile, emit};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
}

use crate::driver::run_native;

#[derive(Default)]
struct Counts {
    cases: usize,
    runs: u32,
    skipped: Vec<String>,
}

/// Whether each directive is tried in each way for each target: if `INVAR_EVERY_WAY` says so. Else in every other one,
/// so that each way is tried for some target.
fn every_way() -> bool {
    std::env::var_os("INVAR_EVERY_WAY").is_some()
}

/// The ways to compile that the directive of that number is tried with.
fn ways(target: Target, number: usize, group: [u32; 3]) -> Vec<CompileOptions> {
    let first = (number + usize::from(target == Target::X86V1)) % 2;
    let every = every_way();
    [
        (None, None, usize::MAX, false, u32::MAX),
        (None, Some([2, 1]), 0, true, u32::MAX),
        (Some(group), None, 0, false, u32::MAX),
        (Some(group), Some([2, 2]), usize::MAX, true, u32::MAX),
        // As if it were too long, and so were what is compiled apart.
        (Some(group), None, usize::MAX, false, 0),
        (Some(group), Some([2, 1]), 0, false, 0),
    ]
    .into_iter()
    .enumerate()
    .filter(|(at, _)| every || at % 2 == first)
    .map(|(_, way)| way)
    .map(
        |(threadgroup_size, interleave, least_apart, red_zones, most_improved)| CompileOptions {
            target,
            threadgroup_size,
            interleave,
            least_apart,
            red_zones,
            most_improved,
            ..CompileOptions::default()
        },
    )
    .collect()
}

fn run_file(path: &Path, target: Target, counts: &mut Counts) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let module = parse(name, &source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    for case in &cases(&source).map_err(|e| e.to_string())? {
        let bound = || {
            let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
            bind(&module, case, &Options::default(), &mut no_files).map_err(|e| e.to_string())
        };
        let mut reference = bound()?;
        if let Some(size) = reference.options.simdgroup_size
            && size != invar_llvm::SIMDGROUP_SIZE
        {
            let skip = format!("{name}: it is about simdgroups of {size}");
            counts.skipped.push(skip);
            continue;
        }
        let special = module
            .clone()
            .specialise(&reference.options.constants)
            .map_err(|e| e.to_string())?;
        invar_interp::run(
            &module,
            &reference.kernel,
            &reference.dispatch,
            &mut reference.args,
            &reference.options,
            &mut [],
        )
        .map_err(|e| e.to_string())?;
        counts.cases += 1;
        for options in ways(target, counts.cases, reference.dispatch.threadgroup) {
            let object = match compile(&special, &reference.kernel, &options) {
                Ok(object) => object,
                // The device has simdgroups of one size, and refuses nothing else of these files.
                Err(error) if error.0[0].message.contains("requires simdgroups of") => {
                    let skip = format!("{name}: {}", error.0[0].message);
                    counts.skipped.push(skip);
                    break;
                }
                Err(error) => return Err(format!("{}: {error}", target.name())),
            };
            let kept = KernelInfo::from_bytes(&object.info.to_bytes());
            assert_eq!(kept.as_ref(), Some(&object.info));
            let object = Object {
                info: kept.expect("it was written"),
                ..object
            };
            let program = Program::load(&object).map_err(|e| e.to_string())?;
            let how = format!(
                "{}, threadgroup {:?}, chunks {:?}, apart from {}",
                target.name(),
                options.threadgroup_size,
                options.interleave,
                options.least_apart
            );
            let named = format!("{name}, @{}: {how}", reference.kernel);
            for side in Side::ALL {
                let mut now = bound()?;
                let (kernel, dispatch, at) = (&now.kernel, &now.dispatch, (&*named, side));
                run_native(&special, kernel, &program, dispatch, &mut now.args, at)
                    .map_err(|e| format!("{how}: {e}"))?;
                let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
                let wrong = mismatches(&module, case, &now.args, &reference.args, &mut no_files);
                if let Some(first) = wrong.first() {
                    return Err(format!("{how}: {first}"));
                }
            }
            counts.runs += 1;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_directive(target: Target) {
    if !target.runs_here() {
        println!(
            "skipped: this machine cannot run code for {}",
            target.name()
        );
        return;
    }
    let only = std::env::var("INVAR_TEST_FILE").ok();
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for path in &files("run") {
        let wanted = |o: &String| path.to_string_lossy().contains(o.as_str());
        if !only.as_ref().is_none_or(wanted) {
            continue;
        }
        let run = || run_file(path, target, &mut counts);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err("it panicked".to_string()));
        if let Err(error) = result {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    println!("{}: {} runs", target.name(), counts.runs);
    println!("skipped {}:", counts.skipped.len());
    counts.skipped.iter().for_each(|s| println!("  {s}"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    if only.is_none() {
        let skipped = counts.skipped.len() as u32;
        let least = if every_way() { 2500 } else { 1250 };
        assert!(counts.runs >= least, "only {} runs", counts.runs);
        assert!(skipped <= 40, "{skipped} skipped");
    }
}

#[test]
fn directives_hold_natively() {
    every_directive(Target::Native);
}

#[test]
fn directives_hold_on_any_x86_64() {
    every_directive(Target::X86V1);
}

#[test]
#[cfg_attr(
    target_arch = "x86_64",
    expect(clippy::print_stdout, reason = "says what is left out")
)]
fn directives_hold_with_avx2() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && !is_x86_feature_detected!("avx512f") {
        println!("skipped: what is compiled for this processor has AVX2, and no more");
        return;
    }
    every_directive(Target::X86V3);
}

/// Of `tests/ir/copies`, which would go on for ever if rows were counted one by one.
#[test]
fn rows_of_copies_that_hold_nothing_take_no_time() {
    for path in files("copies") {
        let mut counts = Counts::default();
        run_file(&path, Target::Native, &mut counts).unwrap_or_else(|e| panic!("{e}"));
        assert!(
            counts.runs > 0 && counts.skipped.is_empty(),
            "{:?}",
            counts.skipped
        );
    }
}

/// Of `tests/ir/called`, whose kernels have so many functions of floats that each is made once.
#[test]
fn functions_that_are_called_give_what_they_give_written_out() {
    let of_floats: &[(&str, &[&str], &[&str])] =
        &[("many", &["sin.f32"], &[]), ("few", &[], &["sin.f32"])];
    let of_vectors: &[(&str, &[&str], &[&str])] = &[
        (
            "vectors",
            &[
                "normalize.f32x3",
                "distance.f32x3.f32x3",
                "determinant.f32x3x3",
                "fmod.f32.f32",
            ],
            // It computes little.
            &["dot.f32x4.f32x4"],
        ),
        ("vectors_f16", &["normalize.f16x3"], &[]),
    ];
    for path in files("called") {
        let source = std::fs::read_to_string(&path).expect("a file");
        let module = parse("called.inv", &source)
            .and_then(verify)
            .expect("kernels");
        let expected = match path.to_string_lossy().contains("vectors") {
            true => of_vectors,
            false => of_floats,
        };
        for (kernel, called, written_out) in expected {
            let options = CompileOptions::default();
            let text = emit(&module, kernel, &options, Text::Llvm).expect("a text");
            let calls = |function: &&str| text.contains(&format!("@defined.{function}."));
            assert!(called.iter().all(calls), "{kernel}");
            assert!(!written_out.iter().any(calls), "{kernel}");
        }
        let mut counts = Counts::default();
        for target in [Target::Native, Target::X86V1, Target::X86V3] {
            if target.runs_here() {
                run_file(&path, target, &mut counts).unwrap_or_else(|e| panic!("{e}"));
            }
        }
        assert!(
            counts.runs > 0 && counts.skipped.is_empty(),
            "{:?}",
            counts.skipped
        );
    }
}
