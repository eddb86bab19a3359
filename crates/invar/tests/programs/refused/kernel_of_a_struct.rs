use invar::prelude::*;

#[kernel]
struct K {
    x: f32,
}

fn main() {}
