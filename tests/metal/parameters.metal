// Parameters that are there only with a function constant, and a position that the kernel assigns to.
#include <metal_stdlib>
using namespace metal;

constant bool has_bias [[function_constant(0)]];
constant bool has_mask [[function_constant(1)]];
constant bool has_both = has_bias && has_mask;

kernel void add(device float * y [[buffer(0)]],
                device const float * bias [[buffer(1), function_constant(has_bias)]],
                device const float * mask [[buffer(2), function_constant(has_mask)]],
                constant int & both [[buffer(3), function_constant(has_both)]],
                uint3 at [[thread_position_in_grid]]) {
    float x = at.x;
    if (has_bias) { x += bias[at.x]; }
    if (has_mask) { x *= mask[at.x]; }
    if (has_both) { x *= both; }
    const uint i = at.x;
    at.x += 1;
    at.y = 10;
    y[i] = x + at.x + at[i % 2] + at.z;
}
// run: @add(y = zeros(4), bias = [10, 20, 30, 40]) grid(4) threadgroup(2)
//   const(has_bias = true, has_mask = false)
//   -> y == [12, 33, 38, 57]
