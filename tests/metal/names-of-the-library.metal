// Functions of the source that are called as ones of the library, and limits of integers.
#include <metal_stdlib>
using namespace metal;

static inline float simd_sum(float x) { return 2 * x; }
template <typename T> inline float dot(T a, T b) { return a.x + b.x; }

kernel void k(device float * y [[buffer(0)]],
              uint i [[thread_position_in_grid]]) {
    y[i] = simd_sum(float(i)) + dot(float2(1, 2), float2(3, 4)) + (INT_MAX + INT_MIN) + CHAR_BIT;
}
// run: @k(y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [18, 20, 22, 24]
