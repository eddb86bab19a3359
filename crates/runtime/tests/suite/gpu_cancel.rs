//! Cancelling while a GPU is busy. It is alone here, for all tests of a process share the GPU.

#![cfg(feature = "gpu")]

use std::time::{Duration, Instant};

use crate::common::alone;
use invar_ir::text::parse;
use invar_ir::verify;
use invar_runtime::gpu::Gpu;
use invar_runtime::{Arg, Buffer, Device, Dispatch};

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

/// What has not begun is cancelled at once, whatever the GPU is busy with.
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn a_dispatch_that_waits_for_the_gpu_is_cancelled_at_once() {
    if !alone("gpu_cancel::a_dispatch_that_waits_for_the_gpu_is_cancelled_at_once") {
        return;
    }
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return;
    }
    let device = Device::gpu().unwrap();
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = device.compile(&module, "long").unwrap();
    let queue = device.queue();
    let dispatch = |y: &Buffer<u32>, threads: u32, iterations: u32| {
        let args = [Arg::from(y), Arg::from(iterations)];
        let grid = Dispatch::linear(threads, 64);
        queue.dispatch(&program, grid, &args).unwrap()
    };
    let heavy = Buffer::<u32>::zeroed(&device, 1 << 17).unwrap();
    dispatch(&heavy, 64, 10).wait().unwrap();
    let mut memory = vec![0u32; 1 << 20];
    let (cancelled, whole) = invar_runtime::scope(|scope| {
        let lent = scope.lend(&device, &mut memory).unwrap();
        let begun = Instant::now();
        let busy = dispatch(&heavy, 1 << 17, 60_000);
        busy.wait_timeout(Duration::from_millis(50));
        let waiting = dispatch(&lent, 1 << 20, 3_000);
        waiting.wait_timeout(Duration::from_millis(50));
        waiting.cancel();
        let _ended_or_cancelled = waiting.wait();
        let cancelled = begun.elapsed();
        busy.wait().unwrap();
        (cancelled, begun.elapsed())
    });
    // A GPU that is fast has ended both.
    assert!(
        cancelled < (whole / 2).max(Duration::from_millis(500)),
        "{cancelled:?} of {whole:?}"
    );
}
