use invar::prelude::*;

#[kernel]
fn k(y: &mut [f32], n: u32) {
    if n = 3 {
        y[0] = 1.0;
    }
}

fn main() {}
