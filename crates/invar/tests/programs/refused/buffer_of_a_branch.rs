use invar::prelude::*;

#[kernel]
fn k(x: &[f32], z: &[f32], y: &mut [f32], n: u32) {
    let from = if n > 3 { x } else { z };
    y[0] = from[0];
}

fn main() {}
