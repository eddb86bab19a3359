// A report also points at the argument because of which threads part.

@group(0) @binding(0) var<storage, read> x: array<u32>;

@compute @workgroup_size(8)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) i: u32, // error[barrier-not-uniform]: barrier
) {
  if x[group.x + i] > 3u {
    workgroupBarrier(); // error[barrier-not-uniform]: barrier
  }
}
