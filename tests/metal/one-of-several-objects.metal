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
