enable f16;
struct Mixed { a: f16, b: f32, c: vec3h, d: f16 }
@group(0) @binding(0) var<storage, read> x: array<Mixed>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(1)
fn main() {
  let m = x[0];
  y[0] = f32(m.a * 2.0h);
  y[1] = m.b;
  y[2] = f32(m.c.z + m.d);
}
// Each f16 that the struct skips is a number of the list, too.
// run: @main(x = [1.5, 0, 2.5, 3, 4, 5, 6], y = zeros(3)) groups(1) -> y == [3, 2.5, 11]
