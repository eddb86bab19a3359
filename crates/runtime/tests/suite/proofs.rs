//! Kernels of which it is proved first that their accesses are in bounds: dispatches of which that holds run without
//! bounds checks, all others as ever.
#![cfg(unix)]

use invar_conformance::{Guarded, Side};
use invar_ir::{Rule, text, verify};
use invar_runtime::{Arg, Buffer, CompileOptions, Device, Dispatch, Program};

use crate::common::hosts;

fn compile(device: &Device, source: &str) -> Result<Program, invar_runtime::Error> {
    let module = verify(text::parse("test.inv", source).expect("parsed")).expect("verified");
    let options = CompileOptions {
        prove: true,
        ..CompileOptions::default()
    };
    device.compile_with(&module, &module.kernels[0].name, &options)
}

/// Runs a kernel of a buffer that is read, one that is written and a number, between guard pages; gives what is
/// written, and whether it ran without checks. It begins as sevens.
fn run(program: &Program, x: &[f32], length: usize, n: u32, grid: u32) -> (Vec<f32>, bool) {
    let device = program.device();
    let before = Device::dispatches_without_checks();
    let mut written = Vec::new();
    for side in Side::ALL {
        let bytes = |all: &[f32]| {
            all.iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let from = Guarded::new(&bytes(x), side).expect("memory");
        let to = Guarded::new(&bytes(&vec![7.0; length]), side).expect("memory");
        // SAFETY: the memory outlives the buffers.
        let [from_buffer, to_buffer] = unsafe {
            [(&from, x.len()), (&to, length)].map(|(memory, length)| {
                let start = memory.start().cast();
                Buffer::<f32>::from_raw(device, start, length, true).expect("aligned")
            })
        };
        let args = [Arg::from(&from_buffer), Arg::from(&to_buffer), Arg::from(n)];
        let dispatch = Dispatch::linear(grid, 64);
        device
            .queue()
            .run(program, dispatch, &args)
            .expect("it runs");
        written = to_buffer.read().expect("read");
    }
    let without = Device::dispatches_without_checks() - before;
    assert!(without == 0 || without == 2, "{without} of two");
    (written, without == 2)
}

const COPY: &str = "kernel @copy(%x: device read f32, %y: device write f32, %n: u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    store %y[%i], %v
}";

#[test]
fn launches_within_the_conditions_run_without_checks_and_others_with_them() {
    let program = compile(&Device::cpu(), COPY).expect("compiled");
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    // Beyond one end or the other: 0 (B1), and nothing (B2).
    let launches = [
        (100, 100, true),
        (101, 100, true),
        (64, 64, true),
        (99, 100, false),
        (400, 200, true),
        (400, 201, false),
    ];
    for (length, grid, fulfils) in launches {
        let (y, without) = run(&program, &x, length, 0, grid);
        assert_eq!(without, fulfils, "{length} {grid}");
        let one = |i: usize| match i < grid as usize {
            true => x.get(i).copied().unwrap_or(0.0),
            false => 7.0,
        };
        assert_eq!(y, (0..length).map(one).collect::<Vec<f32>>());
    }
}

/// A load that is the same for all threads moves in front of what decides whether it is made.
const UNDER_A_CONDITION: &str =
    "kernel @last(%x: device read f32, %y: device write f32, %n: u32) threadgroup(64) {
    %t = thread_position_in_grid x
    %one = const u32 1
    %some = ge %n, %one
    if %some {
        %last = sub %n, %one
        %end = const u32 8
        %step = const u32 1
        %zero = const f32 0.0
        %begin = const u32 0
        %sum = for %k = %begin to %end step %step carry(%acc = %zero) {
            %v = load %x[%last]
            %k2 = cast f32 %k
            %w = fma %v, %k2, %acc
            yield %w
        }
        store %y[%t], %sum
    }
}";

#[test]
fn what_moves_to_where_nobody_asked_for_it_keeps_its_check() {
    let program = compile(&Device::cpu(), UNDER_A_CONDITION).expect("compiled");
    let x = [1.0, 2.0, 3.0];
    let (y, without) = run(&program, &x, 64, 3, 64);
    assert!(without, "it is proved");
    assert_eq!(y, [84.0; 64]);
    // The element before the first is beyond a guard page.
    let (y, without) = run(&program, &x, 64, 0, 64);
    assert!(without, "no thread loads anything");
    assert_eq!(y, [7.0; 64]);
}

/// What is the same for a threadgroup is loaded in front of all its threads, also where none of them comes to it.
const AFTER_RETURNS: &str =
    "kernel @early(%x: device read f32, %y: device write f32, %n: u32) threadgroup(64) {
    %i = thread_position_in_grid x
    %g = threadgroup_position_in_grid x
    %done = ge %i, %n
    if %done {
        return
    }
    %v = load %x[%g]
    store %y[%i], %v
}";

