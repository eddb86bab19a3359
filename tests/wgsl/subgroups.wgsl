enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let sum = subgroupAdd(lane);
  let before = subgroupExclusiveAdd(1u);
  let first = subgroupBroadcastFirst(lane + 7u);
  let other = subgroupShuffleXor(lane, 1u);
  let ballot = subgroupBallot(lane < 2u);
  let swapped = quadSwapX(lane);
  y[i] = sum + before * 1000u + first + other * 100000u + ballot.x + swapped - other;
}
// run: @main(y = zeros(32)) groups(1) simdgroup(4)
//   -> y == [100016, 1016, 302016, 203016, 100016, 1016, 302016, 203016, 100016, 1016, 302016, 203016,
//      100016, 1016, 302016, 203016, 100016, 1016, 302016, 203016, 100016, 1016, 302016, 203016,
//      100016, 1016, 302016, 203016, 100016, 1016, 302016, 203016]
