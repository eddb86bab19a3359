use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    println!("{}", n);
}

fn main() {}
