use invar::prelude::*;

#[kernel]
fn k(x: Vec<f32>, y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
