// The report stands where the function reads, and names the call.
var<workgroup> tile: array<f32, 64>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

fn neighbour(i: u32) -> f32 {
  return tile[min(i + 1u, 63u)]; // error[data-race]: tile
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
  tile[i] = x[i];
  y[i] = neighbour(i);
}
// run: @main(x = random(64, 1), y = zeros(64)) groups(1)
