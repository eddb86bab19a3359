// Vectors: components, swizzles on both sides, comparisons, and functions of each component.
#include <metal_stdlib>
using namespace metal;

kernel void vectors(device const float4 * x [[buffer(0)]], device float4 * y [[buffer(1)]],
                    device packed_float3 * z [[buffer(2)]],
                    uint2 at [[thread_position_in_grid]]) {
    const uint i = at.x;
    float4 v = x[i];
    v.xy = v.yx + 0.5;
    v.w *= 2;
    y[i] = select(v, max(v, float4(2)), v > 1.0);
    z[i] = clamp(v.zyx, 0.0, 3.0) * as_type<float>(0x40000000);
    z[i].x += dot(v.xy, float2(1, 2));
}
// run: @vectors(x = iota(8), y = zeros(8), z = zeros(6)) grid(2) threadgroup(2)
//   -> y == [2, 0.5, 2, 6, 5.5, 4.5, 6, 14], z == [6.5, 1, 3, 20.5, 6, 6]
