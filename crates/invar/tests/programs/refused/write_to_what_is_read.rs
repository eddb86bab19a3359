use invar::prelude::*;

#[kernel]
fn k(x: &[f32], n: u32) {
    x[n] = 1.0;
}

fn main() {}
