//! How long an array is, no value of the kernel tells.
use invar::prelude::*;

#[kernel]
fn wrong(n: u32, y: &mut [f32]) {
    let tile = threadgroup!([f32; n]);
    y[0] = tile[0];
}

fn main() {}
