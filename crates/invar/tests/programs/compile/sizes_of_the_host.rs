//! Sizes, which the host has as `usize`, are numbers of 64 bits in a kernel.
use invar::prelude::*;

const COUNT: usize = 3;

#[kernel]
fn sizes(y: &mut [u64]) {
    let bytes = size_of::<f32>();
    for i in 0..COUNT {
        y[i] = bytes * i + COUNT as u64;
    }
}

fn main() {
    let mut y = [0; 3];
    let found = sizes::check(Grid::threads(1), &mut y).unwrap();
    found.into_result().unwrap();
    assert_eq!(y, [3, 7, 11]);
}
