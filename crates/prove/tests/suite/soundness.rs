//! Mutants of the file tests: a mutant that is proved runs without a finding, on its own launch and on
//! others within the conditions.

use std::path::Path;

use invar_conformance::{Case, Data, mutant};
use invar_interp::{CheckOptions, Grid, check};
use invar_ir::text::case::files;
use invar_ir::{Rule, Verified, text, verify};
use invar_prove::launch::written;
use invar_prove::{Options, Report, Verdict, prove};

use crate::solver::Random;

fn texts() -> Vec<String> {
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
fn varied(case: &Case, random: &mut Random) -> Case {
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
            Data::List(_) | Data::Length(_) => {}
        }
    }
    case
}

/// Whether a case is a launch within the conditions of a report.
fn is_within(module: &Verified, case: &Case, report: &Report) -> bool {
    let Ok(cases) = text::cases(&case.directive()) else {
        return false;
    };
    let launch = written(module, &module.kernels[0], &cases[0]);
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

fn assert_clean(module: &Verified, case: &Case, report: &Report) -> bool {
    let Ok(args) = case.args() else {
        return false;
    };
    let mut options = CheckOptions::default();
    options.run.constants = case.constants.clone();
    options.run.step_limit = 2_000_000;
    options.run.threadgroup_memory_bytes = 16 << 20;
    let found = check(module, &case.kernel().name, &case.dispatch, &args, &options);
    let Ok(found) = found else {
        return false;
    };
    let counts = |rule| [Rule::DataRace, Rule::EqualStores, Rule::OutOfBounds].contains(&rule);
    let first = found.diagnostics.iter().find(|d| counts(d.rule));
    assert!(
        first.is_none(),
        "proved for launches with {:?}, beside {}\n{case}",
        report.texts,
        first.map_or(String::new(), ToString::to_string)
    );
    true
}

#[test]
fn no_proof_of_a_mutant_is_beside_a_finding() {
    let count: u64 =
        std::env::var("INVAR_PROVE_MUTANTS").map_or(150, |n| n.parse().expect("a number"));
    let texts = texts();
    let options = Options {
        infer: true,
        refute: false,
        problems: 150,
    };
    let (mut proved, mut launches) = (0, 0);
    for seed in 0..count {
        let Some(case) = mutant(seed, &texts) else {
            continue;
        };
        let Ok(module) = verify(case.module.clone()) else {
            continue;
        };
        let runs = text::cases(&case.directive()).expect("it was written");
        let name = &case.kernel().name;
        let report = prove(&module, name, &runs, options).expect("it is there");
        if report.verdict != Verdict::Proved {
            continue;
        }
        proved += 1;
        let mut random = Random(seed);
        let mut all = vec![case.clone()];
        all.extend((0..12).map(|_| varied(&case, &mut random)));
        for case in all {
            if is_within(&module, &case, &report) && assert_clean(&module, &case, &report) {
                launches += 1;
            }
        }
    }
    assert!(proved * 20 > count, "only {proved} of {count} were proved");
    assert!(
        launches > proved,
        "only {launches} launches of {proved} were run"
    );
}
