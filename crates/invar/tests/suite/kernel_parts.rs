//! Parts of values and of what lies in memory, struct constants, and lines that are printed.

use invar::prelude::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, KernelData)]
#[repr(C)]
struct Corner {
    at: [f32; 3],
    weight: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Edge {
    ends: [Corner; 2],
    marks: [u32; 5],
}

const ONE: Corner = Corner {
    at: [1.0, 2.0, 3.0],
    weight: 0.5,
};

const CORNERS: [Corner; 2] = [
    ONE,
    Corner {
        at: [4.0, 5.0, 6.0],
        weight: 7.0,
    },
];

const ROWS: [[u32; 3]; 2] = [[1, 2, 3], [4, 5, 6]];

#[kernel]
fn swizzles(a: &[[f32; 2]], corners: &mut [Corner], b: &mut [[f32; 2]]) {
    b[0] = a[0].yx;
    b[1] = corners[0].at.zy;
    corners[0].at.zx = [8.0, 9.0];
    corners[1].at.xyz = corners[0].at.yzx;
    corners[1].at.yz += [0.5, 0.25];
    let mut v = [1.0, 2.0, 3.0, 4.0];
    v.wx = b[0];
    v.yz *= 2.0;
    b[2] = v.xy;
    b[3] = v.zw;
}

#[test]
fn swizzles_are_read_and_written_in_memory_and_in_variables() {
    let mut corners = [ONE, Corner::default()];
    let mut b = [[0.0; 2]; 4];
    let found = swizzles::check(Grid::threads(1), &[[1.0, 2.0]], &mut corners, &mut b);
    assert!(found.expect("a run").diagnostics().is_empty());
    assert_eq!(b, [[2.0, 1.0], [3.0, 2.0], [1.0, 4.0], [6.0, 2.0]]);
    assert_eq!(corners[0].at, [9.0, 2.0, 8.0]);
    assert_eq!(corners[1].at, [2.0, 8.5, 9.25]);
}

/// Two threads write different components of one element.
#[kernel]
fn halves(v: &mut [[f32; 4]]) {
    if thread_position_in_grid().x == 0 {
        v[0].xz = [1.0, 3.0];
    } else {
        v[0].wy = [4.0, 2.0];
    }
}

#[test]
fn a_swizzle_writes_the_components_that_it_names_and_no_others() {
    let mut v = [[0.0; 4]];
    let found = halves::check(Grid::threads(2), &mut v).expect("a run");
    assert!(found.diagnostics().is_empty(), "{found}");
    assert_eq!(v, [[1.0, 2.0, 3.0, 4.0]]);
}

#[kernel]
fn constants(out: &mut [Corner], numbers: &mut [u64], edges: &[Edge]) {
    let i = thread_position_in_grid().x;
    out[0] = ONE;
    out[1] = CORNERS[i + 1];
    out[2].weight = CORNERS[i].at.y + Corner::default().weight;
    let Corner { at, .. } = ONE;
    out[2].at = at;
    numbers[0] = ROWS.len() + ROWS[i].len();
    numbers[1] = edges[0].marks.len() + edges[0].ends[i].at.len();
    let edge = edges[0];
    numbers[2] = edge.marks.len();
    numbers[3] = edges[0].marks.is_empty() as u64;
}

#[test]
fn structs_are_constants_and_lengths_of_their_arrays_are_known() {
    let (mut out, mut numbers) = ([Corner::default(); 3], [9; 4]);
    let edge = Edge {
        ends: CORNERS,
        marks: [1; 5],
    };
    let found = constants::check(Grid::threads(1), &mut out, &mut numbers, &[edge]);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(out[..2], CORNERS);
    assert_eq!((out[2].at, out[2].weight), ([1.0, 2.0, 3.0], 2.0));
    assert_eq!(numbers, [5, 8, 5, 0]);
}

#[kernel]
fn details(y: &mut [u32], n: u32) {
    let mut a = n;
    a += {
        a += 1;
        a
    };
    y[0] = a;
    _ = y[1];
    let t = (1, 2, 3, 4, 5, 6, a, 8u32);
    y[1] = t.6 + t.7;
    y[2] = 5u32.next_multiple_of(n - n) + 5u32.next_multiple_of(n);
}

#[test]
fn what_reads_as_in_rust_gives_what_rust_gives() {
    let mut y = [0; 3];
    let found = details::check(Grid::threads(1), &mut y, 3);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(y, [8, 16, 6]);
}

#[device_fn]
fn second(_: f32, b: f32) -> f32 {
    b
}

#[requires(n <= length(x))]
#[kernel]
fn required_above(x: &mut [f32], n: u32) {
    x[n - 1] = second(1.0, 2.0);
}

#[test]
fn a_requirement_may_stand_above_the_kernel() {
    let mut x = [0.0; 2];
    let found = required_above::check(Grid::threads(1), &mut x, 2);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(x, [0.0, 2.0]);
    let refused = required_above::check(Grid::threads(1), &mut x, 3);
    let text = refused.err().expect("a refusal").to_string();
    assert!(
        text.contains("requires n <= length(x), but n is 3"),
        "{text}"
    );
}

#[kernel]
fn copies<T: Stored>(from: &[T], to: &mut [T]) {
    let i = thread_position_in_grid().x;
    to[i] = from[i];
}

#[test]
fn a_kernel_may_be_generic_over_all_that_memory_holds() {
    let mut to = [Corner::default(); 1];
    let found = copies::<Corner>::check(Grid::threads(1), &[ONE], &mut to);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(to, [ONE]);
}

const LIMIT: u32 = 255;

#[kernel]
fn prints(x: &[f32]) {
    let i = thread_position_in_grid().x;
    println!("{i}: {{{}}} {v:x} {LIMIT:x} {0} {i}", x[i], v = i + 10);
}

#[test]
fn a_line_names_variables_and_values() {
    let device = Device::checked();
    let x = device.buffer_from(&[0.5f32]).expect("a buffer");
    let done = prints::launch(&device, Grid::threads(1), &x).expect("a launch");
    let printed = done.printed().expect("lines");
    assert_eq!(printed.lines[0].text, "0: {0.5} a ff 0.5 0");
}
