// Vectors as constants of the program, and conversions between the floats of 16 bits.
#include <metal_stdlib>
using namespace metal;

constexpr constant int3 steps = {3, 5, 7};
constexpr constant float4 weights[2] = {float4(1, 2, 3, 4), float4(0.5)};
static_assert(steps[1] == 5 && vec_elements<half3>::value == 3, "known before the kernel runs");

kernel void table(device const half * x [[buffer(0)]], device float * y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    const bfloat b = static_cast<bfloat>(x[i]);
    const float4 more = {x[i], x[i]};
    y[i] = static_cast<half>(b) * steps[i % 3] + weights[i % 2][i] + more[2];
}
// run: @table(x = [1, 2, 3, 257], y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [4, 10.5, 24, 768.5]
