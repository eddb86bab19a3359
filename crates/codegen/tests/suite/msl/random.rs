//! Random kernels as MSL on the CPU, against the reference machine. `INVAR_RANDOM=1000` tries that many.

use std::ops::Range;

use invar_codegen::msl::MslOptions;
use invar_conformance::{Options, generate};
use invar_ir::Scalar;

use super::{can_run, judge, run_directives, shim_options};

/// Kernels that go through one call of clang.
const TOGETHER: u64 = 30;

fn texts(seeds: Range<u64>) -> Vec<(String, String)> {
    let options = Options {
        scalars: Scalar::ALL
            .into_iter()
            .filter(|s| *s != Scalar::F64)
            .collect(),
        wide_atomics: false,
        ..Options::default()
    };
    let text = |seed| (format!("seed {seed}"), generate(seed, &options).to_string());
    seeds.map(text).collect()
}

#[test]
fn random_kernels_give_what_the_reference_machine_gives() {
    if !can_run("random kernels") {
        return;
    }
    let given = std::env::var("INVAR_RANDOM").ok();
    let count = given.map_or(60, |n| n.parse().expect("INVAR_RANDOM is a number"));
    let mut seed = 0;
    while seed < count {
        let end = count.min(seed + TOGETHER);
        let options = MslOptions {
            whole_threadgroups: seed / TOGETHER % 2 == 1,
            ..shim_options()
        };
        let report = run_directives("random", &texts(seed..end), &options, true);
        // Two orders of threads for each; matrices on partial simdgroups are refused.
        judge("random kernels", &report, (end - seed) as usize * 3 / 2);
        seed = end;
    }
}
