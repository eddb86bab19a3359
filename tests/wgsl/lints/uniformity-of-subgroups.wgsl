// Subgroup functions need control flow that is uniform for the subgroup, unless the shader says otherwise.

enable subgroups;

struct Inputs {
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
}

@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(inputs: Inputs, @builtin(local_invocation_index) i: u32) { // warning[wgsl-uniformity]: a subgroup function must be in uniform control flow
  if inputs.subgroup == 0u {
    y[i] = subgroupAdd(inputs.lane); // warning[wgsl-uniformity]: a subgroup function
  }
}

@compute @workgroup_size(64) @diagnostic(off, subgroup_uniformity)
fn turned_off(inputs: Inputs, @builtin(local_invocation_index) i: u32) {
  if inputs.subgroup == 0u {
    y[i] = subgroupAdd(inputs.lane);
  }
}

@compute @workgroup_size(64) @diagnostic(warning, subgroup_uniformity)
fn no_error(inputs: Inputs, @builtin(local_invocation_index) i: u32) {
  if inputs.subgroup == 0u {
    y[i] = subgroupAdd(inputs.lane);
  }
}

@compute @workgroup_size(64)
fn a_distance_for_each(inputs: Inputs, @builtin(local_invocation_index) i: u32) { // warning[wgsl-uniformity]: the second argument of `subgroupShuffleXor` must be uniform
  y[i] = subgroupShuffleXor(i, inputs.subgroup); // warning[wgsl-uniformity]: the second argument
}
