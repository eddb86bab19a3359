// Paths of an entry point that end: threads that are done with theirs miss no barrier of another.

@group(0) @binding(0) var<storage, read> kind: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> last: u32;

// run: @main(kind = [0, 1, 2, 3], y = zeros(32)) groups(4) -> y == [1, 1, 1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7, 7, 7, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0]
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) i: u32) {
  let at = group.x * 8u + i;
  let mine = kind[group.x];
  if (mine == 0u) {
    if (i % 2u == 0u) {
      y[at] = 1u;
    } else {
      y[at] = 1u;
      return;
    }
  } else if (mine == 1u) {
    if (i == 7u) {
      last = i;
    }
    workgroupBarrier();
    y[at] = last;
  } else {
    switch mine {
      case 2u: {
        storageBarrier();
        y[at] = 5u;
        return;
      }
      default: {
        return;
      }
    }
  }
}
