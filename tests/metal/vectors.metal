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

// Steps of all components, in front and behind, and the sign that changes nothing.
kernel void steps(device int * y [[buffer(0)]]) {
    int3 a = int3(1, 2, 3);
    const int3 before = a++;
    y[0] = before.x * 10 + a.x;
    const int3 down = a--;
    y[1] = down.y * 10 + a.y;
    y[2] = (++a).z * 10 + (--a).z;
    y[3] = (+a).x;
    packed_char2 b = packed_char2(127, -128);
    b++;
    y[4] = b.x;
}
// run: @steps(y = zeros(5)) grid(1) threadgroup(1) -> y == [12, 32, 43, 1, -128]
