use invar::prelude::*;

#[kernel]
fn k(y: &mut [f32], n: u32) {
    let v = y[n];
    v += 1.0;
    y[n] = v;
}

fn main() {}
