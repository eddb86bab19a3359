// `&&` and `||` do not look at what they need not.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  if i < arrayLength(&x) && x[i] > 2u { y[i] = 1u; }
  if i >= arrayLength(&x) || x[i] == 2u { y[i] += 10u; }
  let big = vec4u(i) > vec4u(1u, 2u, 3u, 4u);
  y[i] += select(0u, 100u, any(big)) + select(0u, 1000u, all(big));
}
// run: @main(x = [1, 2, 3, 4], y = zeros(8)) groups(1) -> y == [0, 10, 101, 101, 110, 1110, 1110, 1110]
