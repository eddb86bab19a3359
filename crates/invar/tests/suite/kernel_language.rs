//! What the bodies of Rust kernels can say beyond scalars and plain loops.

use invar::prelude::*;

#[kernel]
fn vectors(x: &[[f32; 3]], turn: [[f32; 3]; 3], up: [f32; 3], out: &mut [[f32; 4]]) {
    let i = thread_position_in_grid().x;
    let v = turn * x[i];
    let mut w = 2.0 * v.normalize() - up / 4.0;
    w.x += 1.0;
    w.z = w.y;
    let inside = all(w.xy() < [10.0, 10.0]);
    let bits = as_type::<[u32; 3]>(w) & [0x7fff_ffff; 3];
    let magnitude = as_type::<[f32; 3]>(bits);
    out[i] = magnitude.extend(if inside { w[1] } else { 0.0 });
    out[i].w *= 2.0;
}

#[test]
fn vectors_and_matrices_have_operators_components_and_functions() {
    let x = [[3.0, 0.0, 4.0], [0.0, 0.0, -2.0]];
    // Columns: x to y, y to z, z to x.
    let turn = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
    let mut out = [[0.0f32; 4]; 2];
    let found = vectors::check(Grid::threads(2), &x, turn, [0.0, 8.0, 0.0], &mut out);
    found.expect("a run").into_result().expect("no findings");
    // x' = (4, 3, 0) / 5 * 2 - (0, 2, 0) = (1.6, -0.8, 0), then (2.6, -0.8, -0.8).
    let near = |a: [f32; 4], b: [f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near(out[0], [2.6, 0.8, 0.8, -1.6]), "{out:?}");
    assert!(near(out[1], [1.0, 2.0, 2.0, -4.0]), "{out:?}");
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Inner {
    weights: [f32; 5],
    kind: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Outer {
    position: [f32; 3],
    inner: Inner,
    pair: Pair,
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Pair {
    a: i32,
    b: i32,
}

#[device_fn]
fn swapped(p: Pair) -> Pair {
    Pair { a: p.b, b: p.a }
}

#[kernel]
fn structs(x: &mut [Outer], pairs: &mut [Pair]) {
    let i = thread_position_in_grid().x;
    x[i].position.y = x[i].inner.weights[i + 1];
    x[i].inner.weights[0] += 1.0;
    x[i].inner.kind = i;
    let mut p = swapped(x[i].pair);
    p.a *= 10;
    x[i].pair = p;
    pairs[i] = Pair { b: 7, ..p };
}

#[kernel]
fn taken_apart(x: &mut [Outer], out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let Outer {
        position,
        pair: mut kept,
        ..
    } = x[i];
    let [a, mut b, _] = position * 2.0;
    let Pair { a: first, b: _ } = kept;
    kept.b = first;
    b += a;
    x[i].pair = kept;
    out[i] = b + first as f32;
}

#[test]
fn structs_and_vectors_are_taken_apart() {
    let inner = Inner {
        weights: [0.0; 5],
        kind: 0,
    };
    let pair = Pair { a: 5, b: 6 };
    let position = [1.0, 2.0, 3.0];
    let mut x = [Outer {
        position,
        inner,
        pair,
    }];
    let mut out = [0.0];
    let found = taken_apart::check(Grid::threads(1), &mut x, &mut out).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(out, [11.0]);
    assert_eq!(x[0].pair, Pair { a: 5, b: 5 });
}

#[test]
fn structs_are_read_and_written_by_field_and_as_a_whole() {
    let one = Outer {
        position: [1.0, 2.0, 3.0],
        inner: Inner {
            weights: [0.5, 1.5, 2.5, 3.5, 4.5],
            kind: 9,
        },
        pair: Pair { a: 1, b: 2 },
    };
    let (mut x, mut pairs) = ([one; 2], [Pair { a: 0, b: 0 }; 2]);
    let found = structs::check(Grid::threads(2), &mut x, &mut pairs).expect("a run");
    found.into_result().expect("no findings");
    for (i, got) in x.iter().enumerate() {
        let mut right = one;
        right.position[1] = one.inner.weights[i + 1];
        right.inner.weights[0] = 1.5;
        right.inner.kind = i as u32;
        right.pair = Pair { a: 20, b: 1 };
        assert_eq!(*got, right);
    }
    assert_eq!(pairs, [Pair { a: 20, b: 7 }; 2]);
    let device = Device::default().expect("a device");
    let (mut y, mut pairs) = (
        device.buffer_from(&[one; 2]).expect("a buffer"),
        device.buffer_zeroed::<Pair>(2).expect("a buffer"),
    );
    let launched = structs::launch(&device, Grid::threads(2), &mut y, &mut pairs);
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(y.read().expect("structs"), x);
}

#[function_constant(3)]
const SCALE: u32 = 10;

#[function_constant(4)]
const SHIFT: u32;

#[kernel]
fn scaled(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i] = i * SCALE + SHIFT;
}

#[test]
fn function_constants_are_set_when_a_kernel_is_prepared() {
    let device = Device::default().expect("a device");
    let mut y = device.buffer_zeroed::<u32>(3).expect("a buffer");
    for (constants, right) in [
        (vec![SHIFT.set(1)], [1, 11, 21]),
        (vec![SHIFT.set(0), SCALE.set(2)], [0, 2, 4]),
    ] {
        let prepared = scaled::prepare_with(&device, &constants).expect("a kernel");
        let launched = scaled::launch(&prepared, Grid::threads(3), &mut y);
        launched.expect("a launch").wait().expect("a run");
        assert_eq!(y.read().expect("numbers"), right);
    }
    let error = scaled::prepare(&device)
        .err()
        .expect("no value")
        .to_string();
    assert!(error.contains("SHIFT"), "{error}");
    let unknown = fill::prepare_with(&device, &[SCALE.set(1)]).err();
    assert!(unknown.expect("no such").to_string().contains("SCALE"));
}

#[kernel]
fn fill(y: &mut [u32]) {
    y[thread_position_in_grid().x] = 1;
}

#[kernel]
fn jumps(out: &mut [u32]) {
    let n = thread_position_in_grid().x;
    let mut count = 0;
    'rows: for i in 0..n {
        let mut j = 0;
        'columns: while j < n {
            j += 1;
            for k in 0..n {
                count += 1;
                if k == 3 {
                    continue 'columns;
                }
                if k + j + i == 9 {
                    continue 'rows;
                }
                if count > 150 {
                    break 'rows;
                }
            }
            count += 100;
        }
        count += 1000;
    }
    out[n] = count;
}

