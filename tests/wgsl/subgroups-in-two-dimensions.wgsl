// A workgroup of two dimensions has subgroups as one of as many invocations has.
enable subgroups;
requires subgroup_id, subgroup_uniformity;

@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(32, 2)
fn lanes(
  @builtin(local_invocation_index) i: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_size) size: u32,
  @builtin(num_subgroups) count: u32,
  @builtin(subgroup_invocation_id) lane: u32
) {
  y[i] = subgroup * size + lane - i + subgroupBroadcastFirst(count * size);
}
// run: @lanes(y = zeros(64)) groups(1) -> y == fill(64, 64)
