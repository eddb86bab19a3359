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

// Pointers that come of one choice are in one object, whichever it is: they have an order and a distance.
kernel void strided(device const float * a [[buffer(0)]], device const float * b [[buffer(1)]],
                    device float * y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const float * p = i % 2 == 0 ? a : b;
    device const float * end = p + 8;
    float sum = 0;
    for (device const float * q = p + i; q < end; q += 3) { sum += *q; }
    device const float * last = end - 1;
    y[i] = sum + 100 * float(last - (p + i)) + 1000 * last[-int(i)];
}
// run: @strided(a = iota(8), b = fill(8, 1), y = zeros(4)) grid(4) threadgroup(4) -> y == [7709, 1603, 5507, 1402]

// Of others is known whether they are one place.
kernel void places(device const float * a [[buffer(0)]], device const float * b [[buffer(1)]],
                   device float * y [[buffer(2)]], constant uint & n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    device const float * p = i < n ? a : b;
    device const float * q = i % 2 == 0 ? a : b;
    y[i] = p == q ? *p : -1;
    if (p + n != q + 2) { y[i] += 100; }
}
// run: @places(a = [1], b = [2], y = zeros(4), n = [2]) grid(4) threadgroup(4) -> y == [1, 99, 99, 2]
