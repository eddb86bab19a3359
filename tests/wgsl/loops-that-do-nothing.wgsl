// Loops whose results nothing uses go with the conditions around them.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn idle(n: u32) {
  for (var i = 0u; i < n; i++) { }
}

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
  var sum = 0u;
  if id.x < 2u { for (var i = 0u; i < 4u; i++) { sum += i; } }
  switch id.x {
    case 1u: { for (var i = 0u; i < id.x; i++) { for (var k = i; k < 9u; k++) { sum += k; } } }
    default: { }
  }
  if id.x > 2u { idle(3u); }
  if id.x > 1u {
    for (var i = 0u; i < 4u; i++) {
      var few: array<u32, 4>;
      let one = few[i];
      if one == i { idle(i); }
    }
  }
  var kept = 0u;
  if id.x == 3u { for (var i = 0u; i < 4u; i++) { sum += i; kept += 2u; } }
  y[id.x] = kept;
}
// run: @main(y = fill(4, 7)) groups(1) -> y == [0, 0, 0, 8]
