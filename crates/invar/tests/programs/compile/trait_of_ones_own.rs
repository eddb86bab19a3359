//! A kernel that is generic over a trait of the author's, called on the host.
use invar::prelude::*;

trait Way {
    const FIRST: u32;

    #[device_fn]
    fn joined(a: u32, b: u32) -> u32;

    fn last(x: impl invar::kernel::AsSlice<u32>) -> Val<u32>;
}

struct Most;

impl Way for Most {
    const FIRST: u32 = 1;

    #[device_fn]
    fn joined(a: u32, b: u32) -> u32 {
        max(a, b)
    }

    #[device_fn]
    fn last(x: &[u32]) -> u32 {
        x[x.len() - 1]
    }
}

#[kernel]
fn joined<W: Way>(x: &mut [u32]) {
    x[0] = W::joined(W::joined(x[0], W::FIRST), W::last(x));
}

fn main() {
    let mut x = [3, 5];
    joined::<Most>(Grid::threads(1), &mut x);
    assert_eq!(x, [5, 5]);
}
