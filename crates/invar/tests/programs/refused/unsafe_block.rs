use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    unsafe { x[n] = 1.0 };
}

fn main() {}
