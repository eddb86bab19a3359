use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    fn inner() {}
    x[n] = 1.0;
}

fn main() {}
