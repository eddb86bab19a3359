use invar::prelude::*;

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
}

fn main() {}
