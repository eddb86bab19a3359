//! Buffers against protected pages on both sides, and buffers beyond 4 GiB.
#![cfg(unix)]

use std::process::Command;

use invar_conformance::{Guarded, Running, Side};
use invar_ir::{text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch, Element, Program};

use crate::common::hosts;

/// Elements in memory between guard pages: an access beyond that end kills the process.
struct Lent<T: Element> {
    buffer: Buffer<T>,
    // Given back after the buffer.
    memory: Guarded,
}

impl<T: Element> std::ops::Deref for Lent<T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

/// So many elements, after the first ones that are skipped.
fn part<T: Element>(device: &Device, side: Side, skipped: usize, length: usize) -> Lent<T> {
    let (before, bytes) = (skipped * size_of::<T>(), length * size_of::<T>());
    let memory = Guarded::new(&vec![0; before + bytes], side).expect("memory");
    // SAFETY: the memory outlives the buffer.
    let buffer = unsafe {
        let start = memory.start().add(before);
        Buffer::from_raw(device, start.cast(), length, true)
    };
    Lent {
        buffer: buffer.expect("aligned"),
        memory,
    }
}

fn lent<T: Element>(device: &Device, side: Side, length: usize) -> Lent<T> {
    part(device, side, 0, length)
}

fn compile(device: &Device, source: &str) -> Program {
    let module = verify(text::parse("test.inv", source).expect("parsed")).expect("verified");
    let name = module.kernels[0].name.clone();
    device.compile(&module, &name).expect("compiled")
}

/// Loads and stores at `start + i * stride`, as a mathematical integer.
fn strided(ty: &str, index: &str) -> String {
    format!(
        "kernel @k(%x: device read {ty}, %y: device read_write {ty}, %start: {index}, %stride: {index})
            allow(out_of_bounds_loads, out_of_bounds_stores) {{
            %t = thread_position_in_grid x
            %i = cast {index} %t
            %d = mul %i, %stride
            %at = add %start, %d
            %v = load %x[%at]
            %w = load %y[%at]
            %s = add %v, %w
            store %y[%at], %s
        }}"
    )
}

#[test]
fn b1_b2_no_access_leaves_its_buffer_at_either_end() {
    for device in hosts() {
        let queue = device.queue();
        let program = compile(&device, &strided("f32", "i32"));
        for length in [0usize, 1, 3, 15, 16, 17, 63, 64, 100, 257] {
            for side in Side::ALL {
                for (start, stride) in [
                    (0, 1),
                    (-1, 1),
                    (-20, 1),
                    (length as i32 - 1, -1),
                    (3, 1),
                    (0, 2),
                    (-7, 3),
                    (0, 0),
                    (i32::MAX - 5, 1),
                    (i32::MIN, 1),
                    (-64, 64),
                ] {
                    let [x, y] = [0; 2].map(|_| lent::<f32>(&device, side, length));
                    let what = format!("{length} elements, from {start} by {stride}");
                    let _running = Running::named(&what);
                    let (threads, group) = (length as u32 + 40, 48);
                    x.write(0, &(0..length).map(|i| i as f32 + 1.0).collect::<Vec<_>>())
                        .expect("written");
                    y.write(0, &vec![0.5; length]).expect("written");
                    let mut expected = vec![0.5f32; length];
                    // Each element at most once, but for stride 0, where all store the same race.
                    if stride == 0 {
                        continue;
                    }
                    for t in 0..threads as i32 {
                        let at = start.wrapping_add(t.wrapping_mul(stride));
                        if at >= 0 && (at as usize) < length {
                            expected[at as usize] = at as f32 + 1.5;
                        }
                    }
                    let args = [
                        Arg::from(&*x),
                        Arg::from(&*y),
                        Arg::from(start),
                        Arg::from(stride),
                    ];
                    queue
                        .run(&program, Dispatch::linear(threads, group), &args)
                        .expect("it runs");
                    assert_eq!(
                        y.read().expect("read"),
                        expected,
                        "{device:?}, {length} elements, from {start} by {stride}"
                    );
                }
            }
        }
    }
}

