// Memory of a workgroup is all zeros at first.
var<workgroup> tile: array<u32, 16>;
var<workgroup> one: vec3f;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = tile[15u - i] + u32(one.y);
}
// run: @main(y = fill(16, 9)) groups(1) -> y == fill(16, 0)
