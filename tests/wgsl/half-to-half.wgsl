// `bitcast` from a vector of `f16` to its own type, beside those from and to other types.
enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(1)
fn main() {
  let two = vec2<f16>(1.0h, -2.0h);
  let four = bitcast<vec4<f16>>(vec4<f16>(two, two));
  y[0] = bitcast<u32>(bitcast<vec2<f16>>(two));
  y[1] = bitcast<u32>(bitcast< vec2h >(y[2]));
  let bits = bitcast<vec2u>(four);
  y[3] = u32(all(bits == vec2u(y[0])));
}
// run: @main(y = [0, 0, 7, 0]) groups(1) -> y == [3221240832, 7, 7, 1]