#[test]
fn b4_every_width_and_index_type_is_guarded() {
    for device in hosts() {
        let queue = device.queue();
        for index in ["i8", "u8", "i16", "u16", "u32", "i64", "u64"] {
            let program = compile(&device, &strided("u16", index));
            let wrap = |t: i64| -> i128 {
                // start = 250, stride = 3 in the index's own arithmetic
                let value = 250i128 + 3 * i128::from(t);
                match index {
                    "i8" => i128::from(value as i8),
                    "u8" => i128::from(value as u8),
                    "i16" => i128::from(value as i16),
                    "u16" => i128::from(value as u16),
                    _ => value,
                }
            };
            let literal = |v: u64| match index {
                "i8" => Arg::from(v as i8),
                "u8" => Arg::from(v as u8),
                "i16" => Arg::from(v as i16),
                "u16" => Arg::from(v as u16),
                "u32" => Arg::from(v as u32),
                "i64" => Arg::from(v as i64),
                _ => Arg::from(v),
            };
            let length = 301;
            let [x, y] = [0; 2].map(|_| lent::<u16>(&device, Side::End, length));
            let _running = Running::named(index);
            x.write(0, &vec![2; length]).expect("written");
            y.write(0, &vec![1; length]).expect("written");
            let mut expected = vec![1u16; length];
            let threads = 60;
            for t in 0..threads {
                let at = wrap(t);
                if at >= 0 && at < length as i128 {
                    expected[at as usize] = 3;
                }
            }
            let args = [Arg::from(&*x), Arg::from(&*y), literal(250), literal(3)];
            queue
                .run(&program, Dispatch::linear(threads as u32, 60), &args)
                .expect("it runs");
            assert_eq!(y.read().expect("read"), expected, "{device:?}, {index}");
        }
    }
}

#[test]
fn b4_vectors_and_structs_that_end_at_the_page_stay_inside() {
    for device in hosts() {
        let queue = device.queue();
        let program = compile(
            &device,
            "struct @S { a: u8, b: f32x3, c: u16 }
            kernel @k(%s: device read_write @S, %n: u32)
                allow(out_of_bounds_loads, out_of_bounds_stores) {
                %t = thread_position_in_grid x
                %b = load %s[%t].b
                %two = add %b, %b
                store %s[%t].b, %two
                %c = load %s[%t].c
                store %s[%t].c, %c
                %far = add %t, %n
                store %s[%far].b, %two
            }",
        );
        // Elements of 20 bytes: 1, padding, 12, 2, padding.
        let length = 37;
        let Lent {
            buffer,
            memory: _memory,
        } = lent::<[f32; 5]>(&device, Side::End, length);
        buffer.write(0, &vec![[1.0; 5]; length]).expect("written");
        let whole = invar_runtime::ByteBuffer::from(buffer);
        queue
            .run(
                &program,
                Dispatch::linear(length as u32 + 11, 16),
                &[Arg::from(&whole), Arg::from(length as u32)],
            )
            .expect("it runs");
        let mut after = vec![0u8; length * 20];
        whole.read_bytes(0, &mut after).expect("read");
        for element in after.chunks(20) {
            for component in 0..3 {
                let at = 4 + 4 * component;
                assert_eq!(element[at..at + 4], 2.0f32.to_ne_bytes());
            }
        }
    }
}

