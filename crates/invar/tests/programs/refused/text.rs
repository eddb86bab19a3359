use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    let word = "three";
}

fn main() {}
