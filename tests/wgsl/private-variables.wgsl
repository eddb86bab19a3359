// Private variables with initial values, changed by functions in loops and conditions.
var<private> seed: u32 = 17u;
var<private> pair: vec2u = vec2u(1u, 2u);
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn next() -> u32 { seed = seed * 5u + 1u; return seed; }
fn twice() -> u32 { let a = next(); return a + next(); }

@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {
  var sum = 0u;
  for (var k = 0u; k < 3u; k++) { if k != 1u { sum += next() % 100u; } }
  if i == 1u { sum = twice(); pair.y = 9u; }
  y[i] = sum;
  y[2u + i] = seed;
  y[4u + i] = pair.x + pair.y;
}
// run: @main(y = zeros(6)) groups(1) -> y == [117, 12937, 431, 10781, 3, 10]