/// What one dispatch writes, past the caches where it is in whole lines, another reads from its end, at once
/// after it and mostly on the other threads.
#[test]
#[ignore = "a process that another test starts"]
fn streams_to_guarded_buffers() {
    let device = Device::cpu();
    let queue = device.queue();
    let first = "kernel @k(%x: device read f32, %y: device write f32, %s: f32)
        allow(out_of_bounds_loads, out_of_bounds_stores) {
        %i = thread_position_in_grid x
        %v = load %x[%i]
        %w = mul %v, %s
        store %y[%i], %w
    }";
    let second = "kernel @k(%y: device read f32, %z: device write f32, %n: u32)
        allow(out_of_bounds_loads, out_of_bounds_stores) {
        %i = thread_position_in_grid x
        %one = const u32 1
        %last = sub %n, %one
        %at = sub %last, %i
        %v = load %y[%at]
        store %z[%i], %v
    }";
    let [first, second] = [first, second].map(|source| compile(&device, source));
    const MOST: usize = (9 << 20) + 37;
    let value = |i: usize| (i % 8191) as f32;
    for length in [1, 15, 16, 64, 65, 1000, 70_001, MOST] {
        let (front, back) = (Side::Start, Side::End);
        for (side, skipped) in [(front, 0), (front, 1), (front, 4), (front, 16), (back, 0)] {
            if length == MOST && skipped > 1 {
                continue;
            }
            let _running = Running::named(&format!("{length} elements, {skipped} skipped"));
            let [x, y, z] = [0; 3].map(|_| part::<f32>(&device, side, skipped, length));
            x.write(0, &(0..length).map(value).collect::<Vec<_>>())
                .expect("written");
            for buffer in [&y, &z] {
                buffer.write(0, &vec![-1.0; length]).expect("written");
            }
            // More threads than elements: the last store nothing.
            let grid = Dispatch::linear(length as u32 + 70, 64);
            let args = [Arg::from(&*x), Arg::from(&*y), Arg::from(3.0f32)];
            queue.dispatch(&first, grid, &args).expect("it fits");
            let args = [Arg::from(&*y), Arg::from(&*z), Arg::from(length as u32)];
            queue.run(&second, grid, &args).expect("it runs");
            let (found, mirrored) = (y.read().expect("read"), z.read().expect("read"));
            for i in 0..length {
                let expected = value(i) * 3.0;
                let at = format!("element {i} of {length}, {skipped} skipped");
                assert_eq!(found[i], expected, "{at}");
                assert_eq!(mirrored[length - 1 - i], expected, "{at}");
            }
        }
    }
}

#[test]
fn o3_what_goes_past_the_caches_is_all_there_and_stays_inside() {
    for bytes in ["0", "65536"] {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "guards::streams_to_guarded_buffers"])
            .env("INVAR_STREAM_BYTES", bytes)
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "from {bytes} bytes on: {text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a skip says why")]
fn a_buffer_of_more_than_four_gibibytes_works() {
    let length = (5usize << 30) / 4;
    for device in hosts() {
        if device.capabilities().name == "checked" {
            // Its checkers work on copies of all buffers.
            println!("skipped on the checked device: it copies the buffer");
            continue;
        }
        // Only the pages that are touched take memory.
        let x = match Buffer::<u32>::zeroed(&device, length) {
            Ok(x) => x,
            Err(error) => {
                println!("skipped: {error}");
                continue;
            }
        };
        let program = compile(
            &device,
            "kernel @k(%x: device read_write u32, %start: u64) {
                %t = thread_position_in_grid x
                %wide = cast u64 %t
                %at = add %start, %wide
                %one = const u32 1
                %v = add %t, %one
                store %x[%at], %v
                %n = buffer_length %x
                %zero = const u32 0
                %first = eq %t, %zero
                if %first {
                    %length = cast u32 %n
                    store %x[%zero], %length
                }
            }",
        );
        // The last thread is one beyond the end.
        let start = length as u64 - 99;
        device
            .queue()
            .run(
                &program,
                Dispatch::linear(100, 64),
                &[Arg::from(&x), Arg::from(start)],
            )
            .expect("it runs");
        let mut last = [0; 99];
        x.read_into(length - 99, &mut last).expect("within");
        let expected: Vec<u32> = (1..=99).collect();
        assert_eq!(last[..], expected);
        // Nothing wrapped around to where the low 32 bits of the byte address point.
        let mut low = [0; 99];
        x.read_into((length - 99) & ((1 << 30) - 1), &mut low)
            .expect("within");
        assert_eq!(low, [0; 99]);
        let mut first = [0];
        x.read_into(0, &mut first).expect("within");
        assert_eq!(first, [length as u32]);
    }
}

/// Sums of `x[(i * a + k * b + c)]` over `k`: bounds checked in front of the loop, or in it.
fn summing(ty: &str) -> String {
    format!(
        "kernel @k(%x: device read {ty}, %y: device write {ty}, %n: i32, %a: i32, %b: i32, %c: i32)
            allow(out_of_bounds_loads) {{
            %t = thread_position_in_grid x
            %i = cast i32 %t
            %zero = const i32 0
            %one = const i32 1
            %none = const {ty} 0
            %from = mul %i, %a
            %start = add %from, %c
            %sum = for %k = %zero to %n step %one carry(%s = %none) {{
                %step = mul %k, %b
                %at = add %start, %step
                %v = load %x[%at]
                %next = add %s, %v
                yield %next
            }}
            store %y[%t], %sum
        }}"
    )
}

