@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  x[i] = i;
  storageBarrier();
  y[i] = x[7u - i];
}
// run: @main(x = zeros(8), y = zeros(8)) groups(1) -> y == [7, 6, 5, 4, 3, 2, 1, 0]
