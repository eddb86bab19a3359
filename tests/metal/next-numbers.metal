// The number next to another.
#include <metal_stdlib>
using namespace metal;

kernel void next(device const float * x [[buffer(0)]], device const float * to [[buffer(1)]],
                 device uint * y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    y[i] = as_type<uint>(nextafter(x[i], to[i]));
}
// run: @next(x = [1, 1, -1, -1, 0, 0, 2], to = [2, 0, 0, -2, 1, -1, 2], y = zeros(7)) grid(7) threadgroup(7)
//   -> y == [1065353217, 1065353215, 3212836863, 3212836865, 1, 2147483649, 1073741824]
