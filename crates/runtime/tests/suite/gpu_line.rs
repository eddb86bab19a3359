//! Dispatches that go to a GPU without waiting for the one before, and what happens when a GPU fails.

#![cfg(feature = "gpu")]

use std::time::{Duration, Instant};

use invar_ir::text::parse;
use invar_ir::{Rule, Verified, verify};
use invar_runtime::gpu::Gpu;
use invar_runtime::{Arg, Buffer, Device, Dispatch, Program, Queue, scope};

const STEPS: &str = "
kernel @add(%x: device read_write u32, %by: u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = add %v, %by
    store %x[%i], %w
}
kernel @move(%x: device read u32, %y: device write u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %three = const u32 3
    %w = mul %v, %three
    store %y[%i], %w
}";

fn module() -> Verified {
    verify(parse("steps.inv", STEPS).unwrap()).unwrap()
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpu() -> Option<Device> {
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return None;
    }
    Some(Device::gpu().unwrap())
}

const EIGHT: Dispatch = Dispatch {
    grid: invar_runtime::Grid::Threads([8, 1, 1]),
    threadgroup: [8, 1, 1],
};

fn add(queue: &Queue, program: &Program, x: &Buffer<u32>, by: u32) -> invar_runtime::Submission {
    let args = [Arg::from(x), by.into()];
    queue.dispatch(program, EIGHT, &args).unwrap()
}

/// More than the executor lets be unfinished; two buffers, so that each covers only its own uses.
#[test]
fn thousands_of_dispatches_run_in_the_order_submitted() {
    let Some(device) = gpu() else { return };
    let module = module();
    let (step, times) = (
        device.compile(&module, "add").unwrap(),
        device.compile(&module, "move").unwrap(),
    );
    let (x, y) = (
        Buffer::<u32>::zeroed(&device, 8).unwrap(),
        Buffer::<u32>::zeroed(&device, 8).unwrap(),
    );
    let queues = [device.queue(), device.queue()];
    let mut expected = [0u32; 2];
    for i in 0..3000u32 {
        let queue = &queues[i as usize % 2];
        let (from, to) = if i % 3 == 0 { (&x, &y) } else { (&y, &x) };
        if i % 7 == 0 {
            queue
                .dispatch(&times, EIGHT, &[from.into(), to.into()])
                .unwrap();
            let (a, b) = if i % 3 == 0 { (0, 1) } else { (1, 0) };
            expected[b] = expected[a].wrapping_mul(3);
        } else {
            add(queue, &step, &x, i);
            expected[0] = expected[0].wrapping_add(i);
        }
    }
    for queue in &queues {
        queue.wait().unwrap();
    }
    assert_eq!(x.read().unwrap(), [expected[0]; 8]);
    assert_eq!(y.read().unwrap(), [expected[1]; 8]);
}

