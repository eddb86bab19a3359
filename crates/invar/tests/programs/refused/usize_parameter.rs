use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: usize) {
    x[n] = 1.0;
}

fn main() {}
