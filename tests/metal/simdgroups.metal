// Functions of a simdgroup.
#include <metal_stdlib>
using namespace metal;

kernel void lanes(device const float * x [[buffer(0)]], device float * sums [[buffer(1)]],
                  device int * least [[buffer(2)]], device uint * votes [[buffer(3)]],
                  uint i [[thread_position_in_grid]],
                  ushort lane [[thread_index_in_simdgroup]],
                  ushort group [[simdgroup_index_in_threadgroup]]) {
    const float sum = simd_sum(x[i]);
    const int low = simd_min(-(int) i);
    const float before = simd_shuffle_up(x[i], 1);
    const bool odd = simd_any(i % 2 == 1 && group == 1);
    if (lane == 0) {
        sums[group] = sum;
        least[group] = low;
        votes[group] = odd;
    }
    if (lane == 31) { sums[2 + group] = before; }
}
// run: @lanes(x = iota(64), sums = zeros(4), least = zeros(2), votes = zeros(2)) grid(64) threadgroup(64) simdgroup(32)
//   -> sums == [496, 1520, 30, 62], least == [-31, -63], votes == [0, 1]
