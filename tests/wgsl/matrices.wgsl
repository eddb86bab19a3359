struct Frame { m: mat3x3f, t: mat2x4f }
@group(0) @binding(0) var<storage, read> frames: array<Frame>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<private> kept: mat2x2f;

fn scaled(m: mat3x3f, by: f32) -> mat3x3f { return m * by; }

@compute @workgroup_size(1)
fn main() {
  let f = frames[0];
  let v = f.m * vec3f(1.0, 2.0, 3.0);
  y[0] = v.x;
  y[1] = v.y;
  y[2] = (vec3f(1.0, 0.0, 0.0) * f.m).z;
  y[3] = scaled(f.m, 2.0)[1][2];
  y[4] = transpose(f.t)[3].y;
  kept[1] = vec2f(5.0, 6.0);
  kept[0].y = 4.0;
  y[5] = determinant(kept);
  var k = 2u;
  y[6] = frames[0].m[k].x + frames[0].t[1][k];
}
// run: @main(frames = [1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 13, 14, 15, 16, 17], y = zeros(7)) groups(1)
//   -> y == [30, 36, 7, 12, 17, -20, 23]
