//! Failures of dispatches whose submissions are not asked: the next to use what they wrote is told.

use std::time::Duration;

use invar_ir::text::parse;
use invar_ir::{Rule, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch, Error, Program, Queue, Submission};

/// Stores 7, and with `n` from 1 on never ends.
const STUCK: &str = "kernel @stuck(%y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %seven = const u32 7
    store %y[%i], %seven
    %ends = eq %n, %zero
    loop {
        if %ends { break }
        store %y[%i], %seven
    }
}";

const COPY: &str = "kernel @copies(%x: device read u32, %y: device read_write u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    store %y[%i], %v
}";

/// A device whose dispatches may take a moment, and programs of both kernels.
struct Fixture {
    device: Device,
    queue: Queue,
    stuck: Program,
    copies: Program,
}

const GRID: Dispatch = Dispatch {
    grid: invar_runtime::Grid::Threads([8, 1, 1]),
    threadgroup: [8, 1, 1],
};

impl Fixture {
    fn new(device: Device) -> Fixture {
        let compile = |source: &str, name: &str| {
            let module = verify(parse("k.inv", source).unwrap()).unwrap();
            device.compile(&module, name).unwrap()
        };
        let (stuck, copies) = (compile(STUCK, "stuck"), compile(COPY, "copies"));
        let limit = Some(Duration::from_millis(50));
        let queue = device.queue().with_time_limit(limit);
        Fixture {
            device,
            queue,
            stuck,
            copies,
        }
    }

    fn buffer(&self) -> Buffer<u32> {
        Buffer::zeroed(&self.device, 8).unwrap()
    }

    /// Never ends by itself.
    fn fail(&self, y: &Buffer<u32>) -> Submission {
        let args = [Arg::from(y), Arg::from(1u32)];
        self.queue.dispatch(&self.stuck, GRID, &args).unwrap()
    }

    fn copy(&self, x: &Buffer<u32>, y: &Buffer<u32>) -> Submission {
        let args = [Arg::from(x), Arg::from(y)];
        let queue = self.device.queue();
        queue.dispatch(&self.copies, GRID, &args).unwrap()
    }
}

/// The CPU where it is there, and the checked device.
fn devices() -> [Fixture; 2] {
    [Device::default().unwrap(), Device::checked()].map(Fixture::new)
}

#[track_caller]
fn told<T>(result: Result<T, Error>) {
    let error = result.err().expect("somebody should be told");
    assert_eq!(error.rule(), Some(Rule::DeadlineExceeded), "{error}");
    let said = error.to_string();
    assert!(said.contains("its result was not asked for"), "{said}");
}

#[test]
fn who_reads_is_told_once() {
    for on in devices() {
        let (mut y, other) = (on.buffer(), on.buffer());
        drop(on.fail(&y));
        assert_eq!(other.read().unwrap(), [0; 8]);
        told(y.read());
        assert_eq!(y.read().unwrap(), [7; 8]);
        drop(on.fail(&y));
        told(y.read_into(3, &mut [0]));
        drop(on.fail(&y));
        told(y.as_slice());
        drop(on.fail(&y));
        told(y.as_mut_slice());
        assert_eq!(y.as_slice().unwrap(), [7; 8]);
    }
}

#[test]
fn who_writes_is_told_and_may_write_then() {
    for on in devices() {
        let y = on.buffer();
        drop(on.fail(&y));
        told(y.write(0, &[1]));
        y.write(0, &[1]).unwrap();
        assert_eq!(y.read().unwrap(), [1, 7, 7, 7, 7, 7, 7, 7]);
    }
}

#[test]
fn who_asks_a_dispatch_that_used_it_is_told() {
    for on in devices() {
        let (y, z) = (on.buffer(), on.buffer());
        let first = on.fail(&y);
        let second = on.copy(&y, &z);
        told(second.wait());
        told(second.wait());
        assert_eq!(z.read().unwrap(), [7; 8]);
        let own = first.wait().unwrap_err().to_string();
        assert!(!own.contains("was not asked for"), "{own}");
        // Also when it had long ended.
        drop(on.fail(&y));
        y.bytes().wait();
        told(on.copy(&y, &z).wait());
    }
}

#[test]
fn what_is_computed_from_it_is_void_too() {
    for on in devices() {
        let (y, z, w) = (on.buffer(), on.buffer(), on.buffer());
        drop(on.fail(&y));
        drop(on.copy(&y, &z));
        drop(on.copy(&z, &w));
        told(w.read());
        assert_eq!(w.read().unwrap(), [7; 8]);
        assert_eq!(z.read().unwrap(), [7; 8]);
    }
}

#[test]
fn who_was_told_is_not_told_again() {
    for on in devices() {
        let (y, z) = (on.buffer(), on.buffer());
        let first = on.fail(&y);
        let second = on.copy(&y, &z);
        first.wait().unwrap_err();
        second.wait().unwrap();
        assert_eq!(y.read().unwrap(), [7; 8]);
        on.queue.wait().unwrap_err();
        drop(on.fail(&y));
        on.queue.wait().unwrap_err();
        on.queue.wait().unwrap();
        assert_eq!(y.read().unwrap(), [7; 8]);
    }
}

#[test]
fn each_failure_counts_for_itself() {
    for on in devices() {
        let y = on.buffer();
        let all: Vec<Submission> = (0..6).map(|_| on.fail(&y)).collect();
        for submission in &all[..5] {
            submission.wait().unwrap_err();
        }
        told(y.read());
        y.read().unwrap();
    }
}

#[test]
fn who_cancels_knows() {
    for on in devices() {
        let y = on.buffer();
        let args = [Arg::from(&y), Arg::from(1u32)];
        let submission = on.device.queue().dispatch(&on.stuck, GRID, &args).unwrap();
        submission.cancel();
        drop(submission);
        y.read().unwrap();
    }
}

/// Lent memory has no buffer that stays: it is known by its addresses.
#[test]
fn memory_that_is_lent_again_is_the_same() {
    for on in devices() {
        let mut memory = [0u32; 8];
        let mut next = [0u32; 8];
        invar_runtime::scope(|scope| {
            let y = scope.lend(&on.device, &mut memory).unwrap();
            drop(on.fail(&y));
        });
        invar_runtime::scope(|scope| {
            let y = scope.lend_read(&on.device, &memory).unwrap();
            let z = scope.lend(&on.device, &mut next).unwrap();
            told(on.copy(&y, &z).wait());
        });
        assert_eq!(next, [7; 8]);
    }
}

/// What a buffer was told of goes with its memory, which the next may get.
#[test]
fn a_fresh_buffer_has_no_past() {
    for on in devices() {
        for _ in 0..4 {
            let y = on.buffer();
            assert_eq!(y.read().unwrap(), [0; 8]);
            drop(on.fail(&y));
            y.bytes().wait();
        }
    }
}
