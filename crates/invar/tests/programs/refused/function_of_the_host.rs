use invar::prelude::*;

fn twice(x: f32) -> f32 {
    2.0 * x
}

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = twice(x[0]);
}

fn main() {}
