// The lane that a subgroup function names is an `i32`, a `u32`, or a literal by itself.
enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
const second = 1;

fn next(x: u32, lane: i32) -> u32 {
  if (second == 1) {
    return subgroupShuffle(x, (lane + 1) & 3);
  }
  return x;
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let x = 10u + lane;
  y[i] = subgroupBroadcast(x, 3);
  y[4u + i] = subgroupBroadcast(x, second) + 100u * quadBroadcast(x, 2i);
  y[8u + i] = next(x, i32(lane));
  y[12u + i] = subgroupShuffleXor(x, 1);
  y[16u + i] = subgroupShuffleDown(x, 1) + 100u * subgroupShuffleUp(x, i32(1u));
  y[20u + i] = subgroupShuffle(x, -1);
}
// run: @main(y = zeros(24)) groups(1) simdgroup(4)
//   -> y == [13, 13, 13, 13, 1211, 1211, 1211, 1211, 11, 12, 13, 10, 11, 10, 13, 12,
//      11, 1012, 1113, 1200, 0, 0, 0, 0]
