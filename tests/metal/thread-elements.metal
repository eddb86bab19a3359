// Elements of simdgroup matrices by lane: taken out, changed where lanes differ, and put back; a diagonal matrix;
// and a matrix in memory that is also read by halves of its elements.
#include <metal_stdlib>
using namespace metal;

kernel void elements(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                     device float * z [[buffer(2)]],
                     ushort lane [[thread_index_in_simdgroup]]) {
    simdgroup_float8x8 m;
    simdgroup_load(m, x, 8);
    thread auto & own = m.thread_elements();
    own += float(100 * lane);
    if (lane < 40) { own[1] += 0.5; }
    simdgroup_store(m, y, 8);
    simdgroup_store(simdgroup_float8x8(3.f), z, 8);
}
// run: @elements(x = iota(64), y = zeros(64), z = zeros(64)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [0, 1.5, 102, 103.5, 804, 805.5, 906, 907.5, 208, 209.5, 310, 311.5, 1012, 1013.5, 1114, 1115.5, 416, 417.5, 518, 519.5, 1220, 1221.5, 1322, 1323.5, 624, 625.5, 726, 727.5, 1428, 1429.5, 1530, 1531.5, 1632, 1633.5, 1734, 1735.5, 2436, 2437.5, 2538, 2539.5, 1840, 1841.5, 1942, 1943.5, 2644, 2645.5, 2746, 2747.5, 2048, 2049.5, 2150, 2151.5, 2852, 2853.5, 2954, 2955.5, 2256, 2257.5, 2358, 2359.5, 3060, 3061.5, 3162, 3163.5], z == [3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3]

kernel void halves(threadgroup char * room [[threadgroup(0)]], device float * y [[buffer(0)]],
                   ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup half * as_halves = (threadgroup half *) room;
    threadgroup float * as_floats = (threadgroup float *) room;
    as_halves[2 * lane] = 0;
    as_halves[2 * lane + 1] = 1;
    as_halves[2 * lane + 64] = 0;
    as_halves[2 * lane + 65] = 2;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 m;
    simdgroup_load(m, as_floats, 8);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_store(m, as_floats, 8, ulong2(0), true);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[lane] = as_floats[2 * lane] + as_floats[2 * lane + 1];
}
// run: @halves(room = length(256), y = zeros(32)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0, 0.015625, 0.015625, 4.0, 4.0]
