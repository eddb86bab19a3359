// A buffer that the host leaves out has no elements, and its address is null.
#include <metal_stdlib>
using namespace metal;

kernel void add(device const float * x [[buffer(0)]], device const float * bias [[buffer(1)]],
                device float * y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    y[i] = bias ? x[i] + bias[i] : -x[i];
    if (bias != nullptr) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
// run: @add(x = iota(4), bias = zeros(0), y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [-0.0, -1, -2, -3]
// run: @add(x = iota(4), bias = fill(4, 2), y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [2, 3, 4, 5]