fn sums_at_both_ends<T>(ty: &str, from: fn(u32) -> T)
where
    T: Element + PartialEq + std::fmt::Debug,
    for<'a> &'a Buffer<T>: Into<Arg<'a>>,
{
    let threads = 37u32;
    for device in hosts() {
        let queue = device.queue();
        let program = compile(&device, &summing(ty));
        let y = Buffer::<T>::zeroed(&device, threads as usize).expect("a buffer");
        for length in [0usize, 1, 5, 16, 63, 200] {
            for side in Side::ALL {
                let x = lent::<T>(&device, side, length);
                let values: Vec<u32> = (0..length as u32).map(|i| i % 5 + 1).collect();
                x.write(0, &values.iter().map(|v| from(*v)).collect::<Vec<T>>())
                    .expect("written");
                // Along the threads, across them, down from the end, the same for all, and before the start.
                for (n, a, b, c) in [
                    (9, 1, 37, 0),
                    (9, 9, 1, 0),
                    (9, -1, -37, length as i32 - 1),
                    (30, 0, 1, 0),
                    (9, 1, 1, -20),
                    (9, 1, 1, i32::MAX - 20),
                ] {
                    let _running =
                        Running::named(&format!("{length} of {ty}, {n} by {a}, {b} from {c}"));
                    let args = [
                        (&*x).into(),
                        (&y).into(),
                        Arg::from(n),
                        Arg::from(a),
                        Arg::from(b),
                        Arg::from(c),
                    ];
                    queue
                        .run(&program, Dispatch::linear(threads, 32), &args)
                        .expect("it runs");
                    let expected: Vec<T> = (0..threads as i32)
                        .map(|i| {
                            let sum = (0..n).map(|k: i32| {
                                let at = i.wrapping_mul(a).wrapping_add(c);
                                let at = usize::try_from(at.wrapping_add(k.wrapping_mul(b)));
                                at.ok().and_then(|at| values.get(at)).copied().unwrap_or(0)
                            });
                            from(sum.sum())
                        })
                        .collect();
                    let found = y.read().expect("read");
                    assert_eq!(
                        found, expected,
                        "{device:?}, {length} of {ty}, {n} by {a}, {b} from {c}"
                    );
                }
            }
        }
    }
}

#[test]
fn b1_a_loop_beyond_its_buffer_reads_zeros_and_touches_nothing() {
    sums_at_both_ends::<f32>("f32", |n| n as f32);
    sums_at_both_ends::<u64>("u64", u64::from);
    sums_at_both_ends::<u16>("u16", |n| n as u16);
}

#[test]
fn b3_atomics_beyond_either_end_do_nothing() {
    let source = "
        kernel @k(%x: device read_write u32, %by: i32)
            allow(out_of_bounds_loads, out_of_bounds_stores) {
            %t = thread_position_in_grid x
            %i = cast i32 %t
            %at = add %i, %by
            %one = const u32 1
            %old = atomic_add %x[%at], %one relaxed device
        }";
    for device in hosts() {
        let queue = device.queue();
        let program = compile(&device, source);
        for length in [0usize, 1, 17, 64] {
            for side in Side::ALL {
                let x = lent::<u32>(&device, side, length);
                x.write(0, &vec![7; length]).expect("written");
                for by in [-30, 0, 30, i32::MIN, i32::MAX - 10] {
                    let _running = Running::named(&format!("atomics on {length} elements by {by}"));
                    let args = [Arg::from(&*x), Arg::from(by)];
                    queue
                        .run(&program, Dispatch::linear(100, 64), &args)
                        .expect("it runs");
                }
                // Threads 0 to 99 reach an element from 0, from -30 and from 30.
                let reached = |e: i32| (0..100).contains(&(e + 30)) as u32 + 1 + u32::from(e >= 30);
                let expected: Vec<u32> = (0..length as i32).map(|e| 7 + reached(e)).collect();
                assert_eq!(x.read().expect("read"), expected, "{device:?}, {length}");
            }
        }
    }
}
