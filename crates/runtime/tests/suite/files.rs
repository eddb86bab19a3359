//! Every `; run:` and `; program:` line of `tests/ir/run`, and of `tests/ir/race`, on every device but the checked one, which
//! the reference machine's own tests run. Buffers lie between guard pages.

use std::path::{Path, PathBuf};

use invar_conformance::{Running, Side, owned, run_guarded};
use invar_interp::case::{bind, mismatches};
use invar_interp::passes::BoundProgram;
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::text::{cases, parse, programs};
use invar_ir::{Diagnostic, Diagnostics, Rule, Span, verify};
use invar_runtime::{CompileOptions, Device, Error, Program, Queue};

use crate::common::hosts;

fn files(folder: &str) -> Vec<PathBuf> {
    let ir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    invar_ir::text::case::files(&ir.join(folder)).expect("the folder of file tests")
}

#[derive(Default)]
struct Counts {
    runs: usize,
    skips: Vec<String>,
    failures: Vec<String>,
}

fn queue(device: &Device) -> Queue {
    let limit = std::time::Duration::from_secs(5);
    device.queue().with_time_limit(Some(limit))
}

/// Runs a kernel on buffers in guarded memory, on both sides; the arguments are what the last run left.
fn guarded(
    queue: &Queue,
    program: &Program,
    dispatch: Dispatch,
    args: &mut [Arg<'static>],
    name: &str,
) -> Result<(), Error> {
    let failed = |message: String| -> Error {
        let error = Diagnostic::error(Rule::Expectation, Span::NONE, message);
        Diagnostics(vec![error]).into()
    };
    let given = owned(args);
    for side in Side::ALL {
        let _running = Running::named(&format!("{name}, guarded at its {side:?}"));
        for (arg, given) in args.iter_mut().zip(owned(&given)) {
            *arg = given;
        }
        run_guarded(program.kernel(), args, side, failed, |args| {
            queue.run_host(program, dispatch, args)?.wait()
        })?;
    }
    Ok(())
}

fn run_file(device: &Device, prove: bool, path: &Path, counts: &mut Counts) {
    let source = std::fs::read_to_string(path).expect("text");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = parse(&name, &source)
        .and_then(verify)
        .expect("a valid file");
    let able = device.capabilities();
    let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
    for (number, case) in cases(&source).expect("valid cases").iter().enumerate() {
        let here = format!("{name}, run {}", number + 1);
        if let Some(size) = case.simdgroup
            && size != able.simdgroup_size
        {
            counts.skips.push(format!("{here}: simdgroups of {size}"));
            continue;
        }
        let options = Options {
            simdgroup_size: Some(case.simdgroup.unwrap_or(able.simdgroup_size)),
            ..Options::default()
        };
        let kernel = module.kernel(&case.kernel.name);
        if let Some(size) = kernel.and_then(|k| k.simdgroup_size)
            && !able.simdgroup_sizes.contains(&size)
        {
            counts
                .skips
                .push(format!("{here}: the kernel requires simdgroups of {size}"));
            continue;
        }
        let bound = || {
            bind(&module, case, &options, &mut |n: &str, _: &_| {
                Err(format!("no file `{n}`"))
            })
        };
        let (mut now, mut reference) = (bound().expect("bound"), bound().expect("bound"));
        run(
            &module,
            &reference.kernel,
            &reference.dispatch,
            &mut reference.args,
            &reference.options,
            &mut [],
        )
        .expect("the reference machine runs it");
        let options = CompileOptions {
            constants: now.options.constants.clone(),
            prove,
            ..CompileOptions::default()
        };
        let here_on = format!("{here} on {}", able.name);
        let ran = device
            .compile_with(&module, &now.kernel, &options)
            .and_then(|program| {
                // It may take a while to find out that nothing can be proved.
                let limit = std::time::Duration::from_secs(if prove { 120 } else { 5 });
                guarded(
                    &device.queue().with_time_limit(Some(limit)),
                    &program,
                    now.dispatch,
                    &mut now.args,
                    &here_on,
                )
            });
        // X3: a thread that waits for another by other means than a barrier may wait forever.
        if let Err(error) = &ran
            && error.rule() == Some(Rule::DeadlineExceeded)
            && name.starts_with("X3-")
        {
            counts.skips.push(format!("{here}: {error}"));
            continue;
        }
        if let Err(error) = ran {
            counts.failures.push(format!("{here}: {error}"));
            continue;
        }
        counts.runs += 1;
        let wrong = mismatches(&module, case, &now.args, &reference.args, &mut no_files);
        for error in wrong {
            counts.failures.push(format!("{here}: {error}"));
        }
    }
}

/// Runs the programs of a file, each kernel between guard pages.
fn run_programs(device: &Device, path: &Path, counts: &mut Counts) {
    let source = std::fs::read_to_string(path).expect("text");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = parse(&name, &source)
        .and_then(verify)
        .expect("a valid file");
    let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
    for program in programs(&source).expect("valid programs") {
        let here = format!("{name}, a program");
        let options = Options {
            simdgroup_size: Some(device.capabilities().simdgroup_size),
            ..Options::default()
        };
        let bound = BoundProgram::new(&module, &program, &options, &mut no_files);
        let mut now = bound.expect("bound");
        let mut reference = now.copy();
        reference
            .run(|b| {
                let (args, options) = (&mut b.args, &b.options);
                run(&module, &b.kernel, &b.dispatch, args, options, &mut []).map(drop)
            })
            .expect("the reference machine runs it");
        let ran = now.run(|b| {
            let options = CompileOptions {
                constants: b.options.constants.clone(),
                ..CompileOptions::default()
            };
            let compiled = device.compile_with(&module, &b.kernel, &options)?;
            guarded(&queue(device), &compiled, b.dispatch, &mut b.args, &here)
        });
        if let Err(error) = ran {
            counts.failures.push(format!("{here}: {error}"));
            continue;
        }
        counts.runs += 1;
        for error in now.mismatches(&module, &program, &reference, &mut no_files) {
            counts.failures.push(format!("{here}: {error}"));
        }
    }
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "a test says how much it ran and what it skipped"
)]
fn every_run_directive_holds_on_every_device() {
    for device in hosts() {
        if device.capabilities().name == "checked" {
            continue;
        }
        let mut counts = Counts::default();
        for path in files("run") {
            run_file(&device, false, &path, &mut counts);
            run_programs(&device, &path, &mut counts);
        }
        println!(
            "{device:?}: {} runs, {} skipped",
            counts.runs,
            counts.skips.len()
        );
        for skip in &counts.skips {
            println!("skipped {skip}");
        }
        assert!(counts.failures.is_empty(), "{}", counts.failures.join("\n"));
        assert!(counts.runs >= 450, "only {} runs", counts.runs);
        let skips = counts.skips.len();
        assert!(skips <= 60, "{skips} skipped");
    }
}

