use invar::prelude::*;

#[kernel]
fn first(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel]
fn second(y: &mut [f32]) {
    first(y);
}

fn main() {}
