// Packed vectors go wherever vectors do, and so does a scalar for all components of one.
#include <metal_stdlib>
using namespace metal;

kernel void geometric(device const packed_float3 * p [[buffer(0)]], device float * y [[buffer(1)]]) {
    const float3x3 m = float3x3(float3(p[2]) + 1, -p[2], float3(p[0]));
    y[0] = length(p[0]);
    y[1] = normalize(p[1]).z;
    y[2] = cross(p[0], p[1]).y + cross(p[0], float3(3, 0, 4)).y;
    y[3] = reflect(p[0], float3(0, 1, 0)).y + reflect(float3(1, 2, 2), p[2]).y;
    y[4] = refract(p[2], -float3(p[2]), 0.5).y;
    y[5] = faceforward(p[0], p[1], p[2]).x;
    y[6] = dot(float4(1, 2, 3, 4), 1.0f) + dot(2.0f, p[0]);
    y[7] = (m * p[0]).z;
    y[8] = (p[0] * m).z;
    y[9] = any(isnan(p[0])) || any(isinf(p[1]));
}
// run: @geometric(p = [1, 2, 2, 3, 0, 4, 0, -1, 0], y = zeros(10)) grid(1) threadgroup(1)
//   -> y == [3, 0.8, 4, -4, -1, -1, 20, 5, 9, 0]
