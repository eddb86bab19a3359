// `workgroupUniformLoad` is two barriers, and a value that barriers can depend on.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> limit: u32;
var<workgroup> tile: array<u32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  if i == 3u { limit = x[0]; }
  let n = workgroupUniformLoad(&limit);
  for (var k = 0u; k < n; k++) {
    tile[i] += k;
    workgroupBarrier();
    if k + 1u == n { y[i] = tile[7u - i]; }
  }
}
// run: @main(x = [4], y = zeros(8)) groups(1) -> y == fill(8, 6)
