// `bitcast` from vectors of `f16`, beside those from other types, in each other, and of a value that is computed once.
enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> f: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<vec2u>;
var<private> calls = 0u;

fn pair() -> vec2<f16> {
  calls += 1u;
  return vec2h(1.0h, -2.0h);
}

@compute @workgroup_size(1)
fn main() {
  let four = vec4<f16>(1.0h, 2.0h, 3.0h, 4.0h);
  let bits = bitcast<vec2<u32>>(four);
  y[0] = bits.x;
  y[1] = bits.y;
  y[2] = bitcast<u32>(pair());
  y[3] = bitcast<u32>(f[0]) + bitcast<u32>(bitcast<vec2h>(bitcast<i32>(y[4])));
  y[5] = calls;
  f[1] = bitcast<f32>(vec2h(0.0h, 1.0h));
  let again = bitcast<vec4<f16>>(bitcast<vec2i>(four));
  f[2] = f32(again.w);
}
// run: @main(y = [0, 0, 0, 0, 7, 0], f = [1, 0, 0]) groups(1)
//   -> y == [1073757184, 1140867584, 3221240832, 1065353223, 7, 1], f == [1, 0.0078125, 4]

@compute @workgroup_size(1)
fn parts() {
  var v = bitcast<vec4h>(z[0]);
  v.xy = bitcast<vec2h>(z[0].x).yx;
  z[1].yx = bitcast<vec2u>(v);
}
// run: @parts(z = [1073757184, 1140867584, 0, 0]) groups(1)
//   -> z == [1073757184, 1140867584, 1140867584, 1006649344]
