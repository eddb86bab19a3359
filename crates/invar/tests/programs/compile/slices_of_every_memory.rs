//! A device function's `&[T]` and `&mut [T]` take arrays of every memory.
use invar::prelude::*;

const WEIGHTS: [f32; 2] = [1.0, 10.0];

#[device_fn]
fn first_two<T: Number>(x: &[T]) -> T {
    x[0] + x[1]
}

#[device_fn]
fn set(x: &mut [f32], to: f32) {
    x[0] = to;
}

#[kernel(threadgroup(1))]
fn sums(x: &[f32], y: &mut [f32]) {
    let tile = threadgroup!([f32; 2]);
    let own = thread!([f32; 2]);
    set(&mut tile, 100.0);
    set(&mut own, 1000.0);
    y[1] = first_two(x) + first_two(&tile) + first_two(&own) + first_two(&WEIGHTS);
    set(y, first_two(&y));
}

fn main() {
    let mut y = [0.0; 2];
    sums(Grid::threads(1), &[2.0, 3.0], &mut y);
    assert_eq!(y, [1116.0, 1116.0]);
}
