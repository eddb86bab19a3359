//! Random kernels, compiled in several ways, against the reference machine.
//!
//! `INVAR_RANDOM_COUNT` and `INVAR_RANDOM_START` say how many and from which seed on; see
//! `scripts/conformance.sh`. A kernel that fails is reduced and written to
//! `target/tmp/random-SEED.inv` (as it is with `INVAR_RANDOM_REDUCE=0`); the one that runs stands in `target/tmp/random-running.inv`, in case
//! it takes the process with it.

mod native;

use std::path::Path;

use invar_conformance::{Case, Failure, Options, Trial, compare_case, generate, reduce};
use invar_interp::{Arg, Dispatch};
use invar_ir::{Diagnostic, Diagnostics, Rule, Span, Verified};
use invar_llvm::{CompileOptions, Program, Target, compile};

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|e| panic!("{name}={text}: {e}"))
    })
}

/// Each kernel is compiled in one of these ways, in turn.
fn way(seed: u64, dispatch: &Dispatch) -> CompileOptions {
    CompileOptions {
        target: match seed % 3 {
            1 if Target::X86V1.runs_here() => Target::X86V1,
            2 if Target::X86V3.runs_here() => Target::X86V3,
            _ => Target::Native,
        },
        threadgroup_size: (seed % 2 == 0).then_some(dispatch.threadgroup),
        interleave: [None, Some([1, 1]), Some([2, 2]), Some([1, 2])][seed as usize / 6 % 4],
        ..CompileOptions::default()
    }
}

fn run(
    seed: u64,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
) -> Result<(), Diagnostics> {
    let lost = |message: String| {
        let error = Diagnostic::error(Rule::DeviceLost, Span::NONE, message);
        Diagnostics(vec![error])
    };
    let object = compile(module, kernel, &way(seed, dispatch))?;
    let program = Program::load(&object).map_err(|e| lost(e.to_string()))?;
    native::run_native(module, &program, kernel, dispatch, args).map_err(lost)
}

/// A failure reduced to a file, and what to say of it.
fn report(seed: u64, case: &Case, trial: Trial, folder: &Path) -> String {
    let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
        run(seed, module, kernel, dispatch, args)
    };
    let (reduced, reduced_trial) = match number("INVAR_RANDOM_REDUCE", 1) {
        0 => (case.clone(), trial.clone()),
        _ => reduce(case, &trial, &mut target),
    };
    let failure = Failure {
        seed,
        trial,
        reduced_trial,
        reduced,
    };
    let path = folder.join(format!("random-{seed}.inv"));
    match std::fs::write(&path, failure.to_string()) {
        Ok(()) => format!("{}:\n{failure}", path.display()),
        Err(error) => format!("{}: {error}:\n{failure}", path.display()),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn random_kernels_leave_what_the_reference_machine_leaves() {
    let (start, count) = (
        number("INVAR_RANDOM_START", 0),
        number("INVAR_RANDOM_COUNT", 300),
    );
    let most = number("INVAR_RANDOM_FAILURES", 3);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let running = folder.join("random-running.inv");
    let mut failures = Vec::new();
    let (mut same, mut refused) = (0u64, std::collections::BTreeMap::<String, u64>::new());
    // Panics of the compiler are caught and told with the kernel; a reduction meets many.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in start..start + count {
        let case = generate(seed, &Options::default());
        std::fs::write(&running, format!("; seed {seed}\n{case}")).expect("a file for the kernel");
        let trial = compare_case(&case, &mut |module, kernel, dispatch, args| {
            run(seed, module, kernel, dispatch, args)
        });
        match trial {
            Trial::Same => same += 1,
            Trial::Refused(why) => *refused.entry(why).or_default() += 1,
            Trial::Invalid(why) => {
                failures.push(format!("seed {seed} is not valid: {why}\n{case}"))
            }
            Trial::Differs(_) | Trial::Failed(_) => {
                failures.push(report(seed, &case, trial, folder));
            }
        }
        if failures.len() as u64 >= most {
            break;
        }
    }
    std::panic::set_hook(hook);
    println!("{same} kernels of {count} from seed {start} on leave the same bytes");
    for (why, count) in &refused {
        println!("{count} refused: {why}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(same >= count / 2, "only {same} of {count} kernels ran");
}
