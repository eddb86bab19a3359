use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Mesh {
    points: Vec<f32>,
}

fn main() {}
