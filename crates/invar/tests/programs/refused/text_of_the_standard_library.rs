use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32]) {
    let word = String::new();
    x[0] = 1.0;
}

fn main() {}
