use invar::prelude::*;

#[kernel]
fn double(x: &mut [f16]) {
    let i = thread_position_in_grid().x;
    x[i] = x[i] * 2.0;
}

fn main() {}
