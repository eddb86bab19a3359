//! Arrays of Rust kernels: in structs that are values, with lengths of any integer type, and lent to functions.

use invar::prelude::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, KernelData)]
#[repr(C)]
struct Cell {
    kind: [u32; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, KernelData)]
#[repr(C)]
struct State {
    words: [u32; 6],
    count: u32,
    cells: [Cell; 5],
    one: [u32; 1],
    rows: [[u32; 3]; 6],
}

const FRESH: [u32; 6] = [1, 2, 3, 4, 5, 6];

#[device_fn]
fn stirred(state: State, by: u32) -> State {
    let mut new = state;
    new.words[by % 6] += new.words[5];
    new.words[0] = by;
    new.cells[1].kind.x = new.one[0];
    new
}

#[kernel]
fn whole(states: &mut [State], out: &mut [u32], n: u32) {
    let mut state = states[0];
    let before = state;
    for i in 0..n {
        if i == 1 {
            state = stirred(state, n);
        }
        state.rows[i].y += i;
        out[i] = state.words[i];
    }
    let swap = [state.cells[1], before.cells[0], state.cells[2]];
    state.cells[3] = swap[n - 3];
    let row = state.rows[n];
    out[7] = row.y;
    out[8] = before.words[n];
    out[9] = state.words[n + 100];
    states[1] = state;
    states[2] = State {
        words: FRESH,
        count: n,
        cells: before.cells,
        one: [n],
        rows: [[n; 3]; 6],
    };
    states[3] = State {
        count: 1,
        ..states[2]
    };
}

#[allow(clippy::needless_range_loop, reason = "as the kernel says it")]
fn whole_on_host(states: &mut [State], out: &mut [u32], n: usize) {
    let mut state = states[0];
    let before = state;
    for i in 0..n {
        if i == 1 {
            state.words[n % 6] += state.words[5];
            state.words[0] = n as u32;
            state.cells[1].kind[0] = state.one[0];
        }
        state.rows[i][1] += i as u32;
        out[i] = state.words[i];
    }
    let swap = [state.cells[1], before.cells[0], state.cells[2]];
    state.cells[3] = swap[n - 3];
    out[7] = state.rows[n][1];
    out[8] = before.words[n];
    states[1] = state;
    let count = n as u32;
    states[2] = State {
        words: FRESH,
        count,
        cells: before.cells,
        one: [count],
        rows: [[count; 3]; 6],
    };
    states[3] = State {
        count: 1,
        ..states[2]
    };
}

#[test]
fn structs_with_arrays_are_values() {
    let mut start = State {
        words: [10, 20, 30, 40, 50, 60],
        count: 9,
        one: [77],
        ..State::default()
    };
    (0..5).for_each(|i| start.cells[i as usize].kind = [i, 10 * i]);
    (0..6).for_each(|i| start.rows[i as usize] = [i, 100 + i, 200 + i]);
    let mut expected = [start, State::default(), State::default(), State::default()];
    let mut numbers = [0; 10];
    whole_on_host(&mut expected, &mut numbers, 4);
    let mut states = [start, State::default(), State::default(), State::default()];
    let mut out = [1; 10];
    let found = whole::check(Grid::threads(1), &mut states, &mut out, 4).expect("a run");
    // An element beyond an array is 0 (B4), and the checkers say so.
    assert_eq!(found.diagnostics().len(), 1, "{found}");
    assert!(
        found.to_string().contains("state.words[n + 100]"),
        "{found}"
    );
    numbers[4..7].fill(1);
    assert_eq!(states, expected);
    assert_eq!(out, numbers);
    let device = Device::default().expect("a device");
    let mut buffer = device.buffer_from(&[start; 4]).expect("a buffer");
    let mut out = device.buffer_zeroed::<u32>(10).expect("a buffer");
    let launched = whole::launch(&device, Grid::threads(1), &mut buffer, &mut out, 4);
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(buffer.read().expect("states"), expected);
}

#[kernel]
fn too_long(x: &[[f32; 300]], y: &mut [[f32; 300]]) {
    y[0] = x[0];
}

