// Atomics in structs and arrays, in storage and in the workgroup.
struct Bin { hits: atomic<u32>, low: atomic<i32> }
@group(0) @binding(0) var<storage, read_write> bins: array<Bin, 2>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> local_bins: array<atomic<u32>, 4>;
var<workgroup> winner: atomic<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
  atomicAdd(&bins[i % 2u].hits, i);
  atomicMin(&bins[i % 2u].low, -i32(i));
  atomicOr(&local_bins[i % 4u], 1u << i);
  let tried = atomicCompareExchangeWeak(&winner, 0u, 7u);
  workgroupBarrier();
  if i < 4u { y[i] = atomicLoad(&local_bins[i]); }
  if i == 0u { y[4] = atomicLoad(&winner); }
}
// run: @main(bins = zeros(2), y = zeros(5)) groups(1)
//   -> bins == [12, -6, 16, -7], y == [17, 34, 68, 136, 7]
