use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    x[n as usize] = 1.0;
}

fn main() {}
