use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    let v = [x[0], x[1]];
    x[2] = v.z;
}

fn main() {}
