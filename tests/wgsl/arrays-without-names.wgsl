// An array that is no variable is called by the name of its `let`, or as it is written.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
const ZEROS = array<u32, 50>();

@compute @workgroup_size(4)
fn reads(@builtin(local_invocation_index) i: u32) {
  var zeros = array<u32, 20>();
  let table = array<u32, 30>();
  zeros[i] = table[i + 40u]; // error[out-of-bounds]: of `table`, which has 30
  let sums = array<u32, 3>(1, 2, i);
  y[i] = zeros[i] + array<u32, 40>()[i * 50u]; // error[out-of-bounds]: of `array<u32, 40>()`, which has 40
  y[i] += sums[i]; // error[out-of-bounds]: of `sums`, which has 3
  y[i] += ZEROS[i + 50u]; // error[out-of-bounds]: of `ZEROS`, which has 50
}
// run: @reads(y = zeros(4)) groups(1)
