//! Random kernels, and mutants of the file tests: a kernel that is proved runs without a finding, on its own
//! launch, on others within the conditions, and at the edge of the conditions.

use std::path::Path;

use invar_conformance::{Case, Data, generate, mutant};
use invar_interp::{CheckOptions, Grid, check};
use invar_ir::text::case::files;
use invar_ir::{Rule, Verified, text, verify};
use invar_prove::condition::{Condition, Number, Term};
use invar_prove::launch::{Launch, written};
use invar_prove::{Options, Report, Verdict, prove};

use crate::solver::Random;

pub fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    for folder in ["tests/ir/race", "tests/ir/run", "examples"] {
        for file in files(&root.join(folder)).expect("its files") {
            texts.push(std::fs::read_to_string(file).expect("a file"));
        }
    }
    texts
}

/// Another launch: a grid and lengths near those of the case.
pub fn varied(case: &Case, random: &mut Random) -> Case {
    let mut case = case.clone();
    let mut vary = |n: u64, most: u64| match random.below(4) {
        0 => n,
        1 => n.saturating_sub(1),
        2 => n + 1,
        _ => 1 + random.below(most),
    };
    case.dispatch.grid = match case.dispatch.grid {
        Grid::Threads([x, y, z]) => Grid::Threads([vary(u64::from(x), 96) as u32, y, z]),
        Grid::Threadgroups([x, y, z]) => Grid::Threadgroups([vary(u64::from(x), 4) as u32, y, z]),
    };
    for data in &mut case.data {
        match data {
            Data::Random { count, .. } | Data::Zeros(count) | Data::Iota(count) => {
                *count = vary(*count, 300);
            }
            Data::Scalar(components) => {
                if let [only] = &mut components[..]
                    && only.scalar.is_unsigned_integer()
                    && only.bits < 300
                {
                    only.bits = vary(only.bits, 64);
                }
            }
            Data::List(_) | Data::Length(_) | Data::Texture { .. } | Data::Sampler(_) => {}
        }
    }
    case
}

/// The numbers of a case.
fn numbers(module: &Verified, case: &Case) -> Option<Launch> {
    let cases = text::cases(&case.directive()).ok()?;
    Some(written(module, &module.kernels[0], &cases[0]))
}

/// Whether a case is a launch within the conditions of a report.
pub fn is_within(module: &Verified, case: &Case, report: &Report) -> bool {
    let Some(launch) = numbers(module, case) else {
        return false;
    };
    let flat = report.flat_dimensions.iter().all(|d| {
        let d = ["x", "y", "z"]
            .iter()
            .position(|name| name == d)
            .expect("a dimension");
        launch.grid[d] == Some(1)
    });
    flat && report
        .conditions
        .iter()
        .all(|c| c.holds(&launch) == Some(true))
}

/// The same launch with buffers just as long as the conditions ask, or longer by so many elements.
fn at_the_edge(module: &Verified, case: &Case, report: &Report, beyond: i128) -> Option<Case> {
    let launch = numbers(module, case)?;
    let mut edge = case.clone();
    let mut least: Vec<Option<i128>> = vec![None; case.data.len()];
    for condition in &report.conditions {
        let (buffer, needed) = match condition {
            Condition::AtMost(term, bound) => {
                let [Number::Length(buffer)] = bound.numbers[..] else {
                    continue;
                };
                let needed = (value(term, &launch)? + bound.factor - 1) / bound.factor;
                (buffer, needed)
            }
            Condition::More(_, _, Number::Length(buffer))
            | Condition::Sum(_, _, Number::Length(buffer)) => (*buffer, condition.needs(&launch)?),
            Condition::More(..)
            | Condition::Sum(..)
            | Condition::Below(..)
            | Condition::Multiple(..)
            | Condition::Together(..) => continue,
        };
        least[buffer] = Some(least[buffer].unwrap_or(0).max(needed));
    }
    for (data, least) in edge.data.iter_mut().zip(least) {
        let Some(least) = least.filter(|l| *l < 1 << 16) else {
            continue;
        };
        let elements = (least + beyond).max(0) as u64;
        match data {
            Data::Random { count, .. } | Data::Zeros(count) | Data::Iota(count) => {
                *count = elements;
            }
            Data::List(_)
            | Data::Scalar(_)
            | Data::Length(_)
            | Data::Texture { .. }
            | Data::Sampler(_) => {}
        }
    }
    (edge != *case).then_some(edge)
}

fn value(term: &Term, launch: &Launch) -> Option<i128> {
    let mut product = term.factor;
    for number in &term.numbers {
        product = product.checked_mul(number.of(launch)?)?;
    }
    Some(product)
}

/// Whether a finding of that rule is one that a proof excludes.
pub fn counts(rule: Rule) -> bool {
    [
        Rule::DataRace,
        Rule::ExecutionOnlyBarrier,
        Rule::EqualStores,
        Rule::OutOfBounds,
        Rule::MisalignedAccess,
    ]
    .contains(&rule)
}

