use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    for v in x {
        x[0] = v;
    }
}

fn main() {}
