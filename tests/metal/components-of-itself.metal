// A vector that is assigned its own components in another order, also in place of some of them and in device memory.
#include <metal_stdlib>
using namespace metal;

kernel void k(device float4 * x [[buffer(0)]],
              device float4 * y [[buffer(1)]],
              device float * z [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    float4 v = x[i];
    v.wzyx = v;
    y[i] = v;
    x[i].yxwz = x[i];
    float3 p = y[i].xyz;
    p.zyx = p;
    p.xy *= p.yx;
    z[3 * i] = p.x;
    z[3 * i + 1] = p.y;
    z[3 * i + 2] = p.z;
    half2 h = half2(v.xy);
    h.yx = h;
    y[i].w = h.x;
}
// run: @k(x = [1, 10, 100, 1000], y = zeros(4), z = zeros(3)) grid(1) threadgroup(1)
//   -> x == [10, 1, 1000, 100], y == [1000, 100, 10, 100], z == [1000, 1000, 1000]
