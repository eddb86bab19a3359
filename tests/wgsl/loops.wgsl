// `continuing`, `break if`, `while`, and loops in loops.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(1)
fn main() {
  var i = 0u;
  var sum = 0u;
  loop {
    if i % 3u == 1u { continue; }
    sum += i;
    continuing {
      i++;
      break if i > 9u;
    }
  }
  y[0] = sum;
  y[1] = i;
  while sum > 3u { sum /= 2u; if sum == 7u { break; } }
  y[2] = sum;
  var total = 0u;
  for (var a = 0u; a < 5u; a++) {
    var inner = 1u;
    loop {
      inner += a;
      if inner > 6u { break; }
      if inner == 5u { continue; }
      total += 1u;
      if total > 20u { break; }
    }
    total += inner;
    if total > 60u { break; }
    if a == 0u { total = 2u; }
  }
  y[3] = total;
  for (var a = 10; a >= -10; a -= 5) { y[4] += u32(a + 10); }
  for (var a = 3u; a > 0u; a--) { y[5] = y[5] * 10u + a; }
}
// run: @main(y = zeros(6)) groups(1) -> y == [33, 10, 2, 35, 50, 321]
