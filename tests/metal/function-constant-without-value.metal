#include <metal_stdlib>
using namespace metal;

constant int factor [[function_constant(0)]];

kernel void fill(device int * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[i] = factor; // error[function-constant]: `factor`
}
// run: @fill(y = zeros(4)) grid(4) threadgroup(4)
