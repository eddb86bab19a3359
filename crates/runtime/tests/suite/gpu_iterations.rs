//! Loops of many iterations on a GPU: what they compute is right, or the dispatch fails and says why. Mesa's
//! processor driver ends all loops of a thread after 65,535 iterations in all.

#![cfg(feature = "gpu")]

use std::time::{Duration, Instant};

use invar_ir::text::parse;
use invar_ir::{Rule, verify};
use invar_runtime::gpu::{Gpu, GpuArg};
use invar_runtime::{Arg, Buffer, CompileOptions, Device, Dispatch, Error};

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpu() -> Option<(Device, Gpu)> {
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return None;
    }
    Some((Device::gpu().unwrap(), Gpu::open(0).unwrap()))
}

/// Adds one in a loop of `n` iterations.
const LONG: &str = "kernel @long(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %s = for %j = %zero to %n step %one carry(%a = %zero) {
        %c = add %a, %one
        yield %c
    }
    store %y[%i], %s
}";

/// As many iterations, in two loops one after the other.
const TWICE: &str = "kernel @twice(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %s = for %j = %zero to %n step %one carry(%a = %zero) {
        %c = add %a, %one
        yield %c
    }
    store %y[%i], %s
    %t = for %k = %zero to %n step %one carry(%b = %s) {
        %d = add %b, %one
        yield %d
    }
    store %y[%i], %t
}";

/// A loop in a loop, both of `n` iterations.
const SQUARE: &str = "kernel @square(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %s = for %j = %zero to %n step %one carry(%a = %zero) {
        %t = for %k = %zero to %n step %one carry(%b = %a) {
            %c = add %b, %one
            yield %c
        }
        yield %t
    }
    store %y[%i], %s
}";

/// Each of eight threads has a turn of `n` iterations: few for a thread, many for a vector of them. Those that
/// have had their turn may leave early.
const TURNS: &str = "kernel @turns(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %eight = const u32 8
    for %j = %zero to %eight step %one {
        %mine = eq %i, %j
        if %mine {
            %t = for %k = %zero to %n step %one carry(%b = %zero) {
                %v = load %y[%i]
                %c = add %b, %one
                yield %c
            }
            store %y[%i], %t
            return
        }
    }
}";

/// Copies `n` elements, in a loop that is not the kernel's own.
const COPY: &str = "kernel @copies(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %half = const u32 200000
    copy %y[%half], %y[%zero], %n
}";

/// Runs a kernel with eight threads and `n`.
fn run(device: &Device, source: &str, y: &Buffer<u32>, n: u32) -> Result<(), Error> {
    let module = verify(parse("k.inv", source).unwrap()).unwrap();
    let program = device.compile(&module, &module.kernels[0].name)?;
    let args = [Arg::from(y), Arg::from(n)];
    device
        .queue()
        .run(&program, Dispatch::linear(8, 8), &args)
        .map(|_| ())
}

/// Whether all is as expected; if not, the dispatch has failed with the sentence.
#[track_caller]
fn right_or_told(result: Result<(), Error>, kernel: &str, ends_loops: bool, right: bool) -> bool {
    match result {
        Ok(()) => {
            assert!(
                right,
                "`{kernel}` stored something else, and this is not reported"
            );
            true
        }
        Err(error) => {
            assert!(ends_loops, "{error}");
            assert_eq!(error.rule(), Some(Rule::DeadlineExceeded), "{error}");
            let told = error.to_string();
            assert!(
                told.contains(&format!("kernel `{kernel}` make more iterations")),
                "{told}"
            );
            assert!(told.contains("cpu device"), "{told}");
            false
        }
    }
}

#[test]
fn many_iterations_are_right_or_told() {
    let Some((device, gpu)) = gpu() else { return };
    let ends_loops = gpu.features().ends_loops;
    let y = Buffer::<u32>::zeroed(&device, 8).unwrap();
    for (kernel, source, n, value) in [
        ("long", LONG, 100_000, 100_000),
        ("twice", TWICE, 40_000, 80_000),
        ("square", SQUARE, 300, 90_000),
        ("turns", TURNS, 20_000, 20_000),
        ("long", LONG, 65_536, 65_536),
        ("long", LONG, 65_535, 65_535),
    ] {
        let result = run(&device, source, &y, n);
        let right = result.is_err() || y.read().unwrap() == [value; 8];
        right_or_told(result, kernel, ends_loops, right);
    }
    // What has failed takes nothing from what comes next, and few enough iterations do not fail.
    for (source, n, value) in [
        (LONG, 60_000, 60_000),
        (TWICE, 30_000, 60_000),
        (SQUARE, 240, 57_600),
        (TURNS, 7_500, 7_500),
        (LONG, 0, 0),
    ] {
        run(&device, source, &y, n).unwrap();
        assert_eq!(y.read().unwrap(), [value; 8]);
    }
}

#[test]
fn loops_that_the_compiler_makes_are_watched_too() {
    let Some((device, gpu)) = gpu() else { return };
    let numbers: Vec<u32> = (0..400_000).collect();
    for n in [100_000, 60_000] {
        let y = Buffer::from_slice(&device, &numbers).unwrap();
        let result = run(&device, COPY, &y, n);
        let right =
            result.is_err() || y.read().unwrap()[200_000..][..n as usize] == numbers[..n as usize];
        let ran = right_or_told(result, "copies", gpu.features().ends_loops, right);
        assert!(ran || n > 65_000);
    }
}

