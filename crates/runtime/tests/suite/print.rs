//! What kernels print (P1 to P5), on every device of this machine against the reference machine.

use std::collections::BTreeMap;

use invar_interp::observe::Lines;
use invar_interp::{Arg as HostArg, Options, run};
use invar_ir::print::{LIMIT_BYTES, Printed};
use invar_ir::{Const, Verified, text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch, Grid, on_print};

fn module(source: &str) -> Verified {
    verify(text::parse("print.inv", source).expect("it parses")).expect("it verifies")
}

/// The lines of each thread, with those of the source where they were printed.
fn by_thread(printed: &Printed) -> BTreeMap<[u32; 3], Vec<(u32, &str)>> {
    let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in &printed.lines {
        let of = threads.entry(line.thread).or_default();
        of.push((line.span.start.line, &*line.text));
    }
    threads
}

/// Prints under masks, in loops, before and behind a barrier, and before a `return`.
const MANY: &str = r#"
kernel @many(%y: device read_write u32, %f: f32, %v: i32x3, %t: bool) threadgroup(8, 4) {
    %i = thread_position_in_grid x
    %j = thread_position_in_grid y
    %zero = const u32 0
    %one = const u32 1
    print "({}, {}): {} {} {}" %i, %j, %f, %v, %t
    %g = cast f32 %i
    %h = div %g, %f
    for %k = %zero to %i step %one {
        %odd = and %k, %one
        %is = eq %odd, %one
        if %is {
            print "odd {} {}" %k, %h
        } else {
            %old = atomic_add %y[%zero], %k
        }
    }
    barrier threadgroup [device]
    print "behind {:x}" %j
    %few = lt %i, %j
    if %few {
        print "returns"
        return
    }
    print "end"
}"#;

#[test]
fn p1_lines_are_those_of_the_reference_machine() {
    let module = module(MANY);
    let grid = Dispatch {
        grid: Grid::Threads([19, 6, 1]),
        threadgroup: [8, 4, 1],
    };
    let v = [-1i32, 0, i32::MAX];
    let mut lines = Lines::default();
    let mut args = [
        HostArg::zeros(4),
        HostArg::scalar(3.0f32),
        HostArg::Scalar(v.map(Const::from).to_vec()),
        HostArg::scalar(true),
    ];
    let options = Options::default();
    let observers: &mut [&mut dyn invar_interp::Observer] = &mut [&mut lines];
    run(&module, "many", &grid, &mut args, &options, observers).expect("it runs");
    let expected = by_thread(&lines.0);
    assert_eq!(expected.len(), 19 * 6);
    for device in Device::all() {
        let program = device.compile(&module, "many").expect("it compiles");
        let y = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let args = [
            Arg::from(&y),
            Arg::from(3.0f32),
            Arg::vector(v),
            Arg::from(true),
        ];
        // One dispatch after the other: each has lines of its own.
        let queue = device.queue().quiet();
        for _ in 0..2 {
            let done = queue.dispatch(&program, grid, &args).expect("it fits");
            done.wait().expect("it runs");
            let printed = done.printed().expect("it prints");
            assert_eq!(by_thread(printed), expected, "{device:?}");
            assert_eq!(printed.lost, 0, "{device:?}");
        }
        assert_eq!(y.read().expect("bytes")[0] % 2, 0, "{device:?}");
    }
}

#[test]
fn p1_random_kernels_print_what_they_print_on_the_reference_machine() {
    let wanted = invar_conformance::Options {
        floats: invar_conformance::Floats::None,
        simdgroup_size: None,
        ..invar_conformance::Options::default()
    };
    let (mut ran, mut lines) = (0, 0);
    for seed in 0..60 {
        let case = invar_conformance::generate(seed, &wanted);
        let case = invar_conformance::with_prints(case, seed).expect("it can be built");
        let name = case.kernel().name.clone();
        let module = verify(case.module.clone()).and_then(|m| m.specialise(&case.constants));
        let module = module.unwrap_or_else(|e| panic!("{e}\n{case}"));
        if !module.kernels[0].prints() {
            continue;
        }
        let mut expected = Lines::default();
        let mut args = case.args().expect("arguments");
        let observers: &mut [&mut dyn invar_interp::Observer] = &mut [&mut expected];
        let options = Options::default();
        run(
            &module,
            &name,
            &case.dispatch,
            &mut args,
            &options,
            observers,
        )
        .expect("it runs");
        // Which lines there is room for depends on the order of threads.
        if expected.0.lost > 0 {
            continue;
        }
        for device in crate::common::hosts() {
            let Ok(program) = device.compile(&module, &name) else {
                continue;
            };
            let mut args = case.args().expect("arguments");
            let queue = device.queue().quiet();
            let done = queue.run_host(&program, case.dispatch, &mut args);
            let done = done.unwrap_or_else(|e| panic!("{device:?}: {e}\n{case}"));
            let printed = done.printed().expect("it prints");
            assert_eq!(
                by_thread(printed),
                by_thread(&expected.0),
                "{device:?}:\n{case}"
            );
            ran += 1;
            lines += printed.lines.len();
        }
    }
    assert!(
        ran >= 60 && lines > 10_000,
        "{ran} runs printed {lines} lines"
    );
}

