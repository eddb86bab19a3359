//! A position has three components.
use invar::prelude::*;

#[kernel]
fn wrong(y: &mut [f32]) {
    let i = thread_position_in_grid();
    y[i] = 1.0;
}

fn main() {}
