// Loops over arrays of pointers that also end early, and ends of the kernel on both sides of a condition.
#include <metal_stdlib>
using namespace metal;

kernel void rows(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                 constant uint & count [[buffer(2)]],
                 threadgroup float * room [[threadgroup(0)]],
                 ushort lane [[thread_index_in_simdgroup]]) {
    if (count > 100) {
        const float all = simd_sum(x[lane]);
        if (lane == 0) { y[0] = all; }
        return;
    }
    threadgroup float * places[3];
    for (short row = 0; row < 3; ++row) {
        places[row] = room + 32 * row;
        places[row][lane] = x[lane] * row;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort row = 0; row < 3 && row < count; ++row) {
        const float sum = simd_sum(places[row][31 - lane]);
        if (lane == 0) { y[row] = sum; }
    }
}
// run: @rows(x = iota(32), y = zeros(3), count = [2], room = length(96)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [0, 496, 0]
// run: @rows(x = iota(32), y = zeros(3), count = [9], room = length(96)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [0, 496, 992]
// run: @rows(x = iota(32), y = zeros(3), count = [200], room = length(96)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [496, 0, 0]
