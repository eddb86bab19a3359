use invar::prelude::*;

#[kernel]
#[requires(n <= m)]
fn k(y: &mut [f32], n: u32) {
    y[n] = 1.0;
}

fn main() {}
