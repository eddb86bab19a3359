// Members of structs and unions that are called as components of a vector are, of a vector beside them too.
#include <metal_stdlib>
using namespace metal;

struct Circle { float2 xy; float r; };
typedef union { float4 xyzw; struct { float2 rg, ba; }; } Both;
template <typename T> struct Pair { T xx, yy[2]; T sum() const { return xx + yy[1]; } };

float2 twice(Circle c) { return 2 * c.xy; }

kernel void k(device const Circle * circles [[buffer(0)]],
              device float4 * y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
    struct Local { float3 xyz; } local = { .xyz = float3(circles[i].r) };
    Circle a = circles[i];
    a.xy += 1;
    a.xy.x = a.xy.y;
    device const Circle * p = circles + i;
    float2 v = p->xy.yx + twice(a);
    v.xy = v.yx;
    Both b;
    b.xyzw = float4(v, local.xyz.xy);
    b.ba = b.rg.yx;
    Pair<float> pair = {1, {2, 3}};
    pair.yy[1] += 1;
    y[i] = b.xyzw + pair.sum();
}
// run: @k(circles = [1, 2, 3, 4], y = zeros(4)) grid(1) threadgroup(1)
//   -> y == [12, 13, 13, 12]
