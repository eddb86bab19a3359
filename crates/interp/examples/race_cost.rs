//! What the race detector costs: nanoseconds an access, by how kernels access memory.
//!
//! `cargo run --release -p invar-interp --example race_cost`

#![allow(
    clippy::print_stdout,
    reason = "a program whose only purpose is to print a table"
)]

use std::time::Instant;

use invar_interp::race::{
    Atomic, AtomicAccess, Batch, Config, Declaration, Detector, Lanes, Object, Order, Scope,
    Simdgroup, Site, Space, Spaces,
};

const SIMDGROUP_SIZE: u32 = 32;
const THREADS: u32 = 256;
const N: u32 = 1 << 20;

/// Device buffers 0 and 1, and one array of threadgroup memory.
fn detector(acquire_release: bool) -> Detector {
    let device = Declaration {
        space: Space::Device,
        locations: N,
        writable: true,
    };
    let tile = Declaration {
        space: Space::Threadgroup,
        locations: 1024,
        writable: true,
    };
    let config = Config {
        threadgroups: u64::from(N / THREADS),
        threads_per_threadgroup: THREADS,
        simdgroup_size: SIMDGROUP_SIZE,
        sites: 100,
        acquire_release,
        report_limit: 10,
        memory_limit_bytes: 1 << 32,
    };
    Detector::new(&config, &[device, device, tile]).expect("the grid is small")
}

/// One simdgroup's turn: the detector, the simdgroup, and the number of its first thread.
type Body<'a> = &'a mut dyn FnMut(&mut Detector, Simdgroup, u32);

/// Runs `phases` in every threadgroup with a barrier after each; gives the seconds it took.
fn grid(detector: &mut Detector, repeat: u32, phases: &mut [Body]) -> f64 {
    let start = Instant::now();
    for threadgroup in 0..N / THREADS {
        let handle = detector
            .begin_threadgroup(u64::from(threadgroup), THREADS)
            .expect("it is in the grid");
        for _ in 0..repeat {
            for phase in phases.iter_mut() {
                for s in 0..THREADS / SIMDGROUP_SIZE {
                    let simdgroup = detector.simdgroup(handle, s);
                    let first = threadgroup * THREADS + s * SIMDGROUP_SIZE;
                    phase(detector, simdgroup, first);
                }
                detector
                    .threadgroup_barrier(handle, Spaces::DEVICE_AND_THREADGROUP)
                    .expect("time does not run out");
            }
        }
        detector.end_threadgroup(handle);
    }
    start.elapsed().as_secs_f64()
}

fn batch(simdgroup: Simdgroup, site: u32, object: u32, base: u32, stride: i64) -> Batch<'static> {
    let base = i64::from(base);
    Batch {
        simdgroup,
        site: Site(site),
        object: Object(object),
        lanes: Lanes::Affine {
            mask: 0xffff_ffff,
            base,
            stride,
        },
        width: 1,
    }
}

/// Measures phases after others that only prepare, and prints the best of three runs.
fn row(
    name: &str,
    accesses_each: u32,
    acquire_release: bool,
    repeat: u32,
    prepare: Body,
    phases: &mut [Body],
) {
    let mut best = f64::INFINITY;
    let mut races = 0;
    for _ in 0..3 {
        let mut detector = detector(acquire_release);
        grid(&mut detector, 1, &mut [&mut *prepare]);
        best = best.min(grid(&mut detector, repeat, phases));
        let verdict = detector.finish().expect("within all limits");
        races = verdict.data_races + verdict.equal_stores;
    }
    let accesses = f64::from(N) * f64::from(accesses_each) * f64::from(repeat);
    println!(
        "{name:<58} {:>7.2} ns  {races} races",
        best * 1e9 / accesses
    );
}

