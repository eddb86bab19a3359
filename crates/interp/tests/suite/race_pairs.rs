//! How many pairs of places race is the same for every schedule where the verdict is (R3), and as many are told.

use std::collections::BTreeSet;

use invar_interp::{Arg, CheckOptions, Dispatch, Options, Report, Schedules, check};
use invar_ir::text::parse;
use invar_ir::verify;

const SEEDS: u64 = 24;

fn checked(source: &str, threads: u32, seed: u64, seeds: Option<u32>) -> Report {
    let module = parse("pairs.inv", source).and_then(verify).unwrap();
    let options = CheckOptions {
        run: Options {
            seed,
            ..Options::default()
        },
        seeds,
        ..CheckOptions::default()
    };
    let args = [Arg::zeros(32), Arg::zeros(4 * threads as usize)];
    check(
        &module,
        "k",
        &Dispatch::linear(threads, threads),
        &args,
        &options,
    )
    .unwrap()
}

/// The lines of the pairs that a report tells of, and how many more it says that there are.
fn told(report: &Report) -> (Vec<Vec<u32>>, usize) {
    let (mut pairs, mut more) = (Vec::new(), 0);
    for d in &report.diagnostics {
        match d
            .message
            .split_once(" more pairs of places race; 8 are shown")
        {
            Some((before, _)) => {
                let number = before.rsplit(' ').next().expect("a number");
                more += number.parse::<usize>().expect("a number");
            }
            None => {
                let mut lines: Vec<u32> = d.labels.iter().map(|l| l.span.start.line).collect();
                lines.sort_unstable();
                pairs.push(lines);
            }
        }
    }
    (pairs, more)
}

/// The copy reads and writes: with a store it is one pair of lines, though it races with it in two ways.
const COPY: &str = "
kernel @k(%y: device read_write u32, %z: device write u32) threadgroup(8) {
    %i = thread_position_in_grid x
    %c0 = const u32 0
    %c1 = const u32 1
    %c3 = const u32 3
    %v = and %i, %c3
    copy %y[%c0], %y[%c0], %c1
    store %y[%v], %i
    store %y[%v], %c1
    %w = load %y[%v]
    store %z[%i], %w
}";

#[test]
fn r3_pairs_of_lines_that_race_in_two_ways_are_told_and_counted_once() {
    for seed in 0..SEEDS {
        for seeds in [Some(1), None] {
            let report = checked(COPY, 8, seed, seeds);
            let (pairs, more) = told(&report);
            // Of four lines, each with itself but the load, and the copy with itself in two ways.
            assert_eq!((pairs.len(), more), (8, 2), "seed {seed}: {pairs:?}");
            let different: BTreeSet<_> = pairs.iter().collect();
            assert_eq!(different.len(), 8, "seed {seed}: {pairs:?}");
        }
    }
}

/// Two more ways are no more pairs.
#[test]
fn r3_as_many_pairs_as_can_be_shown_leave_none_to_count() {
    let (source, _) = COPY.split_once("    %w = load").expect("a load");
    for seed in 0..SEEDS {
        let (pairs, more) = told(&checked(&format!("{source}}}"), 8, seed, Some(1)));
        assert_eq!((pairs.len(), more), (7, 0), "seed {seed}: {pairs:?}");
    }
}

/// The load races with stores of the other simdgroup alone, which may all have come before those of its own.
#[test]
fn r3_a_pair_is_found_however_many_accesses_came_between() {
    let source = "
kernel @k(%y: device read_write u32, %z: device write u32) threadgroup(128) simdgroup(32) {
    %t = thread_index_in_threadgroup
    %c0 = const u32 0
    %last = const u32 96
    store %y[%c0], %t
    barrier simdgroup
    %is_last = ge %t, %last
    if %is_last {
        %w = load %y[%c0]
        store %z[%t], %w
    }
}";
    for seed in 0..SEEDS {
        let report = checked(source, 128, seed, Some(1));
        assert_eq!(report.schedules, Schedules::All);
        let (mut pairs, more) = told(&report);
        pairs.sort();
        assert_eq!(
            (pairs, more),
            (vec![vec![6], vec![6, 10]], 0),
            "seed {seed}"
        );
    }
}
