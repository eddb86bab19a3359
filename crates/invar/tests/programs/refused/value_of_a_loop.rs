use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    while n > 2 {
        break 1.0;
    }
}

fn main() {}
