use invar::prelude::*;

#[kernel]
fn k<T>(x: &[T], y: &mut [T]) {
    y[0] = x[0];
}

fn main() {}