fn jumps_on_host(n: u32) -> u32 {
    let mut count = 0;
    'rows: for i in 0..n {
        let mut j = 0;
        'columns: while j < n {
            j += 1;
            for k in 0..n {
                count += 1;
                if k == 3 {
                    continue 'columns;
                }
                if k + j + i == 9 {
                    continue 'rows;
                }
                if count > 150 {
                    break 'rows;
                }
            }
            count += 100;
        }
        count += 1000;
    }
    count
}

#[test]
fn labels_name_the_loop_to_leave() {
    let mut out = [0; 16];
    let found = jumps::check(Grid::threads(16), &mut out).expect("a run");
    found.into_result().expect("no findings");
    let right: Vec<u32> = (0..16).map(jumps_on_host).collect();
    assert_eq!(out[..], right);
}

/// The first place of a number, or `len`.
#[device_fn]
fn find(x: &[u32], wanted: u32, len: u32) -> u32 {
    for i in 0..len {
        for bit in 0..2 {
            if x[i] + bit * 100 == wanted {
                return i * 2 + bit;
            }
        }
    }
    len * 2
}

#[device_fn]
fn grade(n: u32) -> u32 {
    if n < 2 {
        return 1;
    }
    let half = n / 2;
    if half == 2 {
        return 22;
    } else if half > 3 {
        loop {
            if half > 0 {
                return half;
            }
        }
    }
    half * 100
}

#[device_fn]
fn mark(out: &mut [u32], i: u32) {
    if i % 2 == 0 {
        return;
    }
    out[i] += 1000;
}

/// How far a number is from the first multiple of five, whose type nothing but the result tells.
#[device_fn]
fn steps_to_five(n: u32) -> (u32, bool) {
    let mut steps = 0;
    while steps < 4 {
        if (n + steps) % 5 == 0 {
            return (steps, true);
        }
        steps += 1;
    }
    (steps, false)
}

#[kernel]
fn fives(out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let (steps, is_near) = steps_to_five(i);
    out[i] = steps * 2 + is_near as u32;
}

#[test]
fn what_a_device_function_gives_has_the_type_of_its_result() {
    let mut out = [0; 6];
    let found = fives::check(Grid::threads(6), &mut out).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(out, [1, 8, 7, 5, 3, 1]);
}