#[kernel]
fn of_five(five: [f32; 5], y: &mut [f32]) {
    y[0] = five[1];
}

#[test]
fn arrays_that_are_no_values_say_so() {
    let text = too_long::to_inv().expect_err("a long array").to_string();
    assert!(
        text.contains("an array of 300 is too long for one value"),
        "{text}"
    );
    assert!(text.contains("y[0] = x[0];"), "{text}");
    let text = of_five::to_inv().expect_err("no vector").to_string();
    assert!(text.contains("not an array of 5"), "{text}");
}

const TILE: u32 = 4;

#[kernel(threadgroup(TILE, TILE))]
fn turned(x: &[f32], y: &mut [f32]) {
    let tile = threadgroup!([[f32; TILE + 1]; TILE]);
    let p = thread_position_in_threadgroup();
    tile[p.y][p.x] = x[p.y * TILE + p.x];
    threadgroup_barrier();
    y[p.y * TILE + p.x] = tile[p.x][p.y];
}

#[kernel(threadgroup(N, N))]
fn turned_by<const N: u32>(x: &[f32], y: &mut [f32]) {
    let tile = threadgroup!([[[f32; 1]; N + 1]; N]);
    let own = thread!([[f32; N]; 2]);
    let p = thread_position_in_threadgroup();
    own[1][N - 1] = x[p.y * N + p.x];
    tile[p.y][p.x][0] = own[1][N - 1];
    threadgroup_barrier();
    tile[p.x][p.y][0] += 0.5;
    y[p.y * N + p.x] = tile[p.x][p.y][0];
}

#[test]
fn lengths_are_integers_of_any_type() {
    let x: Vec<f32> = (0u8..16).map(f32::from).collect();
    let turned_over = |by: f32| {
        (0..16)
            .map(|i| x[i % 4 * 4 + i / 4] + by)
            .collect::<Vec<_>>()
    };
    let mut y = vec![0.0; 16];
    turned(Grid::threads([4, 4]), &x, &mut y);
    assert_eq!(y, turned_over(0.0));
    turned_by::<4>(Grid::threads([4, 4]), &x, &mut y);
    assert_eq!(y, turned_over(0.5));
}

const WEIGHTS: [f32; 3] = [1.0, 10.0, 100.0];

#[device_fn]
fn sum_of(x: &[f32], first: u32, count: u32) -> f32 {
    let mut sum = 0.0;
    for i in first..first + count {
        sum += x[i];
    }
    sum + x.len() as f32 * 1000.0
}

#[device_fn]
fn add_one<T: Float>(x: &mut [T], i: u32) {
    x[i] += 1.0 as T;
}

#[kernel(threadgroup(4))]
fn lent(x: &[f32], y: &mut [f32], weights: &Constants<f32>, shared: &mut ThreadgroupArray<f32>) {
    let t = thread_position_in_threadgroup().x;
    let tile = threadgroup!([f32; 8]);
    let own = thread!([f32; 3]);
    tile[t] = 1.0;
    shared[t] = 2.0;
    add_one(&mut tile, t);
    add_one(own, 1);
    add_one(&mut own, 1);
    threadgroup_barrier();
    if t == 0 && !x.is_empty() && !tile.is_empty() {
        add_one(y, 7);
        y[0] = sum_of(x, 0, 2);
        y[1] = sum_of(&tile, 0, 4);
        y[2] = sum_of(&own, 0, 3);
        y[3] = sum_of(weights, 1, 2);
        y[4] = sum_of(&WEIGHTS, 0, 3);
        y[5] = sum_of(shared, 0, 4);
        y[6] = sum_of(&y, 7, 1);
    }
}

#[test]
fn functions_take_arrays_of_every_memory() {
    let mut y = [0.0; 8];
    let weights = [0.0, 3.0, 4.0];
    lent(Grid::threads(4), &[1.5, 2.5], &mut y, &weights, 4);
    let expected = [2004.0, 8008.0, 3002.0, 3007.0, 3111.0, 4008.0, 8001.0, 1.0];
    assert_eq!(y, expected);
}
