use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    let v;
    v = 1.0;
    x[n] = v;
}

fn main() {}
