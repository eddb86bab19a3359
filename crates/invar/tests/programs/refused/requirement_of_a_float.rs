use invar::prelude::*;

const MOST: f32 = 4.0;

#[kernel]
#[requires(n <= MOST)]
fn k(y: &mut [f32], n: u32) {
    y[n] = 1.0;
}

fn main() {}
