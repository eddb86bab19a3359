// What the standard's analysis sees to be uniform.

enable subgroups;

struct Settings {
  count: u32,
  list: array<vec4u, 4>,
}

@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
var<workgroup> shared_count: u32;

@compute @workgroup_size(64)
fn inputs_by_themselves(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) i: u32,
) {
  var n = counts[group.x];
  for (var j = 0u; j < n; j++) {
    if j == settings.list[j & 3u].x {
      continue;
    }
    if j > groups.x {
      break;
    }
    workgroupBarrier();
  }
  // It varies, and then it does not any more.
  n = i;
  if n > 3u {
    y[i] = n;
  }
  workgroupBarrier();
  n = settings.count;
  if n > 3u && counts[0] > 1u {
    storageBarrier();
  }
}

fn divided(p: ptr<function, u32>, by: u32) -> u32 {
  let old = *p;
  *p /= by;
  return old;
}

@compute @workgroup_size(64)
fn through_calls(@builtin(local_invocation_index) i: u32) {
  var mine = i;
  var ours = settings.count;
  y[i] = divided(&mine, 2u);
  if divided(&ours, 2u) > 7u {
    workgroupBarrier();
  }
  if ours > 7u {
    workgroupBarrier();
  }
}

@compute @workgroup_size(64)
fn loaded_for_all(@builtin(local_invocation_index) i: u32) {
  if i == 0u {
    shared_count = y[0];
  }
  let n = workgroupUniformLoad(&shared_count);
  loop {
    if n > 3u {
      break;
    }
    workgroupBarrier();
    break;
  }
}

@compute @workgroup_size(64)
fn breaks_out_of_a_switch(@builtin(local_invocation_index) i: u32) {
  switch settings.count {
    case 0u: {
      workgroupBarrier();
    }
    case 1u: {
      if i > 3u {
        break;
      }
      y[i] = 2u;
    }
    default: {
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(64)
fn leaves_together(@builtin(workgroup_id) group: vec3u) {
  if group.x > settings.count {
    return;
  }
  workgroupBarrier();
}

@compute @workgroup_size(64)
fn subgroups_by_themselves(
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
  @builtin(local_invocation_index) i: u32,
) {
  if subgroup == 0u {
    let sum = subgroupAdd(lane);
    if sum > 9u {
      y[i] = subgroupMax(lane);
    }
  }
}
