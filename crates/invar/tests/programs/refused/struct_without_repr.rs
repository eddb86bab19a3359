use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
struct Particle {
    mass: f32,
}

fn main() {}
