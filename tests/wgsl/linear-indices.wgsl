// The number of an invocation and of a workgroup in the grid, along x first; also as members of a struct.
requires linear_indexing;

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<vec2u>;
var<workgroup> shared_value: u32;

@compute @workgroup_size(4, 2)
fn numbers(
  @builtin(local_invocation_index) i: u32,
  @builtin(global_invocation_index) global: u32,
  @builtin(workgroup_index) group: u32
) {
  y[global] = 100u * group + i;
}
// run: @numbers(y = zeros(32)) groups(2, 2)
//   -> y == [0, 1, 2, 3, 100, 101, 102, 103, 4, 5, 6, 7, 104, 105, 106, 107,
//            200, 201, 202, 203, 300, 301, 302, 303, 204, 205, 206, 207, 304, 305, 306, 307]

struct Where { @builtin(global_invocation_id) id: vec3u, @builtin(global_invocation_index) index: u32 }

@compute @workgroup_size(1, 2, 2)
fn in_a_struct(at: Where, @builtin(workgroup_id) w: vec3u) {
  z[at.index] = vec2u(at.id.x + 10u * at.id.y + 100u * at.id.z, w.y);
}
// run: @in_a_struct(z = zeros(8)) groups(1, 2, 1)
//   -> z == [0, 0, 10, 0, 20, 1, 30, 1, 100, 0, 110, 0, 120, 1, 130, 1]

@compute @workgroup_size(4)
fn uniform_control(@builtin(workgroup_index) group: u32, @builtin(global_invocation_index) i: u32) {
  if group == 1u { workgroupBarrier(); }
  if i == 1u {
    workgroupBarrier(); // error[barrier-not-uniform]: i == 1u
  }
}
