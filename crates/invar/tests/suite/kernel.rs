//! Kernels written as Rust functions: what they compute, and where reports say that they go wrong.

use std::future::Future;

use invar::prelude::*;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = a * x[i] + y[i];
}

#[test]
fn a_kernel_runs_where_it_is_launched() {
    let device = Device::default().expect("a device");
    let x = device.buffer_from(&[1.0f32, 2.0, 3.0]).expect("a buffer");
    let mut y = device.buffer_from(&[10.0f32; 3]).expect("a buffer");
    let prepared = saxpy::prepare(&device).expect("a kernel");
    let grid = Grid::threads(3);
    let first = saxpy::launch(&device, grid, 2.0, &x, &mut y).expect("a launch");
    let second = saxpy::launch(&prepared, grid, 1.0, &x, &mut y).expect("a launch");
    let third = saxpy::launch(&device.queue(), grid.threadgroup(2), 1.0, &x, &mut y);
    first.wait().expect("the first");
    second.wait().expect("the second");
    third.expect("a launch").wait().expect("the third");
    assert_eq!(y.read().expect("numbers"), [14.0, 18.0, 22.0]);
}

#[test]
fn the_text_form_has_the_names_and_says_what_buffers_are_for() {
    let text = saxpy::to_inv().expect("a kernel");
    let expected = "\
kernel @saxpy(%a: f32, %x: device read f32, %y: device read_write f32) {
    %i = thread_position_in_grid x
    %2 = load %x[%i]
    %3 = mul %a, %2
    %4 = load %y[%i]
    %5 = add %3, %4
    store %y[%i], %5
}";
    assert!(text.contains(expected), "{text}");
    assert!(
        fill::to_inv()
            .expect("a kernel")
            .contains("%y: device write u32")
    );
}

#[kernel]
fn fill(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i] = i;
}

#[kernel]
fn clash(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i / 2] = i;
}

#[kernel]
fn beyond(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i + 1] = i;
}

#[kernel(threadgroup(4))]
fn divergent(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    if i < 2 {
        threadgroup_barrier();
    }
    y[i] = i;
}

/// The line of this file that has these words; but not this function's callers.
fn line_of(words: &str) -> String {
    let text = include_str!("kernel.rs");
    let found = text
        .lines()
        .position(|l| l.trim() == words)
        .expect("the line");
    format!("kernel.rs:{}:", found + 1)
}

#[test]
fn a_race_is_reported_on_the_rust_line() {
    let found = clash::check(Grid::threads(8), &mut [0; 4]).expect("a run");
    assert!(!found.passed());
    assert_eq!(found.diagnostics()[0].rule.name(), "data-race");
    let report = found.to_string();
    assert!(report.contains(&line_of("y[i / 2] = i;")), "{report}");
    assert!(report.contains("y[i / 2] = i;\n"), "{report}");
    assert!(report.contains("^^^^^^^^^^^^"), "{report}");
    assert!(found.into_result().is_err());
}

#[test]
fn a_store_out_of_bounds_is_reported_on_the_rust_line() {
    let mut y = [7; 4];
    let found = beyond::check(Grid::threads(4), &mut y).expect("a run");
    assert_eq!(y, [7, 0, 1, 2]);
    let error = found.into_result().expect_err("a finding").to_string();
    assert!(error.contains(&line_of("y[i + 1] = i;")), "{error}");
    assert_eq!(error.matches("error[").count(), 1, "{error}");
}

#[test]
fn a_launch_on_the_checked_device_fails_with_the_rust_line() {
    let device = Device::checked();
    let mut y = device.buffer_zeroed::<u32>(4).expect("a buffer");
    let launched = beyond::launch(&device, Grid::threads(4), &mut y).expect("a launch");
    let error = launched.wait().expect_err("a store out of bounds");
    let text = error.to_string();
    assert_eq!(error.rule().map(|r| r.name()), Some("out-of-bounds"));
    assert!(text.contains(&line_of("y[i + 1] = i;")), "{text}");
}

