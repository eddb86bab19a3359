//! A field gets a value of its own type.
use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Pair {
    key: u32,
    weight: f32,
}

#[kernel]
fn wrong(pairs: &mut [Pair]) {
    pairs[0] = Pair { key: 1.5, weight: 2.0 };
}

fn main() {}
