//! Kernels on a GPU of which it is proved first that their accesses are in bounds: dispatches of which that holds run
//! code without guards, all others as ever.

#![cfg(feature = "gpu")]

use invar_ir::text::parse;
use invar_ir::verify;
use invar_runtime::gpu::{Gpu, GpuArg, GpuProgram, Shape};
use invar_runtime::{Arg, Buffer, CompileOptions, Device, Dispatch};

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpu() -> Option<Gpu> {
    let gpu = Gpu::open(0).ok();
    if gpu.is_none() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
    }
    gpu
}

fn compile(gpu: &Gpu, source: &str, prove: bool) -> GpuProgram {
    let module = verify(parse("test.inv", source).expect("parsed")).expect("verified");
    let options = CompileOptions {
        prove,
        ..CompileOptions::default()
    };
    let name = &module.kernels[0].name;
    gpu.compile(&module, name, &options).expect("compiled")
}

/// Runs a kernel of a buffer that is read, one that is written, which begins as sevens, and a number; gives what is
/// written, and whether it ran without guards.
fn run(
    gpu: &Gpu,
    program: &GpuProgram,
    x: &[u32],
    length: usize,
    n: u32,
    dispatch: Dispatch,
) -> (Vec<u32>, bool) {
    let bytes = |all: &[u32]| -> Vec<u8> { all.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let from = gpu.buffer_from(&bytes(x)).expect("memory");
    let to = gpu.buffer_from(&bytes(&vec![7; length])).expect("memory");
    let before = Device::dispatches_without_checks();
    let n = [n.into()];
    let args = [
        GpuArg::Buffer(&from),
        GpuArg::Buffer(&to),
        GpuArg::Scalar(&n),
    ];
    gpu.dispatch(program, dispatch, &args).expect("it runs");
    let without = Device::dispatches_without_checks() - before;
    let words = to.read().expect("read");
    let words = words.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w));
    (words.collect(), without == 1)
}

const COPY: &str = "kernel @copy(%x: device read u32, %y: device write u32, %n: u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = add %v, %n
    store %y[%i], %w
}";

#[test]
fn launches_within_the_conditions_run_without_guards_and_others_with_them() {
    let Some(gpu) = gpu() else {
        return;
    };
    let x: Vec<u32> = (0..200).collect();
    // As they are, and with every dispatch coarsened that can be: in whole workgroups, and what is left.
    for coarse_from in [u64::MAX, 1] {
        gpu.coarsen_from(coarse_from);
        let [program, guarded] = [true, false].map(|prove| compile(&gpu, COPY, prove));
        // Beyond one end or the other: 0 (B1), and nothing (B2).
        let launches = [
            (100, 100, true),
            (101, 100, true),
            (64, 64, true),
            (200, 200, true),
            (99, 100, false),
            (1, 200, false),
            (400, 200, true),
            (400, 201, false),
            (300, 400, false),
        ];
        for (length, grid, fulfils) in launches {
            for threadgroup in [16, 64] {
                let dispatch = Dispatch::linear(grid, threadgroup);
                let (y, without) = run(&gpu, &program, &x, length, 3, dispatch);
                assert_eq!(without, fulfils, "{length} {grid} {threadgroup}");
                let one = |i: usize| match i < grid as usize {
                    true => x.get(i).copied().unwrap_or(0) + 3,
                    false => 7,
                };
                assert_eq!(y, (0..length).map(one).collect::<Vec<u32>>());
                let ever = run(&gpu, &guarded, &x, length, 3, dispatch);
                assert_eq!(ever, (y, false), "{length} {grid} {threadgroup}");
            }
        }
    }
}

fn shape(guards: bool) -> Shape {
    Shape {
        threadgroup: [64, 1, 1],
        lengths: Vec::new(),
        full: true,
        threadgroups_per_workgroup: 1,
        threads_per_invocation: 1,
        unroll_rows: false,
        fixed_scalars: Vec::new(),
        msl: false,
        guards,
    }
}

