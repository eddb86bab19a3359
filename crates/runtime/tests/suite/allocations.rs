//! A dispatch allocates nothing after the first few.
#![cfg(feature = "cpu")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::alone;
use invar_ir::{text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_dispatch_allocates_nothing_after_the_first() {
    if !alone("allocations::a_dispatch_allocates_nothing_after_the_first") {
        return;
    }
    let device = Device::cpu();
    let source = "
        kernel @scale(%x: device read f32, %y: device write f32, %by: f32x3, %tile: threadgroup f32) {
            %i = thread_position_in_grid x
            %v = load %x[%i]
            store %tile[%i], %v
            barrier threadgroup [threadgroup]
            %w = load %tile[%i]
            %zero = const u32 0
            %f = extract %by, %zero
            %s = mul %w, %f
            store %y[%i], %s
        }";
    let module = verify(text::parse("scale.inv", source).expect("parsed")).expect("verified");
    let program = device.compile(&module, "scale").expect("compiled");
    let queue = device.queue();
    let x = Buffer::from_slice(&device, &[1.5f32; 64]).expect("a buffer");
    let y = Buffer::<f32>::zeroed(&device, 64).expect("a buffer");
    let args = [
        Arg::from(&x),
        Arg::from(&y),
        Arg::vector([2.0f32, 0.0, 0.0]),
        Arg::ThreadgroupLength(64),
    ];
    let grid = Dispatch::linear(64, 64);
    let mut counts = Vec::new();
    for _ in 0..50 {
        let before = COUNT.load(Ordering::Relaxed);
        queue.run(&program, grid, &args).expect("it runs");
        let submission = queue.dispatch(&program, grid, &args).expect("it fits");
        submission.wait().expect("it runs");
        counts.push(COUNT.load(Ordering::Relaxed) - before);
    }
    assert_eq!(y.read().expect("read"), [3.0; 64]);
    assert!(counts[10..].iter().all(|n| *n == 0), "{counts:?}");
}
