use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    match n {
        0 => x[0] = 1.0,
        1 => x[1] = 1.0,
    }
}

fn main() {}
