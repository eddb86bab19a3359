@group(0) @binding(0) var<storage, read> x: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  if x[i] > 3u {
    workgroupBarrier(); // error[barrier-not-uniform]: barrier
  }
}
