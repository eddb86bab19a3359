// A load out of bounds gives 0 and a store does nothing; both are found.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  y[i] = x[i + 1u] + 1u; // error[out-of-bounds]: x
}
// run: @main(x = fill(8, 5), y = zeros(8)) groups(1) -> y == [6, 6, 6, 6, 6, 6, 6, 1]
