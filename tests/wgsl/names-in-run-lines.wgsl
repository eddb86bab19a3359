// A `run:` line names what stands before an array of no fixed length, and that, as options do.
// run: @main(h = [2, 0, 0, 0, 1, 2, 3, 0], h.nodes = iota(2), u=[1, 0, 0, 0, 2, 3, 4, 0]) groups(1)
//   -> h.nodes == [1, 5, 11, 3, 9, 17, 27, 7]
// run: @main(h.nodes = zeros(1), h = zeros(1), u = zeros(1)) groups(1) -> h.nodes == [0, 0, 0, 0]
// run: @main(h = zeros(1),h.nodes=zeros(1), "u" = zeros(1)) groups(1)
//   -> "h.nodes" == [0, 0, 0, 0], %h.nodes == [0, 0, 0, 0]
struct H { n: u32, d: vec3f, nodes: array<vec3f> }
struct U { a: f32, v: vec3f }
@group(0) @binding(0) var<storage, read_write> h: H;
@group(0) @binding(1) var<uniform> u: U;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) g: vec3u) {
  if g.x < h.n { h.nodes[g.x] = h.nodes[g.x] * u.v * u.a + h.d; }
}
