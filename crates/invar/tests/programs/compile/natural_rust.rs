//! Methods by Rust's names, tables and sizes, exchanges, bytes and attributes, in a crate without unsafe code.
#![forbid(unsafe_code)]
use invar::prelude::*;

const TABLE: [u32; 5] = [1, 2, 4, 8, 16];
const ROWS: usize = 2;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Pair {
    key: u32,
    weight: f32,
}

#[kernel]
fn natural<T: Number>(text: &[u8], pairs: &mut [Pair], sums: &mut [T]) {
    let i = thread_position_in_grid().x;
    let tile = threadgroup!([[f32; 3]; ROWS]);
    tile[i][1] = pairs[i].weight.powi(2).mul_add(2.0, 1.0) % 3.0;
    #[cfg(any())]
    let i = nothing;
    if matches!(text[i], b'a'..=b'z') && i < 1 {
        (pairs[i].key, pairs[i + 1].key) = (pairs[i + 1].key, pairs[i].key);
    }
    let mut sum = T::default();
    for j in 0..TABLE.len() {
        sum += TABLE[j].rotate_left(i) as T;
    }
    sums[i] = sum;
    pairs[i].weight = f32::max(tile[i].y, 0.5) + f32::from(text[i]);
}

fn main() {
    let mut pairs = [Pair { key: 1, weight: 1.0 }, Pair { key: 2, weight: 2.0 }];
    let mut sums = [0.0f64; 2];
    let found = natural::<f64>::check(Grid::threads(2), b"aZ", &mut pairs, &mut sums);
    found.unwrap().into_result().unwrap();
    assert_eq!(pairs.map(|p| p.key), [2, 1]);
    assert_eq!(pairs.map(|p| p.weight), [97.5, 90.5]);
    assert_eq!(sums, [31.0, 62.0]);
}
