// In WGSL an integer divided by 0 is itself, and its remainder is 0.
@group(0) @binding(0) var<storage, read> a: array<i32>;
@group(0) @binding(1) var<storage, read> b: array<i32>;
@group(0) @binding(2) var<storage, read_write> quotient: array<i32>;
@group(0) @binding(3) var<storage, read_write> remainder: array<i32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  quotient[i] = a[i] / b[i];
  remainder[i] = a[i] % b[i];
}
// run: @main(a = [7, -7, 5, -2147483648, 0, 9, 1, -9], b = [2, 2, 0, -1, 0, -4, 1, 0],
//   quotient = zeros(8), remainder = zeros(8)) groups(1)
//   -> quotient == [3, -3, 5, -2147483648, 0, -2, 1, -9], remainder == [1, -1, 0, 0, 0, 1, 0, 0]

@compute @workgroup_size(1)
fn by_a_let() {
  let zero = 0;
  quotient[0] = a[0] / zero;
  let parts = vec2i(8, 9) / vec2i(2, zero);
  quotient[1] = parts.x + 10 * parts.y;
  remainder[0] = (vec3i(5) % zero).z;
}
// run: @by_a_let(a = [7], quotient = zeros(2), remainder = zeros(1)) groups(1) -> quotient == [7, 94], remainder == [0]
