use invar::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    let bytes = size_of::<f32>();
    y[0] = x[0];
}

fn main() {}