#[kernel]
fn found(x: &[u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    out[i] = find(x, i * 10, 4) + grade(i) * 10;
    mark(out, i);
}

#[test]
fn device_functions_return_from_anywhere() {
    let x = [30, 0, 20, 40];
    let mut out = [0; 16];
    let report = found::check(Grid::threads(16), &x, &mut out).expect("a run");
    report.into_result().expect("no findings");
    let grade = |n: u32| match n {
        0 | 1 => 1,
        4 | 5 => 22,
        n if n / 2 > 3 => n / 2,
        n => n / 2 * 100,
    };
    let right: Vec<u32> = (0..16)
        .map(|i| {
            let places = (0..8).find(|p| x[p / 2] + (*p as u32 % 2) * 100 == i * 10);
            places.unwrap_or(8) as u32 + grade(i) * 10 + if i % 2 == 0 { 0 } else { 1000 }
        })
        .collect();
    assert_eq!(out[..], right);
}

#[kernel(threadgroup(32), simdgroup(32), strict)]
fn tiles(a: &[f32], b: &[f32], c: &mut [f32]) {
    let left = simdgroup_load(&a[0], 8u32);
    let right = simdgroup_load_transposed(&b[0], 8u32);
    let mut sum = simdgroup_matrix(1.0);
    for _ in 0..2 {
        sum = simdgroup_multiply_accumulate(left, right, sum);
    }
    simdgroup_store(sum, &mut c[0], 8u32);
}

#[test]
fn simdgroup_matrices_are_values_that_loops_carry() {
    let a: Vec<f32> = (0..64).map(|i| (i % 5) as f32).collect();
    let b: Vec<f32> = (0..64).map(|i| (i % 7) as f32).collect();
    let mut c = [0.0; 64];
    let found = tiles::check(Grid::threads(32), &a, &b, &mut c).expect("a run");
    found.into_result().expect("no findings");
    for (i, got) in c.iter().enumerate() {
        let product: f32 = (0..8).map(|k| a[i / 8 * 8 + k] * b[i % 8 * 8 + k]).sum();
        assert_eq!(*got, 1.0 + 2.0 * product);
    }
    let text = tiles::to_inv().expect("a kernel");
    assert!(text.contains("simdgroup(32) strict"), "{text}");
}

#[kernel(threadgroup(64), simdgroup(32))]
fn moved(x: &[u32], scratch: &mut ThreadgroupArray<u32>, y: &mut [u32]) {
    let t = thread_index_in_threadgroup();
    if simdgroup_index_in_threadgroup() == 0 {
        let event = async_copy_2d(&mut scratch[0], 8u32, &x[8], 16u32, 8u32, 8u32);
        wait(event);
    }
    threadgroup_barrier();
    y[t] = scratch[t];
    if t < 4 {
        let four = load_vector::<4, _>(&scratch[t * 4]);
        store_vector(&mut y[64 + t * 4], four.wzyx());
    }
    if t == 63 {
        copy(&mut y[80], &x[3], 2u32);
    }
}

#[test]
fn copies_and_threadgroup_memory_of_any_length() {
    let x: Vec<u32> = (0..256).collect();
    let mut y = [0; 82];
    let found = moved::check(Grid::threads(64), &x, 64, &mut y).expect("a run");
    found.into_result().expect("no findings");
    let row = |t: u32| t / 8 * 16 + 8 + t % 8;
    let mut right: Vec<u32> = (0..64).map(row).collect();
    right.extend((0..16).map(|i| row(i / 4 * 4 + 3 - i % 4)));
    right.extend([3, 4]);
    assert_eq!(y[..], right);
}

#[kernel]
fn handed_over(data: &mut [u32], flag: &mut [u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    if i == 0 {
        data[0] = 42;
        atomic_store_explicit(&mut flag[0], 1, Order::Release, Scope::Device);
    } else if atomic_load_explicit(&flag[0], Order::Acquire, Scope::Device) == 1 {
        out[0] = data[0];
    }
}

#[test]
fn atomics_have_orders_and_scopes() {
    let text = handed_over::to_inv().expect("a kernel");
    assert!(text.contains("release"), "{text}");
    assert!(text.contains("acquire"), "{text}");
    let (mut data, mut flag, mut out) = ([0], [0], [0]);
    let found = handed_over::check(Grid::threads(2), &mut data, &mut flag, &mut out);
    found.expect("a run").into_result().expect("no findings");
}

const SQUARES: [u32; 6] = [0, 1, 4, 9, 16, 25];
const AXIS: [f32; 3] = [0.0, 1.0, 0.0];

#[kernel(allow(out_of_bounds_loads))]
fn looked_up(out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let table = constant!(SQUARES);
    out[i] = table[i] + AXIS.y as u32;
}

#[test]
fn rust_constants_are_tables_and_vectors() {
    let mut out = [9; 8];
    let found = looked_up::check(Grid::threads(8), &mut out).expect("a run");
    found.into_result().expect("loads out of bounds are meant");
    assert_eq!(out, [1, 2, 5, 10, 17, 26, 1, 1]);
}

#[kernel]
fn negative(out: &mut [i32]) {
    let i = thread_position_in_grid().x as i32 - 2;
    out[i + 2] = match i {
        -2 => 5,
        -1..=0 => {
            if i == 0 {
                return;
            }
            6
        }
        _ => 7,
    };
}

#[test]
fn match_on_negative_numbers_and_sides_that_leave() {
    let mut out = [0; 4];
    let found = negative::check(Grid::threads(4), &mut out).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(out, [5, 6, 0, 7]);
}

#[kernel]
fn says(x: &[f32], n: u32) {
    let i = thread_position_in_grid().x;
    println!("thread {} of {}", i, n);
    if x[i] > 1.0 {
        println!("x is {}, {:x}", x[i], as_type::<u32>(x[i]));
    }
    for j in 0..i {
        println!("{{{}}} {}", [i, j], 2.5f32);
    }
    println!();
}

#[test]
fn println_gives_the_host_a_line() {
    let device = Device::default().expect("a device");
    let x = device.buffer_from(&[0.5f32, 2.0]).expect("a buffer");
    let queue = device.queue().quiet();
    let done = says::launch(&queue, Grid::threads(2), &x, 2).expect("it fits");
    let lines = &done.printed().expect("it prints").lines;
    let of = |thread: u32| -> Vec<&str> {
        let lines = lines.iter().filter(|line| line.thread == [thread, 0, 0]);
        lines.map(|line| &*line.text).collect()
    };
    assert_eq!(of(0), ["thread 0 of 2", ""]);
    let second = ["thread 1 of 2", "x is 2.0, 40000000", "{(1, 0)} 2.5", ""];
    assert_eq!(of(1), second);
}

#[device_fn]
fn place_of_last(x: &[f32], n: u32) -> u32 {
    let mut at = 0u32;
    for i in 0..n {
        if x[i] > 1.5 {
            let at = i + 10;
            if at > 0 {
                return at;
            }
        }
        at += 1;
    }
    at
}

#[kernel]
fn names_again(x: &[f32], n: u32, out: &mut [f32]) {
    let mut sum = 0.0;
    for i in 0..n {
        let next = sum + x[i];
        if x[i] < 0.0 {
            let sum = next;
            out[1] = sum;
            continue;
        }
        sum = next;
    }
    out[0] = sum;
    let mut a = 0u32;
    loop {
        a += 1;
        let a = 100.0f32;
        if (n as f32) < a {
            break;
        }
    }
    out[2] = a as f32;
    let mut c = 0u32;
    'outer: while c < 10 {
        c += 1;
        match c {
            3 => {
                for c in 0..2u32 {
                    if c == 1 {
                        continue 'outer;
                    }
                }
            }
            c => {
                let (c, d) = (c + 100, 1u32);
                if d == 1 && c > 104 {
                    break 'outer;
                }
            }
        }
        c += 1;
    }
    out[3] = c as f32;
    out[4] = place_of_last(x, n) as f32;
}

#[test]
fn what_leaves_a_loop_gives_the_variables_around_and_not_those_of_their_names() {
    let mut out = [0.0f32; 5];
    let found = names_again::check(Grid::threads(1), &[1.0, -5.0, 2.0], 3, &mut out);
    found.expect("a run").into_result().expect("no findings");
    assert_eq!(out, [3.0, -4.0, 1.0, 6.0, 12.0]);
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Keyword {
    r#type: u32,
    r#in: u32,
}

#[kernel]
fn keywords(x: &mut [Keyword]) {
    let i = thread_position_in_grid().x;
    x[i].r#type = x[i].r#in + 1;
    let mut one = x[i];
    one.r#in = one.r#type * 2;
    x[i] = one;
}

#[test]
fn fields_are_called_by_words_of_rust() {
    let mut x = [Keyword { r#type: 0, r#in: 4 }];
    let found = keywords::check(Grid::threads(1), &mut x).expect("a run");
    found.into_result().expect("no findings");
    assert_eq!(
        x,
        [Keyword {
            r#type: 5,
            r#in: 10
        }]
    );
}

mod first {
    use invar::prelude::*;
    #[function_constant(1)]
    pub const COUNT: u32 = 5;
}

mod second {
    use invar::prelude::*;
    #[function_constant(2)]
    pub const COUNT: u32 = 7;
}

#[kernel]
fn two_counts(out: &mut [u32]) {
    out[0] = first::COUNT;
    out[1] = second::COUNT;
}

#[test]
fn two_function_constants_of_one_name_are_refused() {
    let checked = two_counts::check(Grid::threads(1), &mut [0, 0]);
    let error = checked.err().expect("an error");
    let why = "two function constants are called `COUNT`, with the numbers 1 and 2";
    assert!(error.to_string().contains(why), "{error}");
}
