//! What the checkers find, and what they let pass.

use std::ops::ControlFlow;

use invar_interp::observe::{ObjectInfo, Observer};
use invar_interp::{Arg, CheckOptions, Dispatch, Options, Report, Schedules, Verdict, check, run};
use invar_ir::{Rule, Verified, text, verify};

fn parse(source: &str) -> Verified {
    verify(text::parse("k.inv", source).expect("parses")).expect("verifies")
}

fn check_with(source: &str, dispatch: Dispatch, args: &[Arg], options: &CheckOptions) -> Report {
    check(&parse(source), "k", &dispatch, args, options).expect("runs")
}

fn checked(source: &str, dispatch: Dispatch, args: &[Arg]) -> Report {
    check_with(source, dispatch, args, &CheckOptions::default())
}

/// Rule and line of each finding.
fn findings(report: &Report) -> Vec<(&'static str, u32)> {
    let of = |d: &invar_ir::Diagnostic| (d.rule.name(), d.span().start.line);
    report.diagnostics.iter().map(of).collect()
}

const OUTSIDE: &str = "
kernel @k(%x: device read_write u32) ATTRIBUTES {
    %i = thread_position_in_grid x
    %one = const u32 1
    %j = add %i, %one
    %v = load %x[%j]
    store %x[%i], %v
    store %x[%j], %v
}";

#[test]
fn out_of_bounds_is_reported_once_a_place_with_the_first_thread() {
    let source = OUTSIDE.replace("ATTRIBUTES", "");
    let report = checked(&source, Dispatch::linear(4, 1), &[Arg::zeros(8)]);
    let outside: Vec<_> = report
        .diagnostics
        .iter()
        .filter(|d| d.rule == Rule::OutOfBounds)
        .collect();
    assert_eq!(outside.len(), 3);
    assert_eq!(
        outside[0].message,
        "thread (0, 0, 0) of threadgroup (1, 0, 0) reads element 2 of `x`, which has 2; 3 accesses \
         here are out of bounds"
    );
    assert_eq!(report.verdict, Verdict::Fail);
}

