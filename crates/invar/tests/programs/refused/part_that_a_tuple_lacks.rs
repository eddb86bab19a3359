use invar::prelude::*;

#[kernel]
fn pairs(y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let mut pair = (y[i], i);
    pair.2 = 1.0;
    y[i] = pair.0;
}

fn main() {}