/// Polls until a future is ready, on a thread that sleeps until it is woken.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    struct Wake(std::thread::Thread);
    impl std::task::Wake for Wake {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Wake(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        match std::pin::Pin::new(&mut future).poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_launch_is_a_future() {
    for device in [Device::default().expect("a device"), Device::checked()] {
        let x = device.buffer_from(&[1.0f32; 1 << 12]).expect("a buffer");
        let mut y = device.buffer_zeroed::<f32>(1 << 12).expect("a buffer");
        for round in 1..20 {
            let launched = saxpy::launch(&device, Grid::threads(1 << 12), 2.0, &x, &mut y);
            block_on(launched.expect("a launch")).expect("a run");
            assert_eq!(y.read().expect("numbers")[17], 2.0 * round as f32);
        }
        let mut y = device.buffer_zeroed::<u32>(0).expect("a buffer");
        let empty = fill::launch(&device, Grid::threads(0), &mut y).expect("a launch");
        block_on(empty).expect("nothing to run");
    }
    let device = Device::checked();
    let mut y = device.buffer_zeroed::<u32>(4).expect("a buffer");
    let wrong = beyond::launch(&device, Grid::threads(4), &mut y).expect("a launch");
    let error = block_on(wrong)
        .expect_err("a store out of bounds")
        .to_string();
    assert!(error.contains(&line_of("y[i + 1] = i;")), "{error}");
}

#[test]
fn a_divergent_barrier_is_reported_on_the_rust_line_when_first_compiled() {
    let error = divergent::module().expect_err("a barrier that two threads miss");
    let text = error.to_string();
    assert!(text.contains(&line_of("threadgroup_barrier();")), "{text}");
    assert!(text.contains("i < 2"), "{text}");
    let mut y = Device::checked().buffer_zeroed::<u32>(4).expect("a buffer");
    let again = saxpy_free_launch(&mut y).expect_err("the same");
    assert_eq!(again, error);
}

fn saxpy_free_launch(y: &mut Buffer<u32>) -> invar::Result<()> {
    divergent::launch(&Device::checked(), Grid::threads(4), y)?.wait()?;
    Ok(())
}

#[kernel]
fn collatz(limit: u32, steps: &mut [u32]) {
    let i = thread_position_in_grid().x;
    if i == 0 {
        return;
    }
    let mut n = i;
    let mut count = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        count += 1;
        if count == limit {
            count = u32::MAX;
            break;
        }
    }
    steps[i] = count;
}

fn collatz_on_host(i: u32, limit: u32) -> u32 {
    let (mut n, mut count) = (i, 0);
    while i != 0 && n != 1 {
        n = if n.is_multiple_of(2) {
            n / 2
        } else {
            3 * n + 1
        };
        count += 1;
        if count == limit {
            return u32::MAX;
        }
    }
    count
}

#[test]
fn while_with_break_and_early_return() {
    let mut steps = [0; 32];
    let found = collatz::check(Grid::threads(32), 100, &mut steps).expect("a run");
    found.into_result().expect("no findings");
    let expected: Vec<u32> = (0..32).map(|i| collatz_on_host(i, 100)).collect();
    assert_eq!(steps[..], expected);
    assert!(expected.contains(&u32::MAX));
}

#[kernel]
fn loops(out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let mut total = 0;
    let mut odd = 0;
    for j in 0..i {
        if j == 3 {
            continue;
        }
        for k in (0..10).step_by(4) {
            total += j * k;
            if k == j {
                break;
            }
        }
        let total = 1000;
        odd += total % 2 + j % 2;
    }
    loop {
        total += 1;
        if total % 7 == 0 || total > 1_000 && odd != 0 {
            break;
        }
    }
    out[i] = total * 100 + odd;
}

fn loops_on_host(i: u32) -> u32 {
    let (mut total, mut odd) = (0, 0);
    for j in (0..i).filter(|j| *j != 3) {
        for k in (0..10).step_by(4) {
            total += j * k;
            if k == j {
                break;
            }
        }
        odd += j % 2;
    }
    loop {
        total += 1;
        if total % 7 == 0 || total > 1_000 && odd != 0 {
            break;
        }
    }
    total * 100 + odd
}

#[test]
fn loops_in_loops_carry_what_they_change() {
    let mut out = [0; 20];
    let found = loops::check(Grid::threads(20), &mut out).expect("a run");
    found.into_result().expect("no findings");
    let expected: Vec<u32> = (0..20).map(loops_on_host).collect();
    assert_eq!(out[..], expected);
}

const LIMIT: u32 = 12;

#[kernel]
fn choices(out: &mut [i32]) {
    let i = thread_position_in_grid().x;
    let mut extra = 0;
    let name = match i {
        0 => -1,
        1 | 2 => {
            extra = 5;
            10
        }
        3..=5 => 20,
        6..9 => 30,
        LIMIT => 40,
        other => other as i32,
    };
    let both = if i > 4 && (i < 7 || i == 9) { 1000 } else { 0 };
    out[i] = name + extra + both;
}

#[test]
fn match_on_integers_and_conditions_of_several_parts() {
    let mut out = [0; 14];
    let found = choices::check(Grid::threads(14), &mut out).expect("a run");
    found.into_result().expect("no findings");
    let expected = [-1, 15, 15, 20, 20, 1020, 1030, 30, 30, 1009, 10, 11, 40, 13];
    assert_eq!(out, expected);
}

#[kernel]
fn guarded(x: &[f32], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    if (i as u64) < x.len() && x[i] > 0.5 {
        y[i] += 1.0;
    }
}

#[test]
fn the_right_side_of_and_is_evaluated_only_where_it_decides() {
    let (x, mut y) = ([0.0, 1.0, 2.0], [0.0; 8]);
    let found = guarded::check(Grid::threads(8), &x, &mut y).expect("a run");
    // A load out of bounds would be a finding.
    found.into_result().expect("no findings");
    assert_eq!(y, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[device_fn]
fn squared<T: Number>(x: T) -> T {
    x * x
}

#[device_fn]
fn put(y: &mut [u32], i: u32, value: u32) {
    y[i + 1] = value;
}

#[device_fn]
fn quotient(a: u32, b: u32) -> (u32, u32) {
    (a / b, a % b)
}

#[kernel(threadgroup(N))]
fn sums<T: Float, const N: u32>(x: &[T], out: &mut [T]) {
    let t = thread_position_in_threadgroup().x;
    let mut tile = threadgroup!([T; 64]);
    tile[t] = squared(x[thread_position_in_grid().x]);
    threadgroup_barrier();
    let mut step = N / 2;
    while step > 0 {
        if t < step {
            tile[t] += tile[t + step];
        }
        threadgroup_barrier();
        step /= 2;
    }
    if t == 0 {
        out[threadgroup_position_in_grid().x] = tile[0].sqrt();
    }
}

#[test]
fn generic_kernels_share_memory_between_threads() {
    let x: Vec<f32> = (0..32)
        .map(|i| if i % 8 == 0 { 3.0 } else { 0.0 })
        .collect();
    let mut out = [0.0; 2];
    let found = sums::<f32, 16>::check(Grid::threads(32), &x, &mut out).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(out, [18.0f32.sqrt(); 2]);
    let x: Vec<f64> = x.into_iter().map(f64::from).collect();
    let mut out = [0.0; 4];
    let found = sums::<f64, 8>::check(Grid::threads(32), &x, &mut out).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(out, [3.0; 4]);
}

#[kernel]
fn digits(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let own = thread!([u32; 2]);
    let (tens, ones) = quotient(i * 7, 10);
    own[0] = tens;
    own[1] = ones;
    put(y, i, own[0] + own[1]);
}

#[test]
fn device_functions_are_inlined_and_reports_name_their_calls() {
    let mut y = [0; 4];
    let found = digits::check(Grid::threads(4), &mut y).expect("a run");
    assert_eq!(y, [0, 0, 7, 5]);
    let report = found.to_string();
    assert!(report.contains(&line_of("y[i + 1] = value;")), "{report}");
    let called = line_of("put(y, i, own[0] + own[1]);");
    assert!(report.contains("in `put`, called at "), "{report}");
    assert!(report.contains(called.trim_end_matches(':')), "{report}");
}

#[kernel]
fn histogram(x: &[u32], bins: &mut [u32], largest: &mut [u32]) {
    let value = x[thread_position_in_grid().x];
    atomic_add(&mut bins[value % 4], 1);
    let before = atomic_max(&mut largest[0], value);
    let (was, done) = atomic_compare_exchange(&mut largest[1], 0, 1);
    if done {
        atomic_store(&mut largest[2], was + atomic_load(&bins[9]) + before * 0);
    }
}

#[test]
fn atomics_take_places() {
    let x: Vec<u32> = (0..64).collect();
    let (mut bins, mut largest) = ([0; 10], [0, 0, 9]);
    let grid = Grid::threads(64);
    let found = histogram::check(grid, &x, &mut bins, &mut largest).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(bins[..4], [16; 4]);
    assert_eq!(largest, [63, 1, 0]);
}

#[kernel]
fn weighted(w: &Constants<f32>, up: bool, y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let sign = select(-1.0, 1.0, up);
    let mut best = f32::NEG_INFINITY;
    for j in 0..w.len() {
        best = best.max(w[j] * sign);
    }
    y[i] = if up { best } else { -best };
}

#[test]
fn constant_buffers_truth_values_and_rust_constants() {
    let w = [3.0, -2.0, 8.0];
    for (up, expected) in [(true, 8.0), (false, -2.0)] {
        let mut y = [0.0; 2];
        let found = weighted::check(Grid::threads(2), &w, up, &mut y).expect("a run");
        found.into_result().expect("no findings");
        assert_eq!(y, [expected; 2]);
    }
}

#[kernel]
fn both_sides_leave(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let mut n = i;
    loop {
        if n > 5 {
            break;
        } else {
            n += 1;
            continue;
        }
    }
    y[i] = n;
}

#[test]
fn a_branch_whose_sides_both_leave() {
    let mut y = [0; 8];
    let found = both_sides_leave::check(Grid::threads(8), &mut y).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(y, [6, 6, 6, 6, 6, 6, 6, 7]);
}

#[device_fn]
fn factorial(n: u32) -> u32 {
    if n < 2 {
        return 1;
    }
    n * factorial(n - 1)
}

#[kernel]
fn factorials(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i] = factorial(i);
}

#[device_fn]
fn ping(y: &mut [u32], n: u32) {
    pong(y, n);
}

#[device_fn]
fn pong<T: Integer>(y: &mut [T], n: T) {
    ping_again(n);
    y[n] += n;
}

#[device_fn]
fn ping_again<T: Integer>(n: T) -> (T, [f32; 2]) {
    let (a, b) = ping_again(n + n);
    (a + n, b)
}

#[kernel]
fn pings(y: &mut [u32]) {
    ping(y, 1);
}

#[test]
fn recursion_is_refused_on_the_call() {
    let error = factorials::to_inv().expect_err("recursion").to_string();
    let what = "this calls `factorial` in the midst of `factorial`";
    assert!(error.contains(what), "{error}");
    assert!(error.contains("write a loop"), "{error}");
    assert!(error.contains(&line_of("n * factorial(n - 1)")), "{error}");
    let call = line_of("y[i] = factorial(i);");
    assert!(error.contains(call.trim_end_matches(':')), "{error}");
    assert_eq!(error.matches("kernel.rs:").count(), 2, "{error}");

    let error = pings::to_inv().expect_err("recursion").to_string();
    let line = line_of("let (a, b) = ping_again(n + n);");
    assert!(error.contains(&line), "{error}");
}

#[device_fn]
fn even(n: u32) -> bool {
    if n == 0 { true } else { odd(n - 1) }
}

#[device_fn]
fn odd(n: u32) -> bool {
    if n == 0 { false } else { even(n - 1) }
}

#[kernel]
fn parities(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i] = even(i) as u32;
}

#[test]
fn recursion_through_another_function_is_refused_too() {
    let error = parities::to_inv().expect_err("recursion").to_string();
    assert!(error.contains("this calls `even`"), "{error}");
    let line = line_of("if n == 0 { false } else { even(n - 1) }");
    assert!(error.contains(&line), "{error}");
}

macro_rules! scales {
    ($($module:ident $inner:ident $by:literal;)*) => {$(
        mod $module {
            use invar::prelude::*;

            #[device_fn]
            pub fn scaled(x: f32) -> f32 {
                $inner(x * $by)
            }

            #[device_fn]
            fn same(x: f32) -> f32 {
                x
            }

            #[device_fn]
            fn doubled(x: f32) -> f32 {
                super::double::scaled(x)
            }
        }
    )*};
}
scales! { double same 2.0; sextuple doubled 3.0; }

#[kernel]
fn sextuples(y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = sextuple::scaled(sextuple::scaled(y[i]));
}

#[test]
fn functions_of_one_text_that_call_each_other_are_no_recursion() {
    let mut y = [1.0];
    let found = sextuples::check(Grid::threads(1), &mut y).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(y, [36.0]);
}
