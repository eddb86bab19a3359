use invar::prelude::*;

#[kernel]
fn k(y: &mut [f32]) {
    let mut v = y[0];
    let w = &mut v;
    y[0] = v;
}

fn main() {}