#[test]
fn what_is_loaded_for_a_threadgroup_keeps_its_check() {
    let program = compile(&Device::cpu(), AFTER_RETURNS).expect("compiled");
    let (y, without) = run(&program, &[5.0], 1, 1, 64_000);
    assert!(without, "no thread loads anything beyond");
    assert_eq!(y, [5.0]);
}

/// The first lane is off, and its index, which wraps, is where the row begins.
const OFF_AT_FIRST: &str = "kernel @before(%x: device read f32, %y: device write f32, %n: u32) {
    %i = thread_position_in_grid x
    %one = const u32 1
    %some = ge %i, %one
    if %some {
        %at = sub %i, %one
        %v = load %x[%at]
        store %y[%at], %v
    }
}";

#[test]
fn lanes_that_are_off_have_any_index() {
    let program = compile(&Device::cpu(), OFF_AT_FIRST).expect("compiled");
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let (y, without) = run(&program, &x, 100, 0, 100);
    assert!(without, "it is proved");
    assert_eq!(y[..99], x[..99]);
    assert_eq!(y[99], 7.0);
}

/// Its iterations are divided into stretches of threadgroups, where no proof sees that no two of them meet.
const BY_STRIDES: &str =
    "kernel @strides(%x: device read f32, %y: device read_write f32, %n: u32) {
    %first = thread_position_in_grid x
    %step = threads_per_grid x
    for %i = %first to %n step %step {
        %v = load %x[%i]
        %w = load %y[%i]
        %sum = add %v, %w
        store %y[%i], %sum
    }
}";

/// As it is, and as other languages write it.
const BY_STRIDES_IN_A_LOOP: &str =
    "kernel @strides(%x: device read f32, %y: device read_write f32, %n: u32) {
    %first = thread_position_in_grid x
    %step = threads_per_grid x
    %end = loop carry(%i = %first) {
        %far = ge %i, %n
        if %far { break %i }
        %v = load %x[%i]
        %w = load %y[%i]
        %sum = add %v, %w
        store %y[%i], %sum
        %next = add %i, %step
        yield %next
    }
}";

#[test]
fn loops_by_strides_run_without_checks() {
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    for source in [BY_STRIDES, BY_STRIDES_IN_A_LOOP] {
        let program = compile(&Device::cpu(), source).expect("compiled");
        // Full threadgroups, and a last one that is not: stretches, and strides.
        for grid in [64, 128, 100] {
            for (n, length, fulfils) in [(200, 200, true), (77, 77, true), (200, 199, false)] {
                let (y, without) = run(&program, &x, length, n, grid);
                assert_eq!(without, fulfils, "{n} {length} {grid}: {source}");
                let one = |i: usize| 7.0 + if i < n as usize { x[i] } else { 0.0 };
                assert_eq!(y, (0..length).map(one).collect::<Vec<f32>>());
            }
        }
    }
}

#[test]
fn where_buffers_say_where_accesses_are_they_are_checked() {
    let source = "kernel @gather(%x: device read f32, %y: device write f32, %n: u32)
        requires(each %v of %index: %v < length(%x), grid.x <= length(%y)) {
        %i = thread_position_in_grid x
        %j = load %index[%i]
        %v = load %x[%j]
        store %y[%i], %v
    }";
    let source = source.replace("%n: u32)", "%index: device read u32)");
    let program = compile(&Device::cpu(), &source).expect("compiled");
    let device = program.device();
    let x = Buffer::from_slice(device, &[1.0f32; 64]).expect("a buffer");
    let y = Buffer::<f32>::zeroed(device, 64).expect("a buffer");
    let index = Buffer::from_slice(device, &[1u32 << 30; 64]).expect("a buffer");
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(&index)];
    // Nobody looks whether the promise holds here, and nothing is read beyond the buffer.
    device
        .queue()
        .run(&program, Dispatch::linear(64, 64), &args)
        .expect("it runs");
    assert_eq!(y.read().expect("read"), [0.0; 64]);
}

#[test]
fn other_devices_have_no_use_for_a_proof() {
    for device in hosts() {
        let outcome = compile(&device, COPY);
        let name = &device.capabilities().name;
        if name == "cpu" {
            outcome.expect("it compiles");
            continue;
        }
        let error = outcome.expect_err("it is refused");
        assert_eq!(error.rule(), Some(Rule::UnsupportedFeature));
        let sentence = format!("a proof saves nothing on the device `{name}`");
        assert!(error.to_string().contains(&sentence), "{error}");
    }
}
