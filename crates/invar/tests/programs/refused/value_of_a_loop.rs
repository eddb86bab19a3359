use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    x[n] = loop {
        break 1.0;
    };
}

fn main() {}
