use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u32,
}

#[kernel]
fn k(pairs: &mut [Pair]) {
    pairs[0] = Pair { a: 1 };
}

fn main() {}