#[test]
fn out_of_bounds_that_is_meant_is_not_reported() {
    let loads = OUTSIDE.replace("ATTRIBUTES", "allow(out_of_bounds_loads)");
    let found = findings(&checked(&loads, Dispatch::linear(1, 1), &[Arg::zeros(4)]));
    assert_eq!(found, [("out-of-bounds", 8)]);
    let both = OUTSIDE.replace(
        "ATTRIBUTES",
        "allow(out_of_bounds_loads, out_of_bounds_stores)",
    );
    let report = checked(&both, Dispatch::linear(1, 1), &[Arg::zeros(4)]);
    assert_eq!(findings(&report), []);
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn a_missing_barrier_is_a_race_with_both_lines_threads_and_advice() {
    let source = |barrier: &str| {
        format!(
            "
kernel @k(%y: device write u32) {{
    %tile = alloc threadgroup u32[64]
    %t = thread_index_in_threadgroup
    %last = const u32 63
    %r = sub %last, %t
    store %tile[%t], %t
    {barrier}
    %v = load %tile[%r]
    store %y[%t], %v
}}"
        )
    };
    let args = [Arg::zeros(256)];
    let report = checked(&source(""), Dispatch::linear(64, 64), &args);
    assert_eq!(findings(&report)[0], ("data-race", 9));
    let race = &report.diagnostics[0];
    assert_eq!(race.labels[1].span.start.line, 7);
    assert_eq!(
        race.message,
        "`tile[32]` is read by thread (31, 0, 0) of threadgroup (0, 0, 0) and written by thread \
         (32, 0, 0) of threadgroup (0, 0, 0), and nothing orders the two; the same happens at 63 more locations"
    );
    let help = race.help.clone().unwrap();
    assert_eq!(help, "put `barrier threadgroup [threadgroup]` between them");
    let with = source("barrier threadgroup [threadgroup]");
    let report = checked(&with, Dispatch::linear(64, 64), &args);
    assert_eq!(findings(&report), []);
    assert_eq!(report.schedules, Schedules::All);
    assert_eq!(
        report.reach(),
        "the verdict on data races holds for every schedule of this input"
    );
}

#[test]
fn stores_of_one_value_are_a_class_of_their_own() {
    let source = "
kernel @k(%x: device write u32) {
    %zero = const u32 0
    %one = const u32 1
    store %x[%zero], %one
}";
    let args = [Arg::zeros(4)];
    let dispatch = Dispatch::linear(64, 32);
    let report = checked(source, dispatch, &args);
    assert_eq!(findings(&report), [("equal-stores", 5)]);
    assert_eq!(report.verdict, Verdict::Fail);
    let allow = CheckOptions {
        allow: vec![Rule::EqualStores],
        ..CheckOptions::default()
    };
    let report = check_with(source, dispatch, &args, &allow);
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn threadgroup_memory_that_nothing_wrote_is_a_warning() {
    let source = |t: &str, attributes: &str| {
        format!(
            "
kernel @k(%y: device write u32) {attributes} {{
    %tile = alloc threadgroup u32[8]
    %t = thread_index_in_threadgroup
    %one = const u32 1
    %zero = const u32 0
    %a = add %t, {t}
    store %tile[%t], %t
    barrier threadgroup [threadgroup]
    %v = load %tile[%a]
    store %y[%t], %v
}}"
        )
    };
    let args = [Arg::zeros(16)];
    // Twice the same memory, for two threadgroups: the second one's writes are its own.
    let report = checked(&source("%one", ""), Dispatch::linear(4, 4), &args);
    assert_eq!(findings(&report), [("uninitialised-read", 10)]);
    assert_eq!(report.verdict, Verdict::Pass);
    let deny = CheckOptions {
        deny_warnings: true,
        ..CheckOptions::default()
    };
    let report = check_with(&source("%one", ""), Dispatch::linear(4, 4), &args, &deny);
    assert_eq!(report.verdict, Verdict::Fail);
    let report = checked(&source("%zero", ""), Dispatch::linear(4, 4), &args);
    assert_eq!(findings(&report), []);
    // Where the zeros are meant, nothing is found, and nothing is left out.
    let meant = source("%one", "allow(uninitialised_reads)");
    let report = checked(&meant, Dispatch::linear(4, 4), &args);
    assert_eq!(findings(&report), []);
    assert_eq!(report.allowed, []);
}

#[test]
fn a_copy_that_nobody_waits_for_is_a_warning_and_arrives_late() {
    let source = |wait: &str| {
        format!(
            "
kernel @k(%x: device read u32, %y: device write u32) {{
    %tile = alloc threadgroup u32[4]
    %zero = const u32 0
    %n = const u32 4
    %e = async_copy %tile[%zero], %x[%zero], %n
    {wait}
    %v = load %tile[%zero]
    store %y[%zero], %v
}}"
        )
    };
    let args = [
        Arg::OwnedBuffer([7u32; 4].iter().flat_map(|v| v.to_ne_bytes()).collect()),
        Arg::zeros(4),
    ];
    let report = checked(&source(""), Dispatch::linear(1, 1), &args);
    assert_eq!(findings(&report), [("data-race", 8), ("never-waited", 6)]);
    assert_eq!(report.outputs[1], 0u32.to_ne_bytes());
    let help = report.diagnostics[0].help.clone().unwrap();
    assert_eq!(help, "`wait` for the copy's event between the two");
    let report = checked(&source("wait %e"), Dispatch::linear(1, 1), &args);
    assert_eq!(findings(&report), []);
    assert_eq!(report.outputs[1], 7u32.to_ne_bytes());
    // Some seed brings the data early, which shows that the result depends on the schedule.
    let seeds = CheckOptions {
        seeds: Some(8),
        ..CheckOptions::default()
    };
    let report = check_with(&source(""), Dispatch::linear(1, 1), &args, &seeds);
    let depends = report
        .diagnostics
        .iter()
        .find(|d| d.rule == Rule::ScheduleDependent);
    let message = depends.map_or("", |d| &d.message);
    assert!(
        message.starts_with("`y[0]` is 0 with seed 0 and 7 with seed "),
        "{message}"
    );
}

#[test]
fn x3_a_run_that_never_ends_keeps_no_other_schedule_from_being_tried() {
    let source = "
kernel @k(%x: device read_write u32) {
    %zero = const u32 0
    loop {
        %v = load %x[%zero]
        %set = ne %v, %zero
        if %set {
            break
        }
    }
}";
    let options = CheckOptions {
        run: Options {
            time_limit: Some(std::time::Duration::from_secs(20)),
            ..Options::default()
        },
        seeds: Some(4),
        ..CheckOptions::default()
    };
    let report = check_with(source, Dispatch::linear(1, 1), &[Arg::zeros(4)], &options);
    let rules: Vec<&str> = findings(&report).iter().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, ["deadline-exceeded"]);
    assert!(
        report.diagnostics[0]
            .message
            .contains("never ends in this schedule")
    );
    assert!(report.seeds > 1, "{}", report.seeds);
    assert_eq!(report.verdict, Verdict::Fail);
}

#[test]
fn a_run_that_never_ends_takes_its_time_once_though_it_races() {
    // What the loop counts is never the same, so that only time shows that it does not end.
    let source = "
kernel @k(%x: device read_write u32) {
    %zero = const u32 0
    %one = const u32 1
    %t = thread_position_in_grid x
    store %x[%zero], %t
    %last = loop carry(%n = %zero) {
        %m = add %n, %one
        %v = load %x[%zero]
        %over = gt %v, %m
        %never = and %over, %over
        %two = add %m, %one
        %odd = eq %two, %m
        if %odd {
            break %m
        }
        continue %m
    }
    store %x[%zero], %last
}";
    let limit = std::time::Duration::from_secs(4);
    let options = CheckOptions {
        run: Options {
            time_limit: Some(limit),
            step_limit: u64::MAX,
            ..Options::default()
        },
        ..CheckOptions::default()
    };
    let start = std::time::Instant::now();
    let report = check_with(source, Dispatch::linear(4, 4), &[Arg::zeros(4)], &options);
    let took = start.elapsed();
    let rules: Vec<&str> = findings(&report).iter().map(|(rule, _)| *rule).collect();
    assert!(rules.contains(&"deadline-exceeded"), "{rules:?}");
    assert!(rules.contains(&"data-race"), "{rules:?}");
    // The rest of the schedules have a quarter of it together.
    assert!(took < limit * 7 / 4, "{took:?}");
}

#[test]
fn x5_disagreement_is_reported_for_each_scope_and_everyone_gets_one_value() {
    for scope in ["simdgroup", "threadgroup"] {
        let source = |v: &str| {
            format!(
                "
kernel @k(%x: device write u32) {{
    %i = thread_position_in_grid x
    %zero = const u32 0
    %u = assert_uniform {scope} {v}
    store %x[%i], %u
}}"
            )
        };
        let args = [Arg::zeros(64 * 4)];
        let report = checked(&source("%i"), Dispatch::linear(64, 64), &args);
        assert_eq!(
            findings(&report),
            [("uniformity-disagreement", 5), ("schedule-dependent", 2)],
            "{scope}"
        );
        let message = &report.diagnostics[0].message;
        let named = format!("threads of a {scope} disagree");
        assert!(message.contains(&named), "{message}");
        assert!(report.reach().contains("tried"), "{}", report.reach());
        let values: Vec<u32> = report.outputs[0]
            .chunks(4)
            .map(|c| u32::from_ne_bytes(c.try_into().unwrap()))
            .collect();
        let first = if scope == "simdgroup" { 32 } else { 64 };
        assert!(values[..first].iter().all(|v| *v == 0), "{scope}");
        assert!(values.iter().all(|v| *v == values[63]) || scope == "simdgroup");
        let report = checked(&source("%zero"), Dispatch::linear(64, 64), &args);
        assert_eq!(findings(&report), []);
    }
}

#[test]
fn r3_the_verdict_says_when_it_is_for_the_schedules_tried() {
    let source = |line: &str| {
        format!(
            "
kernel @k(%x: device read_write u32, %y: device read_write u32) {{
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    {line}
}}"
        )
    };
    let all = [
        "%o = atomic_add %x[%zero], %one",
        "%o = atomic_add %x[%zero], %one\n %p = atomic_sub %x[%zero], %one",
        "%o = atomic_add %x[%zero], %one\n store %y[%i], %o",
        "%o = atomic_add %x[%zero], %one\n store %y[%i], %o\n store %x[%one], %one",
        "%o = atomic_max %x[%zero], %i\n barrier threadgroup [device]\n %v = load %x[%zero]\n store %y[%i], %v",
        "store %x[%zero], %i\n %v = load %x[%zero]\n store %y[%i], %v",
        "store %x[%zero], %i\n store %y[%zero], %one\n %v = load %x[%one]",
    ];
    let tried = [
        (
            "%o = atomic_add %x[%zero], %one\n store %y[%o], %one",
            "an address",
        ),
        (
            "%o = atomic_add %x[%zero], %one\n %c = eq %o, %zero\n if %c { store %y[%i], %one }",
            "a branch",
        ),
        (
            "%o = atomic_exchange %x[%zero], %i\n barrier threadgroup [device]\n %v = load %x[%zero]\n store %y[%i], %v",
            "a plain load",
        ),
        (
            "%o = atomic_add %x[%zero], %one\n store %y[%i], %o\n %v = load %y[%i]\n store %y[%i], %v",
            "a plain load",
        ),
        (
            "%o = atomic_load %x[%zero]\n store %y[%zero], %o",
            "whether stores that race are of equal value",
        ),
        (
            "%o = atomic_load %x[%zero] acquire device",
            "acquires or releases",
        ),
        (
            "store %x[%zero], %i\n %v = load %x[%zero]\n store %y[%v], %i",
            "an address depends on what was loaded where there is a race",
        ),
        (
            "store %x[%zero], %i\n barrier threadgroup [device]\n %v = load %x[%zero]\n %c = eq %v, %zero\n if %c { store %y[%i], %one }",
            "a branch depends on what was loaded where there is a race",
        ),
        (
            "store %x[%zero], %i\n barrier threadgroup []\n copy %y[%zero], %x[%zero], %one\n %v = load %y[%zero]\n for %j = %zero to %v step %one { store %y[%i], %one }",
            "a branch depends on what was loaded where there is a race",
        ),
        (
            "store %x[%i], %one\n %n = xor %i, %one\n %v = load %x[%n]\n store %y[%zero], %v",
            "whether stores that race are of equal value depends on what was loaded where there is a race",
        ),
    ];
    let args = [Arg::zeros(32), Arg::zeros(32)];
    let dispatch = Dispatch::linear(8, 8);
    for line in all {
        let report = checked(&source(line), dispatch, &args);
        assert_eq!(report.schedules, Schedules::All, "{line}");
    }
    for (line, reason) in tried {
        let report = checked(&source(line), dispatch, &args);
        assert!(
            matches!(report.schedules, Schedules::Tried { .. }),
            "{line}"
        );
        assert!(report.reach().contains(reason), "{}", report.reach());
    }
}

#[test]
fn results_that_depend_on_the_schedule_show_over_several_seeds() {
    let source = "
kernel @k(%n: device read_write u32, %y: device write u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %ticket = atomic_add %n[%zero], %one
    store %y[%i], %ticket
}";
    let args = [Arg::zeros(4), Arg::zeros(256)];
    let seeds = |n| CheckOptions {
        seeds: Some(n),
        ..CheckOptions::default()
    };
    let one = check_with(source, Dispatch::linear(64, 32), &args, &seeds(1));
    assert_eq!(findings(&one), []);
    let many = check_with(source, Dispatch::linear(64, 32), &args, &seeds(4));
    assert!(
        many.diagnostics
            .iter()
            .all(|d| d.rule == Rule::ScheduleDependent)
    );
    assert!(
        many.diagnostics[0].message.contains("`y["),
        "{:?}",
        many.diagnostics
    );
}

#[test]
fn a_kernel_without_end_fails_the_check_and_keeps_its_findings() {
    let source = "
kernel @k(%x: device read_write u32) {
    %one = const u32 1
    store %x[%one], %one
    loop { }
}";
    let options = CheckOptions {
        run: Options {
            step_limit: 1000,
            ..Options::default()
        },
        ..CheckOptions::default()
    };
    let report = check_with(source, Dispatch::linear(1, 1), &[Arg::zeros(4)], &options);
    assert_eq!(findings(&report), [("step-limit", 5), ("out-of-bounds", 4)]);
}

#[test]
fn an_observer_sees_progress_and_can_cancel() {
    struct Stop(u64);
    impl Observer for Stop {
        fn wants(&self, _object: &ObjectInfo) -> bool {
            false
        }
        fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
            assert!(done <= total && total == 1_000_000);
            self.0 = self.0.max(done);
            if done < 50_000 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        }
    }
    let module = parse(
        "kernel @k(%x: device write u32) { %i = thread_position_in_grid x\n store %x[%i], %i }",
    );
    let mut stop = Stop(0);
    let mut args = [Arg::zeros(4)];
    let error = run(
        &module,
        "k",
        &Dispatch::linear(1_000_000, 1),
        &mut args,
        &Options::default(),
        &mut [&mut stop],
    );
    assert_eq!(error.unwrap_err().0[0].rule, Rule::Cancelled);
    assert!((50_000..100_000).contains(&stop.0));
}

