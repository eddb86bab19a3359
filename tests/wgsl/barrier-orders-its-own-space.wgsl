// A barrier of the workgroup's memory does not order storage.
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  x[i] = i;
  workgroupBarrier();
  y[i] = x[7u - i]; // error[execution-only-barrier]: x
}
// run: @main(x = zeros(8), y = zeros(8)) groups(1)
