// Headers that hosts share with kernels, calls without effect, and what such headers call types.
#include <TargetConditionals.h>
#include <metal_stdlib>
#include <simd/simd.h>
using namespace metal;

#if !TARGET_OS_OSX || TARGET_OS_SIMULATOR
#error neither
#endif

struct Place {
    vector_float4 at;
    matrix_float2x2 turn;
    simd_float2 size;
    simd::float3 last;
};

kernel void shared(constant Place & p [[buffer(0)]], device float * y [[buffer(1)]]) {
    assert(p.size.x == 3);
    y[0] = p.at.w + p.size.y + p.last.z;
    y[1] = (p.turn * simd_float2(1, 2)).x;
}
// run: @shared(p = fill(1, 2), y = zeros(2)) grid(1) threadgroup(1)
//   -> y == [6, 6]