/// Where it is proved that all accesses are in bounds, no code looks whether they are: buffers lie between guard pages
/// here, too.
#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_run_directive_holds_where_it_is_proved() {
    let mut counts = Counts::default();
    let before = Device::dispatches_without_checks();
    // Of all it takes minutes.
    for path in files("run").into_iter().step_by(6) {
        run_file(&Device::cpu(), true, &path, &mut counts);
    }
    let without = Device::dispatches_without_checks() - before;
    println!(
        "{} runs, {without} dispatches without checks, of two a run",
        counts.runs
    );
    assert!(counts.failures.is_empty(), "{}", counts.failures.join("\n"));
    assert!(
        without >= 80,
        "only {without} dispatches ran without checks"
    );
}

/// R2: whatever races, nothing leaves a buffer.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "a test says how much it ran and what it skipped"
)]
fn r2_kernels_that_race_stay_inside_on_every_device() {
    for device in hosts() {
        let able = device.capabilities();
        if able.name == "checked" {
            continue;
        }
        let (mut runs, mut endless) = (0, Vec::new());
        for path in files("race") {
            let source = std::fs::read_to_string(&path).expect("text");
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Some are there to be refused.
            let Ok(module) = parse(&name, &source).and_then(verify) else {
                continue;
            };
            for case in cases(&source).expect("valid cases") {
                let options = Options::default();
                let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
                let mut now = bind(&module, &case, &options, &mut no_files).expect("bound");
                let kernel = module.kernel(&now.kernel).expect("it is there");
                let sizes = &able.simdgroup_sizes;
                if kernel
                    .simdgroup_size
                    .is_some_and(|size| !sizes.contains(&size))
                {
                    continue;
                }
                let options = CompileOptions {
                    constants: now.options.constants.clone(),
                    ..CompileOptions::default()
                };
                let program = device
                    .compile_with(&module, &now.kernel, &options)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                let limit = std::time::Duration::from_secs(1);
                let queue = device.queue().with_time_limit(Some(limit));
                match guarded(&queue, &program, now.dispatch, &mut now.args, &name) {
                    Ok(()) => runs += 1,
                    // X3: a wait for another thread may never end.
                    Err(e) if e.rule() == Some(Rule::DeadlineExceeded) => {
                        endless.push(name.to_string())
                    }
                    Err(e) => panic!("{name}: {e}"),
                }
            }
        }
        println!("{device:?}: {runs} runs, and some that never end: {endless:?}");
        assert!(runs >= 100, "only {runs} runs");
    }
}
