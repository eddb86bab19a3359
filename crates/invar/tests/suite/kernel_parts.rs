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

#[function_constant(11)]
const ROOM: u32 = 2;

#[kernel]
#[requires(length(y) <= ROOM)]
fn in_room(y: &mut [u32]) {
    y[0] = 1;
}

#[test]
fn a_requirement_names_function_constants() {
    let device = Device::checked();
    let run = |count: usize, constants: &[invar::kernel::ConstantValue]| -> invar::Result<()> {
        let mut y = device.buffer_zeroed::<u32>(count)?;
        let prepared = in_room::prepare_with(&device, constants)?;
        in_room::launch(&prepared, Grid::threads(1), &mut y)?.wait()?;
        Ok(())
    };
    run(2, &[]).expect("the constant's own value");
    run(3, &[ROOM.set(3)]).expect("the value of a host");
    for (count, constants, said) in [
        (3, vec![], "requires length(y) <= 2, but length(y) is 3"),
        (
            2,
            vec![ROOM.set(1)],
            "requires length(y) <= 1, but length(y) is 2",
        ),
    ] {
        let text = run(count, &constants).expect_err("a refusal").to_string();
        assert!(text.contains(said), "{text}");
    }
}

mod sizes {
    pub const MOST: usize = 3;
}

const BELOW: i32 = -1;

#[kernel]
#[requires(length(y) <= sizes::MOST, length(y) % N == 0, BELOW * 4 < n)]
#[requires(each m of marks: m < u8::MAX, n <= 1_000 * N)]
fn of_constants<const N: u32>(y: &mut [u32], marks: &[u32], n: i32) {
    y[0] = n as u32 + marks[0];
}

#[test]
fn a_requirement_names_constants_of_rust() {
    let run = |count: usize, mark: u32, n: i32| {
        let mut y = vec![0; count];
        let found = of_constants::<2>::check(Grid::threads(1), &mut y, &[mark], n);
        found.and_then(Findings::into_result)
    };
    run(2, 254, -3).expect("a run");
    for (count, mark, n, said) in [
        (4, 0, 0, "requires length(y) <= 3, but length(y) is 4"),
        (3, 0, 0, "requires length(y) % 2 == 0, but length(y) is 3"),
        (2, 255, 0, "but marks[0] is 255"),
        (2, 0, -4, "but n is -4"),
        (2, 0, 2001, "requires n <= 2000, but n is 2001"),
    ] {
        let text = run(count, mark, n).expect_err("a refusal").to_string();
        assert!(text.contains(said), "{text}");
    }
    let text = of_constants::<0>::to_inv()
        .expect_err("no remainder")
        .to_string();
    assert!(text.contains("a remainder of a division by 0"), "{text}");
}

const THREADS: usize = 8;

#[kernel(threadgroup(THREADS, { THREADS / 4 }), simdgroup(32))]
fn of_size(y: &mut [u32]) {
    y[thread_position_in_grid().x] = threads_per_threadgroup().x * threads_per_threadgroup().y;
}

#[test]
fn a_threadgroup_is_of_constants_of_any_integer_type() {
    let text = of_size::to_inv().expect("a kernel");
    assert!(text.contains("threadgroup(8, 2)"), "{text}");
}

#[kernel]
fn shifts<T: Integer>(x: T, far: i8, v: &mut [[u32; 2]], y: &mut [u32]) {
    let i = y[4] as i32;
    y[0] = y[4] as u32 >> (i & 31);
    y[1] = 1 << far;
    y[2] <<= i as u64;
    y[3] = (x << 3 >> far >> i) as u32;
    v[0] <<= 1;
    v[1] = v[1] << [i, 2] >> far;
    let mut z = 5u64;
    z >>= 1u8;
    y[4] = z as u32;
}

#[kernel]
fn shifts_by_a_literal(y: &mut [u16]) {
    y[0] <<= 5;
}

#[test]
fn integers_are_shifted_by_integers_of_any_type() {
    let (mut v, mut y) = ([[1, 2], [8, 16]], [0, 0, 7, 0, 34]);
    let found = shifts::<i16>::check(Grid::threads(1), -9, 1, &mut v, &mut y);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(
        y,
        [34 >> 2, 2, 7 << (34 % 32), (-9i16 << 3 >> 1 >> 2) as u32, 2]
    );
    assert_eq!(v, [[2, 4], [8 << 2 >> 1, 16 << 2 >> 1]]);
    let text = shifts_by_a_literal::to_inv().expect("a kernel");
    assert!(
        text.contains("const u16 5") && !text.contains("32 5"),
        "{text}"
    );
}

trait Shape: Data {
    #[device_fn]
    fn area(shape: Self) -> f32;
}

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Square {
    side: f32,
}

impl Shape for Square {
    #[device_fn]
    fn area(shape: Self) -> f32 {
        shape.side * shape.side
    }
}

#[kernel]
fn areas<S: Shape + Stored>(shapes: &[S], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = S::area(shapes[i]);
}

#[test]
fn a_trait_of_types_of_kernels_names_itself() {
    let mut y = [0.0];
    let found = areas::<Square>::check(Grid::threads(1), &[Square { side: 3.0 }], &mut y);
    found.and_then(Findings::into_result).expect("a run");
    assert_eq!(y, [9.0]);
}

#[kernel]
fn beside(v: &mut [[f32; 3]], y: &mut [[i32; 2]]) {
    let a = v[0];
    v[1] = max(a, 2.0).min(3.0);
    v[2] = a.clamp(1.5, 2.5);
    v[3] = mix(a, [0.0, 0.0, 0.0], 0.5) + mix(a, 0.0, 0.5);
    v[4] = pow(a, 2.0) + a.pow(2.0);
    v[5] = step(2.0, a) + smoothstep(0.0, 1.0, a);
    v[6] = fmod(a, 2.0) + fmax(a, 0.0) + a.fmin(0.0) + powr(a, a.x);
    y[0] = min(y[0], 1).max([0, 1]);
    let m = max(0, y[0].x);
    y[1].x = m + clamp(m, -1, 1);
}

#[test]
fn numbers_stand_beside_vectors() {
    let mut v = [[1.0, 2.0, 3.0]; 7];
    let mut y = [[5, -4]; 2];
    let found = beside::check(Grid::threads(1), &mut v, &mut y);
    found.and_then(Findings::into_result).expect("a run");
    let expected = [
        [2.0, 2.0, 3.0],
        [1.5, 2.0, 2.5],
        [1.0, 2.0, 3.0],
        [2.0, 8.0, 18.0],
        [1.0, 2.0, 2.0],
        [3.0, 4.0, 7.0],
    ];
    assert_eq!(v[1..], expected);
    assert_eq!(y, [[1, 1], [2, -4]]);
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
