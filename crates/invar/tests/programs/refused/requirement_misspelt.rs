use invar::prelude::*;

#[kernel]
#[requires(n <= lenght(y), n < 4 && n > 1)]
fn k(y: &mut [f32], n: u32) {
    y[n] = 1.0;
}

fn main() {}
