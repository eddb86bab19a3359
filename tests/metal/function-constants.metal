// Function constants, and one that has no value.
#include <metal_stdlib>
using namespace metal;

constant bool wide [[function_constant(0)]];
constant int factor [[function_constant(1)]];
constant int other [[function_constant(2)]];
constant int chosen = is_function_constant_defined(other) ? other : 5;

kernel void fill(device int * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (wide) { y[i] = factor * (int) i + chosen; } else { y[i] = other; }
}
// run: @fill(y = zeros(4)) grid(4) threadgroup(4) const(wide = true, factor = 3)
//   -> y == [5, 8, 11, 14]
