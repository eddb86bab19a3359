use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    x[0] = x[1] * n;
}

fn main() {}
