// Functions of a simdgroup where not all of its threads come are over those that do.
#include <metal_stdlib>
using namespace metal;

kernel void sums(device const uint * x [[buffer(0)]], device uint * y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    if (x[i] > 2) { y[i] = simd_sum(x[i]); }
}
// run: @sums(x = iota(8), y = zeros(8)) groups(1) threadgroup(8) simdgroup(32) -> y == [0, 0, 0, 25, 25, 25, 25, 25]

kernel void firsts(device uint * y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    if (i >= 5) { if (simd_is_first()) { y[0] = i; } }
    if (i % 2 == 1) { y[i] = simd_is_first() ? 1 : 2; }
}
// run: @firsts(y = zeros(32)) groups(1) threadgroup(32) simdgroup(32) -> y == [5, 1, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2]

kernel void all_come(device uint * y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    if (simd_is_first()) { y[i / 32] = i + 1; }
}
// run: @all_come(y = zeros(2)) groups(1) threadgroup(64) simdgroup(32) -> y == [1, 33]
