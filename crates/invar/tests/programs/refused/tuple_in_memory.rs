use invar::prelude::*;

#[kernel]
fn first(pairs: &[[f32; 2]], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = pairs[i].0;
}

fn main() {}
