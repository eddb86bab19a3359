use invar::prelude::*;

#[kernel]
fn k(x: &[f32], y: &mut [f32]) {
    if x[0] && true {
        y[0] = 1.0;
    }
}

fn main() {}
