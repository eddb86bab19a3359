//! Printing (P1 to P5) on the reference machine.

use std::collections::BTreeMap;

use invar_interp::observe::Lines;
use invar_interp::{Arg, CheckOptions, Dispatch, Options, Verdict, check, run};
use invar_ir::print::{LIMIT_BYTES, Printed};
use invar_ir::{Const, Scalar, Verified, text, verify};

fn module(text: &str) -> Verified {
    verify(text::parse("print.inv", text).expect("a text")).expect("a module")
}

fn printed(text: &str, args: &mut [Arg], dispatch: &Dispatch, options: &Options) -> Printed {
    let module = module(text);
    let name = module.kernels[0].name.clone();
    let mut lines = Lines::default();
    run(&module, &name, dispatch, args, options, &mut [&mut lines]).expect("it runs");
    lines.0
}

fn texts(printed: &Printed) -> Vec<&str> {
    printed.lines.iter().map(|line| &*line.text).collect()
}

/// The lines of each thread along x.
fn by_thread(printed: &Printed) -> BTreeMap<u32, Vec<&str>> {
    let mut threads: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for line in &printed.lines {
        threads.entry(line.thread[0]).or_default().push(&line.text);
    }
    threads
}

#[test]
fn p1_a_line_is_the_text_with_its_values() {
    let text = r#"kernel @k(%a: i8, %b: u64, %c: f16, %d: bf16, %e: f32, %f: f64, %g: bool, %v: f32x3) {
        print "{} {} {} {} {} {} {}" %a, %b, %c, %d, %e, %f, %g
        print "{:x} {:x}, {{{}}}: }}{{" %a, %b, %v
        print "no values"
    }"#;
    let scalar = |scalar, bits| Arg::Scalar(vec![Const { scalar, bits }]);
    let vector = [0.1f32, f32::NEG_INFINITY, f32::from_bits(0xffc0_0001)];
    let mut args = [
        scalar(Scalar::I8, 0xff),
        scalar(Scalar::U64, u64::MAX),
        scalar(Scalar::F16, 0x2e66),
        scalar(Scalar::BF16, 0x3dcd),
        Arg::scalar(1e30f32),
        Arg::scalar(0.1f64),
        Arg::scalar(true),
        Arg::Scalar(vector.map(Const::from).to_vec()),
    ];
    let printed = printed(
        text,
        &mut args,
        &Dispatch::linear(1, 1),
        &Options::default(),
    );
    assert_eq!(
        texts(&printed),
        [
            "-1 18446744073709551615 0.1 0.1 1e30 0.1 true",
            "ff ffffffffffffffff, {(0.1, -inf, NaN)}: }{",
            "no values",
        ]
    );
}

#[test]
fn p1_printing_is_no_access_and_changes_no_verdict() {
    let text = r#"kernel @k(%y: device write u32) threadgroup(32) {
        %i = thread_position_in_grid x
        print "before {}" %i
        store %y[%i], %i
        print "after {}" %i
    }"#;
    let module = module(text);
    let args = [Arg::zeros(256)];
    let grid = Dispatch::linear(64, 32);
    let report = check(&module, "k", &grid, &args, &CheckOptions::default()).expect("it runs");
    assert_eq!(report.verdict, Verdict::Pass);
    assert!(report.diagnostics.is_empty());
    assert_eq!(report.seeds, 1, "the verdict holds for every schedule");
    assert_eq!(report.printed.lines.len(), 128);
    // A racy kernel is no less racy.
    let racy = text.replace("store %y[%i]", "%zero = const u32 0\nstore %y[%zero]");
    let module = self::module(&racy);
    let report = check(&module, "k", &grid, &args, &CheckOptions::default()).expect("it runs");
    assert_eq!(report.verdict, Verdict::Fail);
}

#[test]
fn p2_threads_print_as_often_as_they_come_by() {
    let text = r#"kernel @k(%n: u32) {
        %i = thread_position_in_grid x
        %zero = const u32 0
        %one = const u32 1
        %odd = and %i, %one
        %is = eq %odd, %one
        if %is {
            print "odd"
        }
        for %j = %zero to %i step %one {
            print "{}" %j
            %two = const u32 2
            %enough = eq %j, %two
            if %enough {
                return
            }
        }
        print "end"
    }"#;
    for seed in 0..4 {
        let options = Options {
            seed,
            simdgroup_size: Some(4),
            ..Options::default()
        };
        // The second threadgroup is smaller.
        let mut args = [Arg::scalar(0u32)];
        let printed = printed(text, &mut args, &Dispatch::linear(6, 4), &options);
        let threads = by_thread(&printed);
        let expected: [&[&str]; 6] = [
            &["end"],
            &["odd", "0", "end"],
            &["0", "1", "end"],
            &["odd", "0", "1", "2"],
            &["0", "1", "2"],
            &["odd", "0", "1", "2"],
        ];
        for (thread, lines) in (0..).zip(expected) {
            assert_eq!(threads[&thread], lines, "thread {thread}, seed {seed}");
        }
    }
}

#[test]
fn p3_barriers_that_name_device_memory_order_lines() {
    let text = r#"kernel @k() threadgroup(16) simdgroup(4) {
        %i = thread_position_in_grid x
        print "a {}" %i
        print "b {}" %i
        barrier threadgroup [device]
        print "c {}" %i
    }"#;
    for seed in 0..8 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let printed = printed(text, &mut [], &Dispatch::linear(16, 16), &options);
        let lines = texts(&printed);
        assert!(lines[..32].iter().all(|line| !line.starts_with('c')));
        assert!(lines[32..].iter().all(|line| line.starts_with('c')));
        for (thread, lines) in by_thread(&printed) {
            let expected = ["a", "b", "c"].map(|name| format!("{name} {thread}"));
            assert_eq!(lines, expected);
        }
    }
}

#[test]
fn p4_a_line_names_the_thread_and_the_place() {
    let text = "kernel @k() {\n    print \"first\"\n    print \"second\"\n}";
    let grid = Dispatch {
        grid: invar_interp::Grid::Threads([2, 3, 2]),
        threadgroup: [2, 2, 1],
    };
    let printed = printed(text, &mut [], &grid, &Options::default());
    let second = printed.lines.iter().filter(|line| line.text == "second");
    let mut threads: Vec<[u32; 3]> = second.map(|line| line.thread).collect();
    threads.sort_unstable();
    let all = (0..2).flat_map(|x| (0..3).flat_map(move |y| (0..2).map(move |z| [x, y, z])));
    assert_eq!(threads, all.collect::<Vec<_>>());
    for line in &printed.lines {
        let expected = if line.text == "first" { 2 } else { 3 };
        assert_eq!(line.span.start.line, expected);
    }
}

#[test]
fn p5_what_does_not_fit_is_counted() {
    let text = r#"kernel @k(%v: u64x2) {
        print "{}" %v
    }"#;
    let fit = LIMIT_BYTES / 32;
    let mut args = [Arg::Scalar(vec![Const::from(1u64); 2])];
    for (threads, lost) in [(fit, 0), (fit + 1, 1), (fit + 100, 100)] {
        let grid = Dispatch::linear(threads, 64);
        let printed = printed(text, &mut args, &grid, &Options::default());
        assert_eq!((printed.lines.len() as u32, printed.lost), (fit, lost));
        assert_eq!(printed.notice().is_some(), lost > 0);
    }
}
