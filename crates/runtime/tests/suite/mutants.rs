//! Kernels of the file tests with something changed, in buffers between guard pages: whatever
//! they do, they stay inside, and leave what the reference machine does where that is promised.
//!
//! `INVAR_MUTANTS=FIRST..END` tries other seeds.
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use invar_conformance::{Running, Side, Trial, compare_mutant, mutant, owned, run_guarded};
use invar_interp::{Arg, Dispatch};
use invar_ir::{Diagnostic, Diagnostics, Rule, Span, Verified};
use invar_runtime::{CompileOptions, Device, Error, Queue};

fn failed(message: String) -> Error {
    let error = Diagnostic::error(Rule::Expectation, Span::NONE, message);
    Diagnostics(vec![error]).into()
}

fn run(
    queue: &Queue,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    seed: u64,
) -> Result<(), Error> {
    let options = CompileOptions {
        threadgroup_size: Some(dispatch.threadgroup),
        // Half of them without bounds checks, where it is proved that they need none.
        prove: seed % 2 == 1,
        ..CompileOptions::default()
    };
    let program = queue.device().compile_with(module, kernel, &options)?;
    let given = owned(args);
    for side in Side::ALL {
        for (arg, given) in args.iter_mut().zip(owned(&given)) {
            *arg = given;
        }
        let _running = Running::named(&format!("mutant {seed}, guarded at its {side:?}"));
        run_guarded(program.kernel(), args, side, failed, |args| {
            queue.run_host(&program, *dispatch, args)?.wait()
        })?;
    }
    Ok(())
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn b1_b2_mutants_of_the_file_tests_stay_inside() {
    let seeds = match std::env::var("INVAR_MUTANTS") {
        Ok(text) => {
            let number = |text: &str| text.parse::<u64>().expect("FIRST..END");
            let (first, end) = text.split_once("..").expect("FIRST..END");
            number(first)..number(end)
        }
        Err(_) => 0..150,
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let files = invar_ir::text::case::files(&folder).expect("the folder of file tests");
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("text"));
    let texts: Vec<String> = texts.collect();
    let queue = Device::cpu()
        .queue()
        // Of some kernels it takes ten seconds to prove that no access is out of bounds.
        .with_time_limit(Some(Duration::from_secs(60)));
    let (mut same, mut others) = (0, 0);
    for seed in seeds.clone() {
        let Some(case) = mutant(seed, &texts) else {
            others += 1;
            continue;
        };
        let mut target =
            |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Arg<'static>]| {
                run(&queue, module, kernel, dispatch, args, seed).map_err(Error::into_diagnostics)
            };
        match compare_mutant(&case, &mut target) {
            Trial::Same => same += 1,
            Trial::Refused(_) | Trial::Invalid(_) => others += 1,
            trial @ (Trial::Differs(_) | Trial::Failed(_)) => {
                panic!("mutant {seed}: {trial}\n{case}")
            }
        }
    }
    println!("{same} mutants stay inside, {others} are none");
    assert!(
        same * 4 > seeds.end - seeds.start,
        "only {same} of {seeds:?}"
    );
}
