use invar::prelude::*;

#[kernel]
async fn k(x: &mut [f32]) {
    x[0] = 1.0;
}

fn main() {}
