// Functions of a simdgroup where not all of its threads come are over those that do.
#include <metal_stdlib>
using namespace metal;

kernel void sums(device const uint * x [[buffer(0)]], device uint * y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    if (x[i] > 2) { y[i] = simd_sum(x[i]); }
}
// run: @sums(x = iota(8), y = zeros(8)) groups(1) threadgroup(8) simdgroup(32) -> y == [0, 0, 0, 25, 25, 25, 25, 25]
