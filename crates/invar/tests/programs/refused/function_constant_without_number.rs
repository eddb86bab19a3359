use invar::prelude::*;

#[function_constant]
const TILE: u32 = 16;

fn main() {}
