use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32], n: u32) {
    eprintln!("{}", n);
}

fn main() {}
