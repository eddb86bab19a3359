// All invocations meet, but the standard's analysis does not see it: browsers refuse it.

struct Inputs {
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_id) local: vec3u,
}

@group(0) @binding(0) var<uniform> limit: vec4u;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<private> count: u32;

@compute @workgroup_size(64)
fn a_struct_is_one_value(inputs: Inputs) { // warning[wgsl-uniformity]: `workgroupBarrier` must be in uniform control flow
  if inputs.group.x > 0u {
    workgroupBarrier(); // warning[wgsl-uniformity]: `workgroupBarrier`
  }
}

@compute @workgroup_size(64)
fn a_private_variable_varies() {
  count = limit.x;
  if count > 0u {
    storageBarrier(); // warning[wgsl-uniformity]: `storageBarrier`
  }
}

@compute @workgroup_size(64, 1, 1)
fn an_axis_of_one_varies(@builtin(local_invocation_id) local: vec3u) { // warning[wgsl-uniformity]: `workgroupBarrier`
  if local.y == 0u {
    workgroupBarrier(); // warning[wgsl-uniformity]: `workgroupBarrier`
  }
}

@compute @workgroup_size(64)
fn a_vector_is_one_value(@builtin(local_invocation_id) local: vec3u) { // warning[wgsl-uniformity]: `workgroupBarrier`
  var both = vec2u(limit.x, 0u);
  both.y = local.x;
  for (var i = 0u; i < both.x; i++) {
    workgroupBarrier(); // warning[wgsl-uniformity]: `workgroupBarrier`
  }
  y[local.x] = both.y;
}

fn first() -> u32 {
  return count;
}

fn meets(n: u32) {
  if n > 3u {
    workgroupBarrier(); // warning[wgsl-uniformity]: `workgroupBarrier`
  }
}

@compute @workgroup_size(64)
fn through_calls() {
  count = limit.y;
  meets(first()); // warning[wgsl-uniformity]: `workgroupBarrier`
}

fn put(to: ptr<function, u32>) {
  *to = count;
}

@compute @workgroup_size(64)
fn through_a_pointer() {
  count = limit.z;
  var n = 0u;
  put(&n); // warning[wgsl-uniformity]: `workgroupBarrier`
  switch n {
    case 0u: {
      workgroupBarrier(); // warning[wgsl-uniformity]: `workgroupBarrier`
    }
    default: {
    }
  }
}
