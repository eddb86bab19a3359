// Immediates are arguments of the host as uniforms are, without a group and binding; also of `f16`, and by a pointer.
enable f16;
requires immediate_address_space;

struct Given { by: f32, small: vec2h, index: u32 }
var<immediate> given: Given;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;

fn scaled(g: ptr<immediate, Given>, x: f32) -> f32 { return x * g.by + f32(g.small.y); }

@compute @workgroup_size(2)
fn scales(@builtin(local_invocation_index) i: u32) {
  y[i + given.index] = scaled(&given, f32(i));
}
// run: @scales(given = [4, 1, 0.5, 1], y = zeros(3)) groups(1) -> y == [0, 0.5, 4.5]
