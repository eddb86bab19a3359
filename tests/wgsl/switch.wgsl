// `break` in the middle of a case, `return` and `continue` out of one, a default that is not the last.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn classify(n: u32) -> u32 {
  var out = 1u;
  switch n {
    case 0u: { return 10u; }
    default: { out = 20u; if n > 5u { break; } out += 1u; }
    case 2u, 3u: { if n == 3u { break; } out = 30u; }
    case 4u: { out = 40u; switch out { case 40u: { break; } default: { out = 0u; } } out += 2u; }
  }
  return out + 100u;
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = classify(i);
  var sum = 0u;
  for (var k = 0u; k < 6u; k++) {
    switch k {
      case 1u: { continue; }
      case 4u: { if i == 0u { continue; } sum += 1000u; }
      default: { sum += k; }
    }
    sum += 100u;
  }
  y[8u + i] = sum;
}
// run: @main(y = zeros(16)) groups(1)
//   -> y == [10, 121, 130, 101, 142, 121, 120, 120, 410, 1510, 1510, 1510, 1510, 1510, 1510, 1510]
