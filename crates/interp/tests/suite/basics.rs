//! The machine's first duties: order inside a threadgroup, barriers, control flow, bounds.

use invar_interp::{Arg, Dispatch, Grid, Options, run};
use invar_ir::{
    Access, AtomicOp, Dim, KernelBuilder, Module, Order, Place, Scalar, Scope, Spaces, Verified,
    verify,
};

fn bytes<T: Copy, const N: usize>(list: &[T], f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    list.iter().flat_map(|v| f(*v)).collect()
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_ne_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

fn from_u32s(list: &[u32]) -> Vec<u8> {
    bytes(list, u32::to_ne_bytes)
}

fn finish(k: KernelBuilder) -> Verified {
    verify(k.finish().unwrap()).unwrap()
}

/// Every seed and simdgroup size that a test should try.
fn settings() -> impl Iterator<Item = Options> {
    (0..4).flat_map(|seed| {
        [4, 8, 32, 128].map(|size| Options {
            seed,
            simdgroup_size: Some(size),
            step_limit: 10_000_000,
            ..Options::default()
        })
    })
}

fn reverse() -> Verified {
    let mut k = KernelBuilder::new(Module::default(), "reverse");
    let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    let tile = k.alloc_threadgroup("tile", Scalar::F32, 64);
    let t = k.thread_index_in_threadgroup();
    let v = k.load(Place::element(x, t));
    k.store(Place::element(tile, t), v);
    k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
    let last = k.const_u32(63);
    let r = k.sub(last, t);
    let w = k.load(Place::element(tile, r));
    k.store(Place::element(x, t), w);
    finish(k)
}

#[test]
fn a_barrier_lets_every_thread_see_the_others_stores() {
    let module = reverse();
    for options in settings() {
        let mut x = bytes(
            &(0..64u8).map(f32::from).collect::<Vec<_>>(),
            f32::to_ne_bytes,
        );
        let expected: Vec<u8> = x.chunks(4).rev().flatten().copied().collect();
        let mut args = [Arg::Buffer(&mut x)];
        run(
            &module,
            "reverse",
            &Dispatch::linear(64, 64),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        assert_eq!(x, expected, "{options:?}");
    }
}

#[test]
fn edge_threadgroups_are_smaller_and_numbered_by_their_own_size() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let out = k.buffer("out", Access::Write, Scalar::U32);
    let x = k.thread_position_in_grid(Dim::X);
    let y = k.thread_position_in_grid(Dim::Y);
    let w = k.threads_per_grid(Dim::X);
    let row = k.mul(y, w);
    let i = k.add(row, x);
    let number = k.thread_index_in_threadgroup();
    k.store(Place::element(out, i), number);
    let module = finish(k);
    let dispatch = Dispatch {
        grid: Grid::Threads([5, 3, 1]),
        threadgroup: [4, 2, 1],
    };
    let mut expected = Vec::new();
    for y in 0..3 {
        for x in 0..5 {
            let width = if x < 4 { 4 } else { 1 };
            expected.push(x % 4 + y % 2 * width);
        }
    }
    for options in settings() {
        let mut args = [Arg::zeros(15 * 4)];
        let outcome = run(&module, "k", &dispatch, &mut args, &options, &mut []).unwrap();
        assert_eq!(outcome.threadgroups, 4);
        assert_eq!(u32s(args[0].bytes()), expected);
    }
}

#[test]
fn an_empty_grid_runs_nothing() {
    let module = reverse();
    let mut args = [Arg::zeros(4)];
    let outcome = run(
        &module,
        "reverse",
        &Dispatch::linear(0, 64),
        &mut args,
        &Options::default(),
        &mut [],
    );
    assert_eq!(outcome.unwrap().steps, 0);
}

/// Collatz: nested loops, breaks and ifs that each thread takes its own way through.
#[test]
fn threads_leave_loops_at_their_own_time() {
    let mut k = KernelBuilder::new(Module::default(), "collatz");
    let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
    let i = k.thread_position_in_grid(Dim::X);
    let n = k.load(Place::element(x, i));
    let zero = k.const_u32(0);
    let one = k.const_u32(1);
    let two = k.const_u32(2);
    let three = k.const_u32(3);
    let count = k.loop_(&[n, zero], |k, carried| {
        let (n, steps) = (carried[0], carried[1]);
        let done = k.eq(n, one);
        k.if_(done, |k| k.break_(&[n, steps]));
        let bit = k.rem(n, two);
        let odd = k.eq(bit, one);
        let next = k.add(steps, one);
        k.if_(odd, |k| {
            let a = k.mul(n, three);
            let b = k.add(a, one);
            k.continue_(&[b, next]);
        });
        let half = k.div(n, two);
        vec![half, next]
    })[1];
    k.store(Place::element(x, i), count);
    let module = finish(k);
    let steps = |mut n: u32| {
        let mut count = 0;
        while n != 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            count += 1;
        }
        count
    };
    let start: Vec<u32> = (1..=75).collect();
    let expected: Vec<u32> = start.iter().map(|n| steps(*n)).collect();
    for options in settings() {
        let mut x = from_u32s(&start);
        let mut args = [Arg::Buffer(&mut x)];
        run(
            &module,
            "collatz",
            &Dispatch::linear(75, 32),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        assert_eq!(u32s(&x), expected);
    }
}

#[test]
fn out_of_bounds_loads_give_zero_and_stores_do_nothing() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
    let out = k.buffer("out", Access::ReadWrite, Scalar::U32);
    let at = k.buffer("at", Access::Read, Scalar::I64);
    let i = k.thread_position_in_grid(Dim::X);
    let index = k.load(Place::element(at, i));
    let v = k.load(Place::element(x, index));
    k.store(Place::element(out, i), v);
    let seven = k.const_u32(7);
    k.store(Place::element(x, index), seven);
    let module = finish(k);
    let at = [-1, 4, 1, i64::MIN, i64::MAX, 1 << 32, (1 << 62) + 1, 3];
    for options in settings() {
        let mut args = [
            Arg::OwnedBuffer(from_u32s(&[10, 11, 12, 13])),
            Arg::zeros(32),
            Arg::OwnedBuffer(bytes(&at, i64::to_ne_bytes)),
        ];
        run(
            &module,
            "k",
            &Dispatch::linear(8, 8),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        assert_eq!(u32s(args[1].bytes()), [0, 0, 11, 0, 0, 0, 0, 13]);
        assert_eq!(u32s(args[0].bytes()), [10, 7, 12, 7]);
    }
}

#[test]
fn a_message_passes_from_a_later_threadgroup_to_an_earlier_one() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let flag = k.buffer("flag", Access::ReadWrite, Scalar::U32);
    let data = k.buffer("data", Access::ReadWrite, Scalar::U32);
    let group = k.threadgroup_position_in_grid(Dim::X);
    let zero = k.const_u32(0);
    let one = k.const_u32(1);
    let last = k.const_u32(5);
    let sender = k.eq(group, last);
    k.if_else(
        sender,
        |k| {
            let value = k.const_u32(42);
            k.store(Place::element(data, zero), value);
            k.atomic(
                AtomicOp::Store,
                Place::element(flag, zero),
                &[one],
                Order::Release,
                Scope::Device,
            );
        },
        |k| {
            k.loop_(&[], |k, _| {
                let seen = k.atomic(
                    AtomicOp::Load,
                    Place::element(flag, zero),
                    &[],
                    Order::Acquire,
                    Scope::Device,
                )[0];
                let arrived = k.eq(seen, one);
                k.if_(arrived, |k| k.break_(&[]));
                vec![]
            });
            let v = k.load(Place::element(data, zero));
            let at = k.add(group, one);
            k.store(Place::element(data, at), v);
        },
    );
    let module = finish(k);
    for options in settings() {
        let mut args = [Arg::zeros(4), Arg::zeros(24)];
        run(
            &module,
            "k",
            &Dispatch::linear(6, 1),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        assert_eq!(u32s(args[1].bytes()), [42; 6]);
    }
}

#[test]
fn a_loop_without_end_meets_the_step_limit() {
    let mut k = KernelBuilder::new(Module::default(), "forever");
    k.loop_(&[], |_, _| vec![]);
    let module = finish(k);
    let options = Options {
        step_limit: 1000,
        ..Options::default()
    };
    let error = run(
        &module,
        "forever",
        &Dispatch::linear(1, 1),
        &mut [],
        &options,
        &mut [],
    );
    let error = error.unwrap_err();
    assert_eq!(error.0[0].rule.name(), "step-limit");
    let options = Options {
        time_limit: Some(std::time::Duration::from_millis(20)),
        ..Options::default()
    };
    let error = run(
        &module,
        "forever",
        &Dispatch::linear(1, 1),
        &mut [],
        &options,
        &mut [],
    );
    assert_eq!(error.unwrap_err().0[0].rule.name(), "deadline-exceeded");
}
