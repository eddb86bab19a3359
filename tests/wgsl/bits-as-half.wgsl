// `bitcast` to vectors of f16; places behind one stay where they are.
enable f16;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

fn scale_of(bits: u32) -> f16 { return bitcast<vec2<f16>>(bits).y; }

@compute @workgroup_size(1)
fn main() {
  y[0] = f32(bitcast<vec2h>(x[0]).x) + f32(scale_of(x[0]));
  let four = bitcast<vec4<f16>>(vec2u(x[1], bitcast<u32>(bitcast<f32>(x[2]))));
  y[1] = f32(four.x); y[2] = f32(four.w);
  y[3] = f32(bitcast<vec2h>(1.0).y); let v = bitcast<vec2h>(x[3]); y[4] = f32(v.x) + y[6]; // error[out-of-bounds]: y
}
// run: @main(x = [3221240832, 1107311616, 939541504, 15360], y = zeros(5)) groups(1) -> y == [-1, 1, 0.5, 1.875, 1]
