use invar::prelude::*;

#[kernel]
fn sum(y: &mut [f32]) {
    let tile = threadgroup!([f32; 8]);
    y[0] = tile.sum();
}

fn main() {}
