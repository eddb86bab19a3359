//! When dispatches ran on a GPU: by its own clock, where it has one.

#![cfg(feature = "gpu")]

use std::time::{Duration, Instant};

use crate::common::alone;
use invar_ir::text::parse;
use invar_ir::verify;
use invar_runtime::gpu::Gpu;
use invar_runtime::{Arg, Buffer, Device, Dispatch, Program, Timestamps, scope};

/// Takes as long as it is told.
const WORK: &str = "
kernel @work(%x: device read_write u32, %iterations: u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %zero = const u32 0
    %one = const u32 1
    %last = for %n = %zero to %iterations step %one carry(%sum = %v) {
        %square = mul %sum, %sum
        %next = add %square, %n
        yield %next
    }
    store %x[%i], %last
}";

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpu() -> Option<(Device, Program)> {
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return None;
    }
    let device = Device::gpu().unwrap();
    let module = verify(parse("work.inv", WORK).unwrap()).unwrap();
    let program = device.compile(&module, "work").unwrap();
    Some((device, program))
}

const EIGHT: Dispatch = Dispatch {
    grid: invar_runtime::Grid::Threads([8, 1, 1]),
    threadgroup: [8, 1, 1],
};

/// Each after the one before, or in one batch with it.
fn follow_each_other(all: &[Timestamps]) {
    for times in all {
        assert!(times.submitted <= times.started && times.started <= times.finished);
    }
    for pair in all.windows(2) {
        let together = pair[0].finished == pair[1].finished;
        assert!(together || pair[0].finished <= pair[1].started, "{pair:?}");
    }
}

#[test]
fn what_does_more_takes_longer() {
    if !alone("gpu_times::what_does_more_takes_longer") {
        return;
    }
    let Some((device, program)) = gpu() else {
        return;
    };
    let x = Buffer::from_slice(&device, &[3u32; 512]).unwrap();
    let queue = device.queue();
    let took = |iterations: u32| {
        let args = [Arg::from(&x), iterations.into()];
        let before = Instant::now();
        let times = queue
            .run(&program, Dispatch::linear(512, 8), &args)
            .unwrap();
        assert!(before <= times.started && times.finished <= Instant::now());
        times.duration()
    };
    took(1);
    // The least of several, for the machine does other things too.
    let least = |iterations| (0..5).map(|_| took(iterations)).min().unwrap();
    // Mesa's driver that computes on the processor ends loops after 65,535 iterations.
    let (little, much) = (least(60), least(60_000));
    assert!(much > Duration::from_micros(100), "{much:?}");
    assert!(much > 5 * little, "{much:?}, {little:?}");
}

#[test]
fn dispatches_follow_each_other() {
    if !alone("gpu_times::dispatches_follow_each_other") {
        return;
    }
    let Some((device, program)) = gpu() else {
        return;
    };
    let x = Buffer::from_slice(&device, &[3u32; 8]).unwrap();
    let queue = device.queue();
    let start = Instant::now();
    let waited: Vec<Timestamps> = (0..100u32)
        .map(|i| {
            let args = [Arg::from(&x), (i * 10).into()];
            queue.run(&program, EIGHT, &args).unwrap()
        })
        .collect();
    follow_each_other(&waited);
    let all: Duration = waited.iter().map(Timestamps::duration).sum();
    assert!(all <= start.elapsed());

    // Of so many different values a batch has no room, and goes there in parts.
    let submitted: Vec<_> = (0..3000u32)
        .map(|i| {
            let args = [Arg::from(&x), i.into()];
            queue.dispatch(&program, EIGHT, &args).unwrap()
        })
        .collect();
    let queued: Vec<Timestamps> = submitted.iter().map(|s| s.wait().unwrap()).collect();
    follow_each_other(&queued);
    assert!(waited.last().unwrap().finished <= queued[0].started);
}

/// Of what a dispatch takes along only its own time counts, not the way there and back.
#[test]
fn the_way_there_does_not_count() {
    if !alone("gpu_times::the_way_there_does_not_count") {
        return;
    }
    let Some((device, program)) = gpu() else {
        return;
    };
    let mut much = vec![1u32; 1 << 24];
    let start = Instant::now();
    let times = scope(|scope| {
        let much = scope.lend(&device, &mut much)?;
        device
            .queue()
            .run(&program, EIGHT, &[Arg::from(&much), 1u32.into()])
    })
    .unwrap();
    let all = start.elapsed();
    assert!(times.duration() * 2 < all, "{times:?} of {all:?}");
    assert_eq!(much[..10], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_device_says_whose_clock_it_is() {
    let Some((device, _)) = gpu() else { return };
    let gpu = Gpu::open(0).unwrap();
    let module = verify(parse("work.inv", WORK).unwrap()).unwrap();
    let program = gpu.compile(&module, "work", &Default::default()).unwrap();
    let x = gpu.buffer(32).unwrap();
    let none = [1u32.into()];
    let args = [
        invar_runtime::gpu::GpuArg::Buffer(&x),
        invar_runtime::gpu::GpuArg::Scalar(&none),
    ];
    let measured = gpu.measure(&program, EIGHT, &args, 3);
    assert_eq!(device.capabilities().own_clock, measured.is_ok());
    assert!(!Device::default().unwrap().capabilities().own_clock);
}
