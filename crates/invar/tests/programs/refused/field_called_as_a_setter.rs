use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Point {
    x: f32,
    set_x: f32,
}

#[kernel]
fn k(points: &mut [Point]) {
    points[0].x = 1.0;
}

fn main() {}
