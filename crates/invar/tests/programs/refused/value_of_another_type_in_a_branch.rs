use invar::prelude::*;

#[kernel]
fn k(y: &mut [f32], n: u32) {
    let v = if n > 3 { 1.0 } else { n };
    y[0] = v;
}

fn main() {}
