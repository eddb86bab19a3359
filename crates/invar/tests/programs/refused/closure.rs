use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    let twice = |v| v + v;
    x[0] = twice(1.0);
}

fn main() {}
