use invar::prelude::*;

#[device_fn]
fn f(a: f32) -> f32 {
    if a > 0.0 {
        return 1;
    }
    a
}

#[kernel]
fn k(y: &mut [f32]) {
    y[0] = f(y[0]);
}

fn main() {}
