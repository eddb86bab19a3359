// A kernel that asks whether two parameters are one buffer is told so by the launch.
#include <metal_stdlib>
using namespace metal;

kernel void add(device const float * x [[buffer(0)]], device const float * mask [[buffer(1)]],
                device float * y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const float * more = mask != x ? mask : nullptr;
    y[i] = x[i] + (more ? more[i] : 0.5f);
}
// run: @add(x = iota(4), mask = iota(4), y = zeros(4), "mask.is.x" = [0]) grid(4) threadgroup(4) -> y == [0, 2, 4, 6]
// run: @add(x = iota(4), mask = iota(4), y = zeros(4), "mask.is.x" = [1]) grid(4) threadgroup(4) -> y == [0.5, 1.5, 2.5, 3.5]
