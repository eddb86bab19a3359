//! Tuples as values: of variables, parameters and results, by their parts, in patterns and in loops.
use invar::prelude::*;

#[device_fn]
fn divided(a: u32, b: u32) -> (u32, u32) {
    (a / b, a % b)
}

#[device_fn]
fn joined((whole, rest): (u32, u32), by: (u32, f32)) -> (u32, f32) {
    (whole * by.0 + rest, by.1)
}

/// The first of the largest elements of a buffer: its place and itself.
#[device_fn]
fn largest(x: &[u32], count: u32) -> (u32, u32) {
    let mut best = (0, x[0]);
    for i in 1..count {
        let one = (i, x[i]);
        if one.1 > best.1 {
            best = one;
        }
    }
    best
}

#[kernel]
fn split(x: &mut [u32], y: &mut [u32], z: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let best = largest(x, 2);
    let (whole, rest) = divided(x[i], 10);
    let mut pair = (whole, (rest, 0.5));
    pair.0 += 1;
    pair.1.0 *= 2;
    pair.1.1 = 0.25;
    let ((a, [b, _]), mut c) = ((pair.0, [pair.1.0, 7]), pair.1.1);
    c += joined(divided(x[i], 10), (10, 0.5)).1;
    x[i] = a;
    y[i] = b + 100 * best.0;
    z[i] = c;
}

fn main() -> invar::Result<()> {
    let (mut x, mut y, mut z) = ([42, 77], [0; 2], [0.0; 2]);
    split::check(Grid::threads(1), &mut x, &mut y, &mut z)?.into_result()?;
    assert_eq!((x, y, z), ([5, 77], [104, 0], [0.75, 0.0]));
    Ok(())
}
