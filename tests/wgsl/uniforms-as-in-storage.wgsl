// Uniforms are laid out as what is in storage: elements of arrays and structs follow each other closely.
requires uniform_buffer_standard_layout;

struct Inner { a: f32 }
struct All { first: Inner, second: f32, weights: array<f32, 5>, small: array<vec2u, 2> }
@group(0) @binding(0) var<uniform> all: All;
@group(0) @binding(1) var<uniform> plain: array<u32, 6>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn weight(u: ptr<uniform, All>, i: u32) -> f32 { return u.weights[i]; }

@compute @workgroup_size(4)
fn sums(@builtin(local_invocation_index) i: u32) {
  y[i] = weight(&all, i + 1u) + all.first.a + 10.0 * all.second + f32(plain[i + 2u]) + f32(all.small[i / 2u][i % 2u]);
}
// run: @sums(all = [1, 2, 10, 20, 30, 40, 50, 0, 100, 200, 300, 400],
//   plain = [0, 0, 1, 2, 3, 4], y = zeros(4)) groups(1)
//   -> y == [142, 253, 364, 475]
