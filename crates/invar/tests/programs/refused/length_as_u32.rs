use invar::prelude::*;

#[kernel]
fn k(y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    if i < y.len() {
        y[i] = 1.0;
    }
}

fn main() {}
