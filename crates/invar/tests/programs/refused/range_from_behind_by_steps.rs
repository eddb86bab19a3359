use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    for i in (0..n).step_by(2).rev() {
        x[i] = 1.0;
    }
}

fn main() {}