fn main() {
    let nothing: Body = &mut |_, _, _| {};
    let local = |first: u32| first % THREADS;
    for acquire_release in [false, true] {
        println!(
            "{}",
            if acquire_release {
                "\nwith acquire or release in the kernel"
            } else {
                "without acquire and release"
            }
        );
        let run = |name: &str, accesses, repeat, prepare: Body, phases: &mut [Body]| {
            row(name, accesses, acquire_release, repeat, prepare, phases);
        };
        run(
            "nothing: threadgroup, its simdgroups and one barrier",
            1,
            1,
            nothing,
            &mut [&mut |_, _, _| {}],
        );
        run(
            "read, contiguous, first time",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| d.read(&batch(s, 0, 0, first, 1))],
        );
        run(
            "read, contiguous, again in the same interval",
            4,
            1,
            nothing,
            &mut [&mut |d, s, first| (0..4).for_each(|_| d.read(&batch(s, 0, 0, first, 1)))],
        );
        run(
            "write, contiguous, first time",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| d.write(&batch(s, 0, 0, first, 1), |_, _| false)],
        );
        run(
            "y[i] = a*x[i] + y[i]",
            3,
            1,
            nothing,
            &mut [&mut |d, s, first| {
                d.read(&batch(s, 0, 0, first, 1));
                d.read(&batch(s, 1, 1, first, 1));
                d.write(&batch(s, 2, 1, first, 1), |_, _| false);
            }],
        );
        run(
            "write, contiguous, in 16 intervals",
            1,
            16,
            nothing,
            &mut [&mut |d, s, first| d.write(&batch(s, 0, 0, first, 1), |_, _| false)],
        );
        run(
            "read, strided by 7",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| d.read(&batch(s, 0, 0, first / 8, 7))],
        );
        run(
            "read by all threadgroups, contiguous, 256 locations",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| d.read(&batch(s, 0, 0, local(first), 1))],
        );
        run(
            "read by all lanes of one location each simdgroup",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| d.read(&batch(s, 0, 0, first / 32, 0))],
        );
        tiles(acquire_release);
        atomics(acquire_release);
    }
}

/// Tiles of threadgroup memory.
fn tiles(acquire_release: bool) {
    let nothing: Body = &mut |_, _, _| {};
    let local = |first: u32| first % THREADS;
    let run = |name: &str, accesses, repeat, prepare: Body, phases: &mut [Body]| {
        row(name, accesses, acquire_release, repeat, prepare, phases);
    };
    run(
        "threadgroup tile: write, barrier, read reversed, barrier",
        2,
        4,
        nothing,
        &mut [
            &mut |d, s, first| d.write(&batch(s, 0, 2, local(first), 1), |_, _| false),
            &mut |d, s, first| d.read(&batch(s, 1, 2, 255 - local(first), -1)),
        ],
    );
    run(
        "threadgroup tile: write, barrier, 16 reads of a row, barrier",
        17,
        1,
        nothing,
        &mut [
            &mut |d, s, first| d.write(&batch(s, 0, 2, local(first), 1), |_, _| false),
            &mut |d, s, first| {
                // As a 16 by 16 matrix product: half a simdgroup reads one element, the other
                // half another, and then a row each.
                let lanes: [u8; 32] = std::array::from_fn(|lane| lane as u8);
                for k in 0..16 {
                    let row = local(first) / 16;
                    let locations: [u32; 32] =
                        std::array::from_fn(|lane| (row + lane as u32 / 16) * 16 + k);
                    d.read(&Batch {
                        simdgroup: s,
                        site: Site(1),
                        object: Object(2),
                        lanes: Lanes::Each {
                            lanes: &lanes,
                            locations: &locations,
                        },
                        width: 1,
                    });
                }
            },
        ],
    );
}

/// Atomics.
fn atomics(acquire_release: bool) {
    let nothing: Body = &mut |_, _, _| {};
    let local = |first: u32| first % THREADS;
    let add = Atomic::relaxed(AtomicAccess::Update);
    let run = |name: &str, accesses, repeat, prepare: Body, phases: &mut [Body]| {
        row(name, accesses, acquire_release, repeat, prepare, phases);
    };
    run(
        "atomic add, contiguous, first time",
        1,
        1,
        nothing,
        &mut [&mut |d, s, first| d.atomic(&batch(s, 0, 0, first, 1), add)],
    );
    run(
        "atomic add, all threads on one location",
        1,
        1,
        nothing,
        &mut [&mut |d, s, _| d.atomic(&batch(s, 0, 0, 0, 0), add)],
    );
    run(
        "atomic add, 256 locations shared by all threadgroups",
        1,
        1,
        nothing,
        &mut [&mut |d, s, first| d.atomic(&batch(s, 0, 0, local(first) * 7 % 256 / 8, 7), add)],
    );
    if acquire_release {
        let release = Atomic {
            access: AtomicAccess::Update,
            order: Order::AcquireRelease,
            scope: Scope::Device,
        };
        run(
            "acq_rel add by one lane a threadgroup, on one location",
            1,
            1,
            nothing,
            &mut [&mut |d, s, first| {
                if first % THREADS == 0 {
                    let lanes = Lanes::Affine {
                        mask: 1,
                        base: 0,
                        stride: 0,
                    };
                    d.atomic(
                        &Batch {
                            lanes,
                            ..batch(s, 0, 0, 0, 0)
                        },
                        release,
                    );
                }
            }],
        );
    }
}
