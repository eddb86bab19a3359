// What has no name of its own is called as it is written, also `&&` and `||`, which are variables inside; what a
// function returns is called as the function.

@group(0) @binding(0) var<storage, read> x: array<u32>;

fn large(i: u32) -> bool {
  if x[i] > 9u { return true; }
  return x[i + 1u] > 3u;
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  if i > 3u && x[0] == 1u {
    workgroupBarrier(); // error[barrier-not-uniform]: `i > 3u && x[0] == 1u` may differ
  }
  if large(i) {
    workgroupBarrier(); // error[barrier-not-uniform]: large
  }
  if dot(vec2u(i, 1u), vec2u(x[0])) > 7u {
    workgroupBarrier(); // error[barrier-not-uniform]: `dot(vec2u(i, 1u), vec2u(x[0])) > 7u` may differ
  }
}
