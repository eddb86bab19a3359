// Several components of a vector are assigned at once, each once; the value is computed before any is stored.
requires swizzle_assignment;

struct Pair { xy: vec2u, v: vec4u }
@group(0) @binding(0) var<storage, read_write> y: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> m: mat3x4f;
@group(0) @binding(2) var<storage, read_write> columns: array<vec4f>;
var<private> calls: u32;
const ORIGIN = vec2(7, 8);

fn next() -> u32 {
  calls += 1u;
  return calls - 1u;
}

fn turned(v: ptr<function, vec4u>) -> vec2u {
  (*v).w += 1u;
  return (*v).yx;
}

@compute @workgroup_size(1)
fn assigns() {
  var v = vec4u(1, 2, 3, 4);
  v.xy = v.yx;
  y[0] = v; // 2 1 3 4
  v.rgb *= vec3(10);
  v.zw -= 1u;
  y[1] = v; // 20 10 29 3
  v.wz = vec2(5, 6);
  y[2] = v; // 20 10 6 5
  v.xy = ORIGIN;
  v.yz.yx = vec2(1, 2);
  v.zyw.z = 9u;
  y[3] = v; // 7 2 1 9
  v.xz = turned(&v);
  y[4] = v; // 2 2 7 10
}
// run: @assigns(y = zeros(5)) groups(1)
//   -> y == [2, 1, 3, 4, 20, 10, 29, 3, 20, 10, 6, 5, 7, 2, 1, 9, 2, 2, 7, 10]

@compute @workgroup_size(1)
fn reaches() {
  var p: Pair;
  p.xy = vec2u(1, 2);
  p.v.yz = p.xy;
  p.xy.yx = p.xy;
  p.xy.yx = p.xy.xy;
  let v = &p.v;
  (*v).xw = vec2u(8, 9);
  v.wx += vec2u(1, 2);
  y[next()].zy = vec2u(next(), calls);
  y[1].xyz <<= vec3u(1, 2, 3);
  y[2] = p.v; // 10 1 2 10
  m[calls].wx = vec2f(0.5, 1.5);
  for (var i = 0u; i < 4u; i++) { m[0].yzw = m[0].xyz + f32(i); }
  for (var i = 0u; i < 3u; i++) { columns[i] = m[i]; }
}
// run: @reaches(y = [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], m = zeros(1), columns = zeros(3)) groups(1)
//   -> y == [0, 2, 1, 0, 2, 4, 8, 1, 10, 1, 2, 10], columns == [0, 3, 5, 6, 0, 0, 0, 0, 1.5, 0, 0, 0.5]

@compute @workgroup_size(4)
fn races(@builtin(local_invocation_index) i: u32) {
  y[i / 2u].xw = vec2u(i, 1u); // error[data-race]: y[
}
// run: @races(y = zeros(2)) groups(1)
