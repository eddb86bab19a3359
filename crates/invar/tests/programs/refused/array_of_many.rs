use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    let own = [0.0; 9];
    x[0] = own[n];
}

fn main() {}