#[test]
fn a_checker_that_cannot_follow_says_so_and_claims_nothing() {
    let source = "
kernel @k(%x: device read_write u32) {
    %i = thread_position_in_grid x
    store %x[%i], %i
}";
    let options = CheckOptions {
        race_memory_bytes: 16,
        ..CheckOptions::default()
    };
    let args = [Arg::zeros(4096)];
    let module = parse(source);
    let errors = check(&module, "k", &Dispatch::linear(64, 64), &args, &options);
    let errors = errors.unwrap_err();
    assert_eq!(errors.0[0].rule, Rule::CheckLimit);
}

#[test]
fn x4_the_schedules_of_a_run_that_did_not_end_are_not_all() {
    let source = "kernel @k(%x: device read_write u32) { loop { } }";
    let options = CheckOptions {
        run: Options {
            step_limit: 100,
            ..Options::default()
        },
        ..CheckOptions::default()
    };
    let report = check_with(source, Dispatch::linear(1, 1), &[Arg::zeros(4)], &options);
    assert!(matches!(report.schedules, Schedules::Tried { .. }));
}

/// A copy of `rows` rows of two, from the start of `tile`, which is 5 and 6, to that of `y`, of eight elements.
fn rows_of_two(to: i32, from: i32, rows: u32) -> Report {
    let source = format!(
        "
kernel @k(%y: device write u32) {{
    %tile = alloc threadgroup u32[2]
    %zero = const u32 0
    %one = const u32 1
    %two = const u32 2
    %to = const i32 {to}
    %from = const i32 {from}
    %rows = const u32 {rows}
    %five = const u32 5
    %six = const u32 6
    store %tile[%zero], %five
    store %tile[%one], %six
    %e = async_copy_2d %y[%zero] row %to, %tile[%zero] row %from, %two, %rows
    wait %e
}}"
    );
    let y = Arg::OwnedBuffer([9u32; 8].iter().flat_map(|v| v.to_ne_bytes()).collect());
    checked(&source, Dispatch::linear(1, 1), &[y])
}

