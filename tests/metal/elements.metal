// Buffers, a struct in constant memory by its fields, and a number by reference.
#include <metal_stdlib>
using namespace metal;

struct Scale { float by; int first; short skip; float offsets[2]; };

kernel void scale(device const float * x [[buffer(0)]],
                  device float * y [[buffer(1)]],
                  constant Scale & scale [[buffer(2)]],
                  constant uint & count [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= count) { return; }
    y[i] = x[i + scale.first] * scale.by + scale.offsets[1] * scale.skip;
}
// run: @scale(x = iota(9), y = zeros(8), scale = [2.0, 1, 3, 0.0, 0.5], count = [6]) grid(8) threadgroup(4)
//   -> y == [3.5, 5.5, 7.5, 9.5, 11.5, 13.5, 0, 0]