/// Whether it could be run; a finding fails the test.
fn assert_clean(module: &Verified, case: &Case, report: &Report, seed: u64) -> bool {
    let Ok(args) = case.args() else {
        return false;
    };
    let mut options = CheckOptions::default();
    options.run.constants = case.constants.clone();
    options.run.step_limit = 200_000;
    options.run.threadgroup_memory_bytes = 16 << 20;
    let found = check(module, &case.kernel().name, &case.dispatch, &args, &options);
    let Ok(found) = found else {
        return false;
    };
    let first = found.diagnostics.iter().find(|d| counts(d.rule));
    assert!(
        first.is_none(),
        "seed {seed}: proved for launches with {:?}, beside {}\n{case}",
        report.texts,
        first.map_or(String::new(), ToString::to_string)
    );
    true
}

/// Whether a check finds the same if it does not watch what a report says is free of races, in a launch that
/// it is of.
fn is_same_unwatched(module: &Verified, case: &Case, report: &Report) -> bool {
    let covered = numbers(module, case).is_some_and(|launch| report.covers(&launch));
    let (true, Ok(args)) = (covered, case.args()) else {
        return false;
    };
    let mut options = CheckOptions::default();
    options.run.constants = case.constants.clone();
    options.run.step_limit = 200_000;
    options.run.threadgroup_memory_bytes = 16 << 20;
    let run =
        |options: &CheckOptions| check(module, &case.kernel().name, &case.dispatch, &args, options);
    let all = run(&options);
    options.race_free.clone_from(&report.race_free);
    let some = run(&options);
    match (all, some) {
        (Ok(all), Ok(some)) => {
            assert_eq!(all.diagnostics, some.diagnostics, "{case}");
            assert_eq!(all.reach(), some.reach(), "{case}");
            true
        }
        (all, some) => {
            assert_eq!(all.is_err(), some.is_err(), "{case}");
            false
        }
    }
}

/// The kernel of a seed: a random one, or a mutant.
fn case_of(seed: u64, texts: &[String]) -> Option<Case> {
    let mut case = if seed.is_multiple_of(4) {
        let options = invar_conformance::Options {
            instructions: 8 + (seed / 4 % 30) as usize,
            ..invar_conformance::Options::default()
        };
        generate(seed, &options)
    } else {
        mutant(seed, texts)?
    };
    // Else accesses out of bounds are what is wanted, and nothing is asked of them.
    if !seed.is_multiple_of(3) {
        let kernel = &mut case.module.kernels[0];
        kernel.allow_out_of_bounds_loads = false;
        kernel.allow_out_of_bounds_stores = false;
    }
    Some(case)
}

pub fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn no_proof_is_beside_a_finding() {
    let count = from_environment("INVAR_PROVE_KERNELS", 80);
    let launches_each = from_environment("INVAR_PROVE_LAUNCHES", 12);
    let first = from_environment("INVAR_PROVE_FIRST", 0);
    let texts = texts();
    let options = Options {
        infer: true,
        contents: true,
        refute: false,
        problems: 150,
        pivots: 20_000,
    };
    let (mut proved, mut launches, mut edges, mut unwatched) = (0, 0, 0, 0);
    for seed in first..first + count {
        let Some(case) = case_of(seed, &texts) else {
            continue;
        };
        let Ok(module) = verify(case.module.clone()) else {
            continue;
        };
        let runs = text::cases(&case.directive()).expect("it was written");
        let name = &case.kernel().name;
        let report = prove(&module, name, &runs, options).expect("it is there");
        if !report.race_free.is_empty() {
            unwatched += usize::from(is_same_unwatched(&module, &case, &report));
        }
        if report.verdict != Verdict::Proved {
            continue;
        }
        proved += 1;
        let mut random = Random(seed);
        let mut all = vec![case.clone()];
        all.extend((0..launches_each).map(|_| varied(&case, &mut random)));
        for case in all {
            for beyond in [0, 1] {
                if let Some(edge) = at_the_edge(&module, &case, &report, beyond)
                    && is_within(&module, &edge, &report)
                    && assert_clean(&module, &edge, &report, seed)
                {
                    edges += 1;
                }
            }
            if is_within(&module, &case, &report) && assert_clean(&module, &case, &report, seed) {
                launches += 1;
            }
        }
    }
    println!(
        "{count} kernels: {proved} proved, {launches} launches within the conditions and {edges} at their \
         edge, no finding; {unwatched} launches find the same if what is proved is not watched"
    );
    assert!(
        unwatched * 20 > count as usize,
        "only {unwatched} unwatched"
    );
    assert!(proved * 20 > count, "only {proved} of {count} were proved");
    assert!(
        launches > proved && edges > proved,
        "only {launches} launches and {edges} at edges of {proved} were run"
    );
}
