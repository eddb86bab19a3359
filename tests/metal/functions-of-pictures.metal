// Functions of pictures stand beside kernels in a file: they are left out, with what only they have.
#include <metal_stdlib>
using namespace metal;

struct Corner {
    float4 position [[position]];
    float2 at;
    float size [[point_size]];
};

constant float4 corners[3] = {float4(-1, -1, 0, 1), float4(3, -1, 0, 1), float4(-1, 3, 0, 1)};

static float4 scaled(float4 v, float by) { return v * by; }

vertex Corner triangle(uint i [[vertex_id]], constant float &by [[buffer(0)]]) {
    Corner corner;
    corner.position = scaled(corners[i], by);
    corner.at = corners[i].xy;
    corner.size = 1;
    return corner;
}

fragment half4 shade(Corner in [[stage_in]], texture2d<half> picture [[texture(0)]]) {
    if (in.at.x < 0) {
        discard_fragment();
    }
    constexpr sampler s(filter::linear);
    return picture.sample(s, in.at);
}

template <typename T>
fragment float4 flat_of(Corner in [[stage_in]]) {
    return float4(T(1));
}
template [[host_name("flat_of_half")]] fragment float4 flat_of<half>(Corner in [[stage_in]]);

vertex float4 declared(uint i [[vertex_id]]);

// run: @doubled(y = iota(4)) groups(1) threadgroup(4) -> y == [0, 2, 4, 6]
kernel void doubled(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[i] = scaled(float4(y[i]), 2).x;
}
