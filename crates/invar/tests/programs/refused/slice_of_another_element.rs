use invar::prelude::*;

#[device_fn]
fn f(x: &[f32]) -> f32 {
    x[0]
}

#[kernel]
fn k(x: &[u32], y: &mut [f32]) {
    y[0] = f(x);
}

fn main() {}
