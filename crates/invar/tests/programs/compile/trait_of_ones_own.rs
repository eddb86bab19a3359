//! A kernel that is generic over a trait of the author's, called on the host.
use invar::prelude::*;

trait Way {
    fn joined(a: Val<u32>, b: Val<u32>) -> Val<u32>;
}

struct Most;

impl Way for Most {
    #[device_fn]
    fn joined(a: u32, b: u32) -> u32 {
        max(a, b)
    }
}

#[kernel]
fn joined<W: Way>(x: &mut [u32]) {
    x[0] = W::joined(x[0], x[1]);
}

fn main() {
    let mut x = [3, 5];
    joined::<Most>(Grid::threads(1), &mut x);
    assert_eq!(x, [5, 5]);
}
