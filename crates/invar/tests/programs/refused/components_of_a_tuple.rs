use invar::prelude::*;

#[kernel]
fn taken(v: [f32; 3], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let [a, b] = (y[i], y[i + 1]);
    y[i] = a + b + v.0;
}

fn main() {}
