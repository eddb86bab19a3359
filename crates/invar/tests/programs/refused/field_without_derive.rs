use invar::prelude::*;

#[derive(Clone, Copy)]
#[repr(C)]
struct Colour {
    red: f32,
}

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Pixel {
    depth: f32,
    colour: Colour,
}

#[kernel]
fn fade(pixels: &mut [Pixel]) {
    let i = thread_position_in_grid().x;
    let pixel = pixels[i];
    pixels[i].depth = pixel.depth * 0.5;
}

fn main() {}