/// Of dispatches that go to the GPU together only the one whose loops were ended fails.
#[test]
fn others_of_the_same_batch_do_not_fail() {
    let Some((device, gpu)) = gpu() else { return };
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = device.compile(&module, "long").unwrap();
    let queue = device.queue();
    let counts = [10u32, 100_000, 1_000];
    let buffers = counts.map(|_| Buffer::<u32>::zeroed(&device, 8).unwrap());
    let submissions: Vec<_> = counts
        .iter()
        .zip(&buffers)
        .map(|(n, y)| {
            let args = [Arg::from(y), Arg::from(*n)];
            queue
                .dispatch(&program, Dispatch::linear(8, 8), &args)
                .unwrap()
        })
        .collect();
    for ((n, y), submission) in counts.iter().zip(&buffers).zip(submissions) {
        let result = submission.wait().map(|_| ());
        assert!(result.is_ok() || *n > 65_000);
        let right = result.is_err() || y.read().unwrap() == [*n; 8];
        right_or_told(result, "long", gpu.features().ends_loops, right);
    }
}

/// Without a queue, the caller that waits or reads is told.
#[test]
fn who_asks_is_told_of_dispatches_without_a_queue() {
    let Some((_, gpu)) = gpu() else { return };
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = gpu
        .compile(&module, "long", &CompileOptions::default())
        .unwrap();
    let y = gpu.buffer(32).unwrap();
    let dispatch = |n: u32| {
        let n = [n.into()];
        let args = [GpuArg::Buffer(&y), GpuArg::Scalar(&n)];
        gpu.dispatch(&program, Dispatch::linear(8, 8), &args)
            .unwrap();
    };
    let holds = |n: u32| y.read().map(|bytes| bytes == n.to_le_bytes().repeat(8));
    for _ in 0..3 {
        dispatch(100_000);
        let told = holds(100_000);
        let right = told.as_ref().is_ok_and(|right| *right);
        right_or_told(told.map(|_| ()), "long", gpu.features().ends_loops, right);
        dispatch(100_000);
        let told = gpu.wait();
        let right = told.is_ok() && holds(100_000).unwrap();
        right_or_told(told, "long", gpu.features().ends_loops, right);
        dispatch(50_000);
        assert!(holds(50_000).unwrap());
        gpu.wait().unwrap();
    }
}

/// A dispatch that was given up goes on; what comes next keeps its own limit, and says what it waited for.
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn a_limit_holds_while_an_earlier_dispatch_occupies_the_gpu() {
    let Some((device, _)) = gpu() else { return };
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = device.compile(&module, "long").unwrap();
    let limit = Duration::from_millis(300);
    let queue = device.queue().with_time_limit(Some(limit));
    let run = |y: &Buffer<u32>, threads: u32, iterations: u32| {
        let args = [Arg::from(y), Arg::from(iterations)];
        let begun = Instant::now();
        let result = queue.run(&program, Dispatch::linear(threads, 64), &args);
        (result, begun.elapsed())
    };
    let small = Buffer::<u32>::zeroed(&device, 64).unwrap();
    run(&small, 64, 10).0.unwrap();
    let heavy = Buffer::<u32>::zeroed(&device, 1 << 18).unwrap();
    let (given_up, _) = run(&heavy, 1 << 18, 60_000);
    let Err(error) = given_up else {
        println!("skipped: this GPU is too fast to be given up");
        return;
    };
    assert_eq!(error.rule(), Some(Rule::DeadlineExceeded), "{error}");
    let (next, took) = run(&small, 64, 10);
    if let Err(error) = next {
        assert_eq!(error.rule(), Some(Rule::DeadlineExceeded), "{error}");
        assert!(
            error.to_string().contains("still occupies the GPU"),
            "{error}"
        );
        assert!(took >= limit, "{took:?}");
    }
    assert!(took < limit * 5, "{took:?}");
    // In the end the GPU is free.
    let begun = Instant::now();
    while run(&small, 64, 10).0.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(300));
    }
    assert_eq!(small.read().unwrap(), [10; 64]);
}

/// Of dispatches whose submissions are not asked, the next reader is told; and who asks one that used theirs.
#[test]
fn readers_are_told_of_dispatches_that_were_not_asked() {
    let Some((device, gpu)) = gpu() else { return };
    let ends_loops = gpu.features().ends_loops;
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = device.compile(&module, "long").unwrap();
    let dispatch = |y: &Buffer<u32>, n: u32| {
        let args = [Arg::from(y), Arg::from(n)];
        let queue = device.queue();
        queue
            .dispatch(&program, Dispatch::linear(8, 8), &args)
            .unwrap()
    };
    let y = Buffer::<u32>::zeroed(&device, 8).unwrap();
    let other = Buffer::<u32>::zeroed(&device, 8).unwrap();
    for _ in 0..3 {
        drop(dispatch(&y, 100_000));
        drop(dispatch(&other, 10));
        let told = y.read();
        let right = told.as_ref().is_ok_and(|y| *y == [100_000; 8]);
        right_or_told(told.map(|_| ()), "long", ends_loops, right);
        y.read().unwrap();
        assert_eq!(other.read().unwrap(), [10; 8]);
        drop(dispatch(&y, 100_000));
        let told = dispatch(&y, 10).wait();
        right_or_told(told.map(|_| ()), "long", ends_loops, true);
        assert_eq!(y.read().unwrap(), [10; 8]);
    }
}
