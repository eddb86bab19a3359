use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    if let 1 = n {
        x[0] = 1.0;
    }
}

fn main() {}
