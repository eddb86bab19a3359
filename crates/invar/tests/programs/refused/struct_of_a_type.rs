use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

#[kernel]
fn swap(pairs: &mut [Pair<f32>]) {
    let i = thread_position_in_grid().x;
    let pair = pairs[i];
    pairs[i].a = pair.b;
}

fn main() {}
