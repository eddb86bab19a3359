// What is the same for a workgroup though the standard does not count on it: a position along an axis in which
// a workgroup is one thread wide, a variable of the module, a component of a vector and a member of a struct.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: array<u32, 8>;
var<private> mine: u32;
struct Pair { group: u32, thread: u32 }

@compute @workgroup_size(8)
fn main(
  @builtin(global_invocation_id) id: vec3u,
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) i: u32,
) {
  w[i] = i;
  if (id.y == 0u) { workgroupBarrier(); }
  var sum = w[7u - i];
  mine = group.x;
  if (mine < 2u) { workgroupBarrier(); }
  w[i] = sum;
  let both = vec2u(group.x, i);
  if (both.x < 2u) { workgroupBarrier(); }
  sum += w[7u - i];
  var pair: Pair;
  pair.thread = i;
  pair.group = group.x;
  if (pair.group < 2u) { workgroupBarrier(); }
  y[id.x] = sum;
}
// run: @main(y = zeros(16)) groups(2) -> y == [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]
