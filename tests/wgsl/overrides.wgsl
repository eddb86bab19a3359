override tile = 4u;
override twice_tile = tile * 2u;
@id(7) override factor: f32 = 1.5;
override negate: bool = false;
var<workgroup> shared_tile: array<f32, twice_tile>;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(twice_tile)
fn main(@builtin(local_invocation_index) i: u32) {
  shared_tile[i] = f32(i) * factor;
  workgroupBarrier();
  let v = shared_tile[twice_tile - 1u - i];
  y[i] = select(v, -v, negate);
}
// run: @main(y = zeros(8)) groups(1) -> y == [10.5, 9, 7.5, 6, 4.5, 3, 1.5, 0]
// run: @main(y = zeros(8)) groups(1) const(factor = 2.0, negate = true) -> y == [-14, -12, -10, -8, -6, -4, -2, -0.0]
