// A pointer that leads to one of several objects, chosen in the kernel.
#include <metal_stdlib>
using namespace metal;

kernel void concat(device const float * a [[buffer(0)]], device const float * b [[buffer(1)]],
                   device float * y [[buffer(2)]], device float * z [[buffer(3)]],
                   constant uint & split [[buffer(4)]],
                   uint i [[thread_position_in_grid]]) {
    device const float * from;
    if (i < split) { from = a + i; } else { from = b + (i - split); }
    device float * to = i % 2 == 0 ? y : z;
    to[i / 2] = *from;
}
// run: @concat(a = iota(4), b = [10, 11, 12, 13], y = zeros(4), z = zeros(4), split = [3]) grid(7) threadgroup(7)
//   -> y == [0, 2, 11, 13], z == [1, 10, 12, 0]

// Atomics and simdgroup matrices of one of several objects.
kernel void count(device atomic_uint * even [[buffer(0)]], device atomic_uint * odd [[buffer(1)]],
                  device uint * before [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device atomic_uint * to = i % 2 == 0 ? even : odd;
    const uint old = atomic_fetch_add_explicit(to, i, memory_order_relaxed);
    if (i == 1) { before[0] = old; }
}
// run: @count(even = [100], odd = [200], before = zeros(1)) grid(2) threadgroup(2) -> even == [100], odd == [201], before == [200]

kernel void matrices(device const float * x [[buffer(0)]], device float * first [[buffer(1)]],
                     device float * second [[buffer(2)]], constant uint & which [[buffer(3)]]) {
    simdgroup_float8x8 m;
    simdgroup_load(m, x, 8);
    simdgroup_store(m, which == 0 ? first : second, 8);
}
// run: @matrices(x = iota(64), first = zeros(64), second = zeros(64), which = [1]) groups(1) threadgroup(32) simdgroup(32)
//   -> first == zeros(64), second == iota(64)
