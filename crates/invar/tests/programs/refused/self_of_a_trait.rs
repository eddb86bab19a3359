use invar::prelude::*;

trait Shape {
    #[device_fn]
    fn area(shape: Self) -> f32;
}

fn main() {}
