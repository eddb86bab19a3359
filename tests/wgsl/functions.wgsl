// Early returns, in loops and outside, and results that are structs.
struct Found { at: u32, ok: bool }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

fn find(wanted: u32) -> Found {
  if wanted == 0u { return Found(99u, false); }
  for (var i = 0u; i < arrayLength(&x); i++) {
    if x[i] == wanted { return Found(i, true); }
  }
  return Found(50u, false);
}

fn find_pair(sum: u32) -> u32 {
  for (var i = 0u; i < arrayLength(&x); i++) {
    for (var j = 0u; j < i; j++) {
      if x[i] + x[j] == sum { return i * 10u + j; }
      if j == 5u { break; }
    }
  }
  return 1000u;
}

fn sign_of(a: i32) -> i32 {
  if a > 0 { return 1; } else if a < 0 { return -1; }
  return 0;
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  let found = find(i);
  if found.ok { y[i] = found.at; } else { y[i] = found.at + 1u; }
  y[8u + i] = find_pair(i + 3u);
  y[16u + i] = u32(sign_of(i32(i) - 3) + 1);
}
// run: @main(x = [3, 5, 7, 2], y = zeros(24)) groups(1)
//   -> y == [100, 51, 3, 0, 51, 1, 51, 2, 1000, 1000, 30, 1000, 31, 10, 32, 20, 0, 0, 0, 1, 2, 2, 2, 2]
