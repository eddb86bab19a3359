//! Structs with long arrays are read, changed and written whole.
use invar::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Hash {
    words: [u32; 8],
    iterations: u32,
}

#[kernel]
fn stir(hashes: &mut [Hash]) {
    let mut hash = hashes[0];
    for round in 0..16 {
        hash.words[round % 8] += hash.words[(round + 1) % 8];
        hash.iterations += 1;
    }
    hashes[0] = hash;
    hashes[1] = Hash { words: [hash.iterations; 8], ..hash };
}

fn main() {
    let mut hashes = [Hash { words: [1; 8], iterations: 0 }; 2];
    stir(Grid::threads(1), &mut hashes);
    assert_eq!(hashes[0].words, [4, 4, 4, 4, 4, 4, 5, 7]);
    assert_eq!(hashes[1], Hash { words: [16; 8], iterations: 16 });
}