#[test]
fn code_without_guards_looks_at_no_length() {
    let Some(gpu) = gpu() else {
        return;
    };
    let program = compile(&gpu, COPY, true);
    for guards in [true, false] {
        let source = program.source(&shape(guards)).expect("written");
        assert_eq!(source.guards, guards);
        for length in ["i < constants.x__length", "i < constants.y__length"] {
            assert_eq!(source.text.contains(length), guards, "{}", source.text);
        }
    }
}

/// Each thread brings an element, and takes the one at the other end of its threadgroup.
const REVERSED: &str = "kernel @reversed(%x: device read u32, %y: device write u32, %n: u32)
    threadgroup(64) {
    %tile = alloc threadgroup u32[64]
    %i = thread_position_in_grid x
    %t = thread_index_in_threadgroup
    %v = load %x[%i]
    store %tile[%t], %v
    barrier threadgroup
    %size = threads_per_threadgroup x
    %one = const u32 1
    %last = sub %size, %one
    %other = sub %last, %t
    %w = load %tile[%other]
    %u = add %w, %n
    store %y[%i], %u
}";

/// Threads outside the grid, which may have any index, go along to the barrier.
#[test]
fn guards_stay_where_threads_outside_the_grid_go_along() {
    let Some(gpu) = gpu() else {
        return;
    };
    let program = compile(&gpu, REVERSED, true);
    let x: Vec<u32> = (0..200).collect();
    for (grid, is_full) in [(128, true), (100, false)] {
        let (y, without) = run(&gpu, &program, &x, 200, 5, Dispatch::linear(grid, 64));
        assert_eq!(without, is_full, "{grid}");
        let one = |i: u32| match i < grid {
            true => {
                let first = i / 64 * 64;
                first + (grid - first).min(64) - 1 - (i - first) + 5
            }
            false => 7,
        };
        assert_eq!(y, (0..200).map(one).collect::<Vec<u32>>());
    }
    let (y, without) = run(&gpu, &program, &x, 127, 5, Dispatch::linear(128, 64));
    assert!(!without, "one element is missing");
    assert_eq!(y.len(), 127);
}

/// What lies behind the loop is in bounds for the loop has come to its end.
const BEHIND_A_LOOP: &str = "kernel @behind(%x: device read u32, %y: device write u32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %end = loop carry(%k = %zero) {
        %far = ge %k, %n
        if %far { break %k }
        %next = add %k, %one
        yield %next
    }
    %at = sub %n, %end
    %here = add %i, %at
    %v = load %x[%here]
    store %y[%i], %v
}";

#[test]
fn a_driver_that_ends_loops_early_gets_guards() {
    let Some(gpu) = gpu() else {
        return;
    };
    let program = compile(&gpu, BEHIND_A_LOOP, true);
    let x: Vec<u32> = (0..64).collect();
    let (y, without) = run(&gpu, &program, &x, 64, 100, Dispatch::linear(64, 64));
    assert_eq!(without, !gpu.features().ends_loops);
    assert_eq!(y, x);
    let source = program.source(&shape(false)).expect("written");
    assert_eq!(source.guards, gpu.features().ends_loops);
}

#[test]
fn the_device_decides_as_the_gpu_does() {
    if gpu().is_none() {
        return;
    }
    let device = Device::gpu().expect("there is one");
    let module = verify(parse("test.inv", COPY).expect("parsed")).expect("verified");
    let options = CompileOptions {
        prove: true,
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    };
    let program = device
        .compile_with(&module, "copy", &options)
        .expect("compiled");
    let x = Buffer::from_slice(&device, &[5u32; 100]).expect("a buffer");
    let y = Buffer::<u32>::zeroed(&device, 100).expect("a buffer");
    for (grid, fulfils) in [(100, true), (101, false)] {
        let before = Device::dispatches_without_checks();
        let args = [Arg::from(&x), Arg::from(&y), Arg::from(grid)];
        let dispatch = Dispatch::linear(grid, 64);
        device
            .queue()
            .run(&program, dispatch, &args)
            .expect("it runs");
        assert_eq!(y.read().expect("read"), [5 + grid; 100]);
        let without = Device::dispatches_without_checks() - before;
        assert_eq!(without == 1, fulfils, "{grid}");
    }
}