#[test]
fn a_dispatch_ends_although_the_host_does_not_wait() {
    let Some(device) = gpu() else { return };
    let step = device.compile(&module(), "add").unwrap();
    let x = Buffer::<u32>::zeroed(&device, 8).unwrap();
    let queue = device.queue();
    // The second time after the line's thread has gone.
    for round in 1..=2 {
        let submission = add(&queue, &step, &x, 5);
        let late = Instant::now() + Duration::from_secs(60);
        while !submission.is_done() {
            assert!(Instant::now() < late, "it never ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        let times = submission.wait().unwrap();
        assert!(times.submitted <= times.finished && times.started <= times.finished);
        assert_eq!(x.read().unwrap(), [5 * round; 8]);
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The host, and dispatches that bring their memory along, between those in line.
#[test]
fn what_has_to_wait_for_the_line_waits() {
    let Some(device) = gpu() else { return };
    let module = module();
    let step = device.compile(&module, "add").unwrap();
    let times = device.compile(&module, "move").unwrap();
    let x = Buffer::<u32>::zeroed(&device, 8).unwrap();
    let queue = device.queue();
    let mut lent = [0u32; 8];
    scope(|scope| {
        let z = scope.lend(&device, &mut lent)?;
        for _ in 0..100 {
            add(&queue, &step, &x, 1);
        }
        queue.dispatch(&times, EIGHT, &[(&x).into(), (&z).into()])?;
        queue.dispatch(&times, EIGHT, &[(&z).into(), (&x).into()])?;
        for _ in 0..10 {
            add(&queue, &step, &x, 1);
        }
        x.write(0, &[7])?;
        for _ in 0..10 {
            add(&queue, &step, &x, 1);
        }
        queue.wait()
    })
    .unwrap();
    assert_eq!(lent, [300; 8]);
    let mut expected = [920; 8];
    expected[0] = 17;
    assert_eq!(x.read().unwrap(), expected);
}

#[test]
fn threads_submit_to_one_gpu_at_the_same_time() {
    let Some(device) = gpu() else { return };
    let step = device.compile(&module(), "add").unwrap();
    let shared = Buffer::<u32>::zeroed(&device, 8).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let queue = device.queue();
                let own = Buffer::<u32>::zeroed(&device, 8).unwrap();
                for i in 0..200 {
                    add(&queue, &step, &own, i);
                    let last = add(&queue, &step, &shared, 1);
                    if i % 50 == 0 {
                        last.wait().unwrap();
                        assert_eq!(own.read().unwrap(), [i * (i + 1) / 2; 8]);
                    }
                }
                queue.wait().unwrap();
            });
        }
    });
    assert_eq!(shared.read().unwrap(), [800; 8]);
}

/// Each waits for its own, some for what they submitted before a host access of the same buffer.
#[test]
fn threads_wait_for_their_own_dispatches() {
    let Some(device) = gpu() else { return };
    let step = device.compile(&module(), "add").unwrap();
    let shared = Buffer::<u32>::zeroed(&device, 8).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let queue = device.queue();
                let own = Buffer::<u32>::zeroed(&device, 8).unwrap();
                for i in 0..100u32 {
                    let args = [Arg::from(&own), 1u32.into()];
                    queue.run(&step, EIGHT, &args).unwrap();
                    let args = [Arg::from(&shared), 1u32.into()];
                    queue.run(&step, EIGHT, &args).unwrap();
                    if i % 10 == 0 {
                        assert_eq!(own.read().unwrap(), [i + 1; 8]);
                        assert!(shared.read().unwrap()[0] > i);
                    }
                }
            });
        }
    });
    assert_eq!(shared.read().unwrap(), [400; 8]);
}

#[test]
fn a_dispatch_in_line_can_be_cancelled() {
    let Some(device) = gpu() else { return };
    let step = device.compile(&module(), "add").unwrap();
    let x = Buffer::<u32>::zeroed(&device, 8).unwrap();
    let queue = device.queue();
    let many: Vec<_> = (0..200).map(|_| add(&queue, &step, &x, 1)).collect();
    many[150].cancel();
    for (i, submission) in many.iter().enumerate() {
        match submission.wait() {
            Ok(_) => {}
            Err(error) if i == 150 => assert_eq!(error.rule(), Some(Rule::Cancelled)),
            Err(error) => panic!("{i}: {error}"),
        }
    }
    // It may have run or not (F3); the others have.
    let left = x.read().unwrap();
    assert!(left == [200; 8] || left == [199; 8], "{left:?}");
}

/// More bind groups than are kept, and more values than one batch has room for; half the buffers go at once.
#[test]
fn dispatches_to_hundreds_of_buffers_that_come_and_go() {
    let Some(device) = gpu() else { return };
    let step = device.compile(&module(), "add").unwrap();
    let queue = device.queue();
    let mut kept = Vec::new();
    for i in 0..600u32 {
        let x = Buffer::from_slice(&device, &[i; 8]).unwrap();
        add(&queue, &step, &x, 1000 * i);
        add(&queue, &step, &x, 7);
        if i % 2 == 0 {
            kept.push((x, 1001 * i + 7));
        }
    }
    queue.wait().unwrap();
    for (x, expected) in kept {
        assert_eq!(x.read().unwrap(), [expected; 8]);
    }
}
