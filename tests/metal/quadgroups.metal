// Functions of a quadgroup: four threads that follow one another; the first eight threads say what they got.
#include <metal_stdlib>
using namespace metal;

kernel void quads(device int * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    const int x = i + 1;
    int all[8];
    all[0] = quad_product(x);
    all[1] = quad_prefix_inclusive_sum(x);
    all[2] = quad_shuffle_rotate_up(x, 1);
    all[3] = quad_shuffle_and_fill_up(x, -x, 1);
    all[4] = quad_broadcast_first(int2(x, 7)).x;
    all[5] = (uint)quad_ballot(x % 3 == 0) + 16 * quad_any(x == 6) + 32 * quad_all(x > 4) + 64 * quad_is_first();
    all[6] = simd_shuffle_and_fill_down(x, -x, 1, 8);
    all[7] = quad_xor(x);
    if (i < 8) {
        for (uint k = 0; k < 8; ++k) y[8 * k + i] = all[k];
    }
}
// run: @quads(y = zeros(64)) grid(32) threadgroup(32) simdgroup(32)
//   -> y == [24, 24, 24, 24, 1680, 1680, 1680, 1680, 1, 3, 6, 10, 5, 11, 18, 26,
//     4, 1, 2, 3, 8, 5, 6, 7, -4, 1, 2, 3, -8, 5, 6, 7,
//     1, 1, 1, 1, 5, 5, 5, 5, 68, 4, 4, 4, 114, 50, 50, 50,
//     2, 3, 4, 5, 6, 7, 8, -1, 4, 4, 4, 4, 12, 12, 12, 12]
