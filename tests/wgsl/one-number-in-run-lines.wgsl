// A uniform that is one number gets it as options give it, without brackets.
// run: @main(k = 3, b = [2], y = zeros(4)) groups(1) -> y == [6, 6, 6, 6]
@group(0) @binding(0) var<uniform> k: f32;
@group(0) @binding(1) var<uniform> b: u32;
@group(0) @binding(2) var<storage, read_write> y: array<f32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = k * f32(b); }
