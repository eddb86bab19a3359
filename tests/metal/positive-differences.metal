// How much more one number is than another, of each float; numbers of bfloat; and bfloats of a quadgroup.
#include <metal_stdlib>
using namespace metal;

kernel void more(device const float *x, device const float *than, device float *y,
                 uint i [[thread_position_in_grid]]) {
    y[3 * i] = fdim(x[i], than[i]);
    y[3 * i + 1] = fdim(half(x[i]), half(than[i]));
    y[3 * i + 2] = fdim(bfloat2(x[i]), bfloat2(than[i])).y + float(1.5bf) + float(2BF);
}
// run: @more(x = [1, 5, -1, inf], than = [2, 3, -4, 1], y = zeros(12)) grid(4) threadgroup(4)
//   -> y == [0, 0, 3.5, 2, 2, 5.5, 3, 3, 6.5, inf, inf, inf]

kernel void quads(device const bfloat *x, device float *y, uint i [[thread_position_in_grid]]) {
    const bfloat sum = quad_sum(x[i]), most = quad_max(x[i]), least = quad_min(x[i]);
    y[i] = float(sum) + 100 * float(most) + 1000 * float(least) + 10000 * float(quad_broadcast_first(x[i]))
        + 100000 * float(simd_broadcast_first(x[i])) + 1000000 * float(quad_shuffle_xor(x[i], 1));
}
// run: @quads(x = [1, 2, 3, 4, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], y = zeros(32))
//   grid(32) threadgroup(32) simdgroup(32) -> y == [2111410, 1111410, 4111410, 3111410, 3122514, 2122514, 5122514, 4122514, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000]
