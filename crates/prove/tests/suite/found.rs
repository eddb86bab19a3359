//! Mutants of the file tests that a launch breaks and that the kernel they were made of withstands: the prover
//! finds one that breaks them, or says conditions that exclude it.

use invar_conformance::{Case, mutant};
use invar_interp::{CheckOptions, check};
use invar_ir::{Kernel, Rule, Verified, text, verify};
use invar_prove::{Options, Verdict, prove};

use crate::solver::Random;
use crate::soundness::{from_environment, is_within, texts, varied};

/// Else an access out of bounds is what is wanted.
fn forbid_beyond(kernel: &mut Kernel) {
    kernel.allow_out_of_bounds_loads = false;
    kernel.allow_out_of_bounds_stores = false;
}

/// Whether the checkers report a launch; `None` if they cannot run it.
fn is_broken(module: &Verified, case: &Case) -> Option<bool> {
    let mut options = CheckOptions::default();
    options.run.constants = case.constants.clone();
    options.run.step_limit = 200_000;
    let args = case.args().ok()?;
    let found = check(module, &case.kernel().name, &case.dispatch, &args, &options).ok()?;
    let counts = |rule| {
        [
            Rule::DataRace,
            Rule::ExecutionOnlyBarrier,
            Rule::EqualStores,
            Rule::OutOfBounds,
            Rule::MisalignedAccess,
        ]
        .contains(&rule)
    };
    Some(found.diagnostics.iter().any(|d| counts(d.rule)))
}

/// A mutant, and the kernel that it was made of.
fn pair(seed: u64, texts: &[String]) -> Option<(Case, Verified, Verified)> {
    let of = &texts[seed as usize % texts.len()];
    let mut case = mutant(seed, std::slice::from_ref(of))?;
    forbid_beyond(&mut case.module.kernels[0]);
    let mut original = verify(text::parse("original", of).ok()?)
        .ok()?
        .into_module();
    original.kernels.retain(|k| k.name == case.kernel().name);
    forbid_beyond(original.kernels.first_mut()?);
    let mutant = verify(case.module.clone()).ok()?;
    Some((case, mutant, verify(original).ok()?))
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn mutants_that_a_launch_breaks_are_found() {
    let count = from_environment("INVAR_PROVE_MUTANTS", 60);
    let first = from_environment("INVAR_PROVE_FIRST", 0);
    let says = std::env::var_os("INVAR_PROVE_MISSED").is_some();
    let texts = texts();
    let options = Options {
        problems: 600,
        ..Options::default()
    };
    let (mut sought, mut written, mut excluded, mut missed) = (0u32, 0u32, 0u32, 0u32);
    for seed in first..first + count {
        let Some((case, module, original)) = pair(seed, &texts) else {
            continue;
        };
        let mut random = Random(seed);
        let mut launches = vec![case.clone()];
        launches.extend((0..6).map(|_| varied(&case, &mut random)));
        launches.retain(|launch| {
            is_broken(&module, launch) == Some(true) && is_broken(&original, launch) == Some(false)
        });
        if launches.is_empty() {
            continue;
        }
        let runs = text::cases(&case.directive()).expect("it was written");
        let report = prove(&module, &case.kernel().name, &runs, options).expect("it is there");
        match (report.verdict, &report.counterexample) {
            (Verdict::Broken, Some(found)) if found.is_written => written += 1,
            (Verdict::Broken, _) => sought += 1,
            (Verdict::Proved, _) => {
                let within = launches.iter().find(|l| is_within(&module, l, &report));
                assert!(
                    within.is_none(),
                    "seed {seed}: proved beside a finding\n{case}"
                );
                excluded += 1;
            }
            (Verdict::Open, _) => {
                missed += 1;
                if says {
                    let words = report.in_words(&module, false);
                    println!("seed {seed} is missed\n{}\n{words}", launches[0]);
                }
            }
        }
    }
    let found = sought + written + excluded;
    let all = found + missed;
    println!(
        "{all} of {count} mutants are broken by a launch that their kernel withstands; of {found} it is known \
         ({:.1} %): {sought} by another launch, {written} by the one that is written, {excluded} by conditions \
         that exclude it",
        100.0 * f64::from(found) / f64::from(all.max(1))
    );
    assert!(u64::from(all) * 20 > count, "only {all} of {count} break");
    assert!(found * 100 >= all * 95, "only {found} of {all} are found");
}
