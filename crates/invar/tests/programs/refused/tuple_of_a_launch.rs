use invar::prelude::*;

#[kernel]
fn scaled(by: (f32, f32), y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = y[i] * by.0 + by.1;
}

fn main() {}