#[test]
fn p5_what_does_not_fit_is_counted() {
    let module = module("kernel @much(%v: u64x2) {\n    print \"{}\" %v\n}");
    let fit = LIMIT_BYTES / 32;
    for device in Device::all() {
        let program = match device.compile(&module, "much") {
            Ok(program) => program,
            // Without 64-bit integers the kernel is refused by name.
            Err(error) => {
                assert!(error.to_string().contains("u64"), "{device:?}: {error}");
                continue;
            }
        };
        let args = [Arg::vector([1u64 << 40, u64::MAX])];
        for (threads, lost) in [(fit, 0), (fit + 1, 1), (fit + 5000, 5000)] {
            let grid = Dispatch::linear(threads, 64);
            let queue = device.queue().quiet();
            let done = queue.dispatch(&program, grid, &args).expect("it fits");
            let printed = done.printed().expect("it prints");
            let found = (printed.lines.len() as u32, printed.lost);
            assert_eq!(found, (fit, lost), "{device:?}");
            let text = "(1099511627776, 18446744073709551615)";
            assert!(
                printed.lines.iter().all(|line| line.text == text),
                "{device:?}"
            );
        }
    }
}

#[test]
fn lines_are_handed_over_once_and_before_dispatch_returns() {
    use std::sync::{Arc, Mutex};
    let module = module("kernel @only_here() {\n    print \"hello\"\n}");
    let heard: Arc<Mutex<Vec<usize>>> = Arc::default();
    let hearing = heard.clone();
    on_print(move |kernel, printed| {
        if &*kernel.name == "only_here" {
            hearing.lock().expect("no panic").push(printed.lines.len());
        }
    });
    for device in Device::all() {
        let program = device.compile(&module, "only_here").expect("it compiles");
        let queue = device.queue();
        let done = queue.dispatch(&program, Dispatch::linear(5, 64), &[]);
        let told = std::mem::take(&mut *heard.lock().expect("no panic"));
        assert_eq!(told, [5], "{device:?}");
        let done = done.expect("it fits");
        done.wait().expect("it runs");
        assert_eq!(done.printed().map(|p| p.lines.len()), Some(5), "{device:?}");
        // No threads, no lines; and a quiet queue writes none.
        let none = queue.dispatch(&program, Dispatch::linear(0, 64), &[]);
        none.expect("it fits").wait().expect("it runs");
        let quiet = device.queue().quiet();
        let more = quiet.dispatch(&program, Dispatch::linear(3, 64), &[]);
        let more = more.expect("it fits");
        assert_eq!(more.printed().map(|p| p.lines.len()), Some(3), "{device:?}");
        let told = std::mem::take(&mut *heard.lock().expect("no panic"));
        assert_eq!(told.iter().sum::<usize>(), 0, "{device:?}");
    }
    let plain = self::module("kernel @plain() {\n}");
    let device = Device::checked();
    let program = device.compile(&plain, "plain").expect("it compiles");
    let done = device
        .queue()
        .dispatch(&program, Dispatch::linear(1, 1), &[]);
    assert!(done.expect("it fits").printed().is_none());
}

#[test]
fn a_dispatch_that_fails_gives_what_was_printed() {
    let source = "
kernel @fails(%y: device write u32) {
    %i = thread_position_in_grid x
    print \"{}\" %i
    store %y[%i], %i
}";
    let device = Device::checked();
    let program = device
        .compile(&module(source), "fails")
        .expect("it compiles");
    let y = Buffer::<u32>::zeroed(&device, 2).expect("a buffer");
    let queue = device.queue().quiet();
    let done = queue.dispatch(&program, Dispatch::linear(4, 4), &[Arg::from(&y)]);
    let done = done.expect("it fits");
    assert_eq!(done.printed().map(|p| p.lines.len()), Some(4));
    let error = done.wait().expect_err("out of bounds");
    assert_eq!(error.rule().map(|r| r.name()), Some("out-of-bounds"));
}
