// A shader may have subgroup functions where not the whole subgroup comes: they are over those that do.
enable subgroups;
diagnostic(off, subgroup_uniformity);

@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn count() -> u32 {
  return subgroupAdd(1u);
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32) {
  if lane % 3u == 0u {
    y[i] = count() * 10u;
    return;
  }
  var sum = 0u;
  for (var k = 0u; k < lane; k++) {
    if k == 3u {
      break;
    }
    sum += subgroupBallot(true).x;
  }
  y[i] = sum * 1000u + subgroupBroadcastFirst(lane) * 100u + count();
}
// run: @main(y = zeros(8)) groups(1) simdgroup(8)
//   -> y == [30, 182105, 362105, 30, 538105, 538105, 30, 538105]
