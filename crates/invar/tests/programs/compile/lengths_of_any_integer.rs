//! Arrays whose lengths are constants and const generics of type `u32`.
use invar::prelude::*;

const ROWS: u32 = 2;

#[kernel(threadgroup(N))]
fn reversed<const N: u32>(x: &mut [u32]) {
    let tile = threadgroup!([[u32; N]; ROWS]);
    let own = thread!([[u32; ROWS]; 1]);
    let t = thread_position_in_threadgroup().x;
    own[0][1] = x[t];
    tile[1][t] = own[0][1];
    threadgroup_barrier();
    x[t] = tile[1][N - 1 - t];
}

fn main() {
    let mut x = [1, 2, 3];
    reversed::<3>(Grid::threads(3), &mut x);
    assert_eq!(x, [3, 2, 1]);
}
