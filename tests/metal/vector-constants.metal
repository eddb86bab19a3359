// Function constants of vector types are lists.
// const: dims=[1, 20]
// const: on=[true, false, true]
#include <metal_stdlib>
using namespace metal;

constant uint2 dims [[function_constant(0)]];
constant bool3 on [[function_constant(1)]];

kernel void sums(device uint * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] = dims.x * 100 + dims.y + (on.z && !on.y ? i : 7);
}
// run: @sums(x = zeros(2)) grid(2) threadgroup(2) -> x == [120, 121]
