use invar::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    y[0] = x.last();
}

fn main() {}