#[test]
fn rows_of_a_copy_that_lie_beyond_its_objects_are_counted_and_cost_nothing() {
    let message = |report: &Report| -> String {
        let found = report.diagnostics.iter();
        let mut found = found.filter(|d| d.rule == Rule::OutOfBounds);
        found.next().map_or(String::new(), |d| d.message.clone())
    };
    let y = |report: &Report| -> Vec<u32> {
        let words = report.outputs[0].chunks(4);
        words
            .map(|w| u32::from_ne_bytes(w.try_into().expect("four bytes")))
            .collect()
    };
    // All rows behind the fourth are outside of `y`, or all before the first.
    for to in [2, -2] {
        let [few, many] = [6, u32::MAX].map(|rows| rows_of_two(to, 0, rows));
        let expected = if to > 0 {
            [5, 6, 5, 6, 5, 6, 5, 6]
        } else {
            [5, 6, 9, 9, 9, 9, 9, 9]
        };
        assert_eq!((y(&few), y(&many)), (expected.to_vec(), expected.to_vec()));
        let inside = if to > 0 { 4 } else { 1 };
        let more = |rows: u32| format!("; {} accesses here are out of bounds", rows - inside);
        assert!(message(&few).contains(&more(6)), "{}", message(&few));
        assert!(
            message(&many).contains(&more(u32::MAX)),
            "{}",
            message(&many)
        );
    }
    // Each row is written over by the next; the last is outside of `tile`, and gives zeros.
    let report = rows_of_two(0, 2, u32::MAX);
    assert_eq!(y(&report), [0, 0, 9, 9, 9, 9, 9, 9]);
    let report = rows_of_two(0, 0, u32::MAX);
    assert_eq!(y(&report), [5, 6, 9, 9, 9, 9, 9, 9]);
    assert_eq!(message(&report), "");
}

/// All pairs of so many places would be half their square: what is looked at grows as their number.
#[test]
fn r1_very_many_places_that_race_at_one_location() {
    for (places, most) in [(40, None), (2000, Some(2000 * 70))] {
        let stores = "store %x[%zero], %t\n".repeat(places);
        let source = format!(
            "kernel @k(%x: device read_write u32) {{
                 %t = thread_position_in_grid x
                 %zero = const u32 0
                 {stores}
             }}"
        );
        let report = checked(&source, Dispatch::linear(64, 64), &[Arg::zeros(4)]);
        let rule = Rule::DataRace;
        let mut races = report.diagnostics.iter().filter(|d| d.rule == rule);
        let last = races.next_back().expect("races").message.clone();
        let (_, count) = last.split_once("`, ").expect("a count");
        let (count, _) = count.split_once(" more pairs").expect("a count");
        match most {
            None => assert_eq!(count, (places * (places + 1) / 2 - 8).to_string()),
            Some(most) => {
                let count = count.strip_prefix("at least ").expect("not all are found");
                let count: usize = count.parse().expect("a number");
                assert!((places..most).contains(&count), "{count}");
            }
        }
    }
}
