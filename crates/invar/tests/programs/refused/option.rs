use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32]) {
    let first = Some(x[0]);
    x[1] = 1.0;
}

fn main() {}
