// Code of a template whose results go nowhere: an array that this instance does not have, and is passed on as null.
#include <metal_stdlib>
using namespace metal;

template <bool WITH_PLACES>
static void least(threadgroup const int * values, threadgroup const int * places, device int * y, uint i) {
    int value[2], place[2];
    for (int k = 0; k < 2; ++k) { value[k] = 1000; place[k] = -1; }
    for (uint k = 0; k < 32; ++k) {
        const bool is_less = values[k] < value[i % 2];
        value[i % 2] = is_less ? values[k] : value[i % 2];
        place[i % 2] = is_less ? places[k] : place[i % 2];
    }
    y[i] = value[i % 2];
    if (WITH_PLACES) { y[i + 32] = place[i % 2]; }
}

kernel void plain(device const int * x [[buffer(0)]], device int * y [[buffer(1)]],
                  uint i [[thread_position_in_threadgroup]]) {
    threadgroup int values[32];
    values[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    least<false>(values, nullptr, y, i);
}
// run: @plain(x = iota(32), y = fill(32, 7)) grid(32) threadgroup(32)
//   -> y == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]

kernel void mixed(device const half * x [[buffer(0)]], device half * y [[buffer(1)]]) {
    simdgroup_half8x8 a, sum(1.h);
    simdgroup_load(a, x, 8);
    simdgroup_multiply_accumulate(sum, simdgroup_float8x8(2.f), a, sum);
    simdgroup_store(sum, y, 8);
}
// run: @mixed(x = iota(64), y = zeros(64)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [1, 2, 4, 6, 8, 10, 12, 14, 16, 19, 20, 22, 24, 26, 28, 30, 32, 34, 37, 38, 40, 42, 44, 46, 48, 50, 52, 55, 56, 58, 60, 62, 64, 66, 68, 70, 73, 74, 76, 78, 80, 82, 84, 86, 88, 91, 92, 94, 96, 98, 100, 102, 104, 106, 109, 110, 112, 114, 116, 118, 120, 122, 124, 127]
