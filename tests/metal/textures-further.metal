// Samples further and of levels that gradients lead to, levels between limits, components, comparisons, cubes, arrays, and
// atomics on texels.
#include <metal_stdlib>
using namespace metal;

kernel void offsets(texture2d<float> picture [[texture(0)]], texture1d<float> row [[texture(1)]],
                    texture3d<float> volume [[texture(2)]], depth2d<float> map [[texture(3)]],
                    sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {
    constexpr sampler nearest(coord::pixel);
    y[0] = picture.sample(nearest, float2(0.5, 0.5), int2(1, 0)).x;
    y[1] = picture.sample(nearest, float2(1.5, 1.5), int2(-1, -1)).x;
    y[2] = picture.sample(how, float2(0.25, 0.25), level(0), int2(0, 1)).x;
    y[3] = volume.sample(nearest, float3(0.5, 0.5, 0.5), int3(0, 0, 1)).x;
    y[4] = row.sample(nearest, 2.5, -2).x;
    const float4 four = picture.gather(how, float2(0.5, 0.5), int2(1, 0), component::y);
    y[5] = four.x * 1000 + four.y * 100 + four.z * 10 + four.w;
    constexpr sampler nearer(coord::pixel, compare_func::less);
    y[6] = map.sample_compare(nearer, float2(0.5, 0.5), 2.5f, int2(1, 0));
    const float4 which = map.gather_compare(nearer, float2(0.5, 0.5), 2.5f, int2(1, 0));
    y[7] = which.x * 1000 + which.y * 100 + which.z * 10 + which.w;
}
// run: @offsets(picture = texture(rg32float, 2, 2, [1, 2, 3, 4, 5, 6, 7, 8]), row = texture(r32float, 3, 1, [1, 2, 3]),
//   volume = texture(r32float, 1, 1, 2, [1, 2]), map = texture(depth32float, 2, 1, [2, 3]), how = sampler(), y = zeros(8)) grid(1) threadgroup(1)
//   -> y == [3, 1, 5, 2, 1, 8844, 1, 1111]

// Half way along x two texels of the first level are as far apart as samples: its level is 1. Limits keep it there, or lower.
kernel void levels(texture2d<float> picture [[texture(0)]], texture2d_array<float> frames [[texture(1)]],
                   device float *y [[buffer(0)]]) {
    constexpr sampler mixed(filter::linear, mip_filter::linear);
    const float2 middle = float2(0.5, 0.5);
    y[0] = picture.sample(mixed, middle, gradient2d(float2(1, 0), float2(0, 0))).x;
    y[1] = frames.sample(mixed, middle, 1, gradient2d(float2(0, 0), float2(0.5, 0))).x;
    constexpr sampler least(filter::linear, mip_filter::linear, lod_clamp(0.5, 4));
    y[2] = picture.sample(least, middle, level(0)).x;
    constexpr sampler most(filter::linear, mip_filter::linear, lod_clamp(0, 0.25f));
    y[3] = picture.sample(most, middle, level(1)).x;
    y[4] = picture.get_width(1) * 10 + picture.get_num_mip_levels();
}
// run: @levels(picture = texture(r32float, 2, 1, levels 2, [10, 10, 30]), frames = texture(r32float, 2, 1, 2, levels 2, [1, 1, 2, 2, 3, 4]),
//   y = zeros(5)) grid(1) threadgroup(1)
//   -> y == [30, 2, 20, 15, 12]

// Levels of a volume have half the slices; gradients of three numbers lead to one, and those of a direction.
kernel void volumes(texture3d<float> deep [[texture(0)]], texture3d<float, access::write> made [[texture(1)]],
                    texturecube<float> sky [[texture(2)]], depthcube_array<float> shadows [[texture(3)]],
                    device float *y [[buffer(0)]]) {
    constexpr sampler nearest(mip_filter::nearest);
    constexpr sampler nearer(mip_filter::nearest, compare_func::less);
    y[0] = deep.read(uint3(0, 0, 1), 1).x;
    y[1] = deep.get_depth(1) * 10 + deep.get_num_mip_levels();
    y[2] = deep.sample(nearest, float3(0.5), level(2)).x;
    y[3] = deep.sample(nearest, float3(0.5), gradient3d(float3(0, 0, 0.5), float3(0))).x;
    y[4] = sky.sample(nearest, float3(1, 0, 0), gradientcube(float3(0, 1, 0), float3(0))).x;
    y[5] = shadows.sample_compare(nearer, float3(1, 0, 0), 1, 53.5f, gradientcube(float3(0, 4, 0), float3(0)));
    y[6] = shadows.sample_compare(nearer, float3(1, 0, 0), 1, 54.5f, gradientcube(float3(0, 4, 0), float3(0)));
    made.write(float4(9), uint3(0, 0, 1), 1);
}
// run: @volumes(deep = texture3d(r32float, 1, 1, 4, levels 3, [1, 2, 3, 4, 5, 6, 7]), made = texture3d(r32float, 1, 1, 4, levels 2),
//   sky = texture(r32float, 4, 4, 6, levels 3, iota(126)), shadows = texture(depth32float, 2, 2, 12, levels 2, iota(60)), y = zeros(7)) grid(1) threadgroup(1)
//   -> y == [6, 23, 7, 6, 99, 1, 0], made == [0, 0, 0, 0, 0, 9]

kernel void cubes(texturecube<float> sky [[texture(0)]], texturecube_array<uint> skies [[texture(1)]],
                  depthcube<float> shadow [[texture(2)]], depthcube_array<float> shadows [[texture(3)]],
                  depth2d_array<float> maps [[texture(4)]], texture1d_array<int> rows [[texture(5)]],
                  device float *y [[buffer(0)]]) {
    constexpr sampler nearest(filter::nearest);
    constexpr sampler nearer(compare_func::less);
    y[0] = sky.sample(nearest, float3(-1, 0, 0)).x;
    y[1] = skies.sample(nearest, float3(0, 0, 1), 1).x;
    y[2] = skies.read(uint2(0, 0), 5, 0).x;
    y[3] = skies.get_array_size();
    y[4] = shadow.sample_compare(nearer, float3(0, 1, 0), 1.5f);
    y[5] = shadows.sample_compare(nearer, float3(0, 1, 0), 1, 8.5f, level(0));
    y[6] = maps.sample(nearest, float2(0.5, 0.5), 1);
    y[7] = maps.gather(nearest, float2(0.5, 0.5), 1).x;
    y[8] = rows.read(1, 1).x;
    y[9] = rows.sample(nearest, 0.25, 1).x;
}
// run: @cubes(sky = texture(r32float, 1, 1, 6, iota(6)), skies = texture(r8uint, 1, 1, 12, iota(12)),
//   shadow = texture(depth32float, 1, 1, 6, iota(6)), shadows = texture(depth32float, 1, 1, 12, iota(12)),
//   maps = texture(depth32float, 1, 1, 2, [3, 4]), rows = texture(r8sint, 2, 1, 2, [1, 2, 3, 4]), y = zeros(10)) grid(1) threadgroup(1)
//   -> y == [1, 10, 5, 2, 1, 0, 4, 4, 4, 3]

// A gather of a cube goes around on its face: in the middle of +x, and between +x and +z.
kernel void gathers(texturecube<float> sky [[texture(0)]], texturecube_array<uint> skies [[texture(1)]],
                    depthcube<float> shadow [[texture(2)]], depthcube_array<float> shadows [[texture(3)]],
                    sampler how [[sampler(0)]], device float4 *y [[buffer(0)]]) {
    constexpr sampler nearer(compare_func::less);
    y[0] = sky.gather(how, float3(1, 0, 0));
    y[1] = sky.gather(how, float3(1, 0, 1), component::y);
    y[2] = float4(skies.gather(how, float3(1, 0, 0), 1));
    y[3] = shadow.gather(how, float3(1, 0, 1));
    y[4] = shadow.gather_compare(nearer, float3(1, 0, 0), 1.5f);
    y[5] = shadows.gather_compare(nearer, float3(1, 0, 0), 1, 25.5f);
}
// run: @gathers(sky = texture(rg32float, 2, 2, 6, iota(48)), skies = texture(r8uint, 2, 2, 12, iota(48)),
//   shadow = texture(depth32float, 2, 2, 6, iota(24)), shadows = texture(depth32float, 2, 2, 12, iota(48)), how = sampler(linear), y = zeros(24)) grid(1) threadgroup(1)
//   -> y == [4, 6, 2, 0, 39, 5, 1, 35, 26, 27, 25, 24, 19, 2, 0, 17, 1, 1, 0, 0, 1, 1, 0, 0]

kernel void histogram(texture2d<float, access::read> picture [[texture(0)]],
                      texture1d<uint, access::read_write> bins [[texture(1)]],
                      uint2 at [[thread_position_in_grid]]) {
    bins.atomic_fetch_add(uint(picture.read(at).x * 255), uint4(1));
}
// run: @histogram(picture = texture(r8unorm, 2, 2, [0, 3, 3, 3]), bins = texture(r32uint, 4, 1)) grid(2, 2) threadgroup(2, 2)
//   -> bins == [1, 0, 0, 3]

kernel void atomics(texture2d_array<int, access::read_write> cells [[texture(0)]], device int *y [[buffer(0)]]) {
    cells.atomic_store(int4(7), uint2(0, 0), 1);
    y[0] = cells.atomic_fetch_min(uint2(0, 0), 1, int4(-3)).x;
    y[1] = cells.atomic_load(uint2(0, 0), 1).x;
    y[2] = cells.atomic_exchange(uint2(0, 0), 1, int4(6)).x;
    int4 expected = int4(6);
    y[3] = cells.atomic_compare_exchange_weak(uint2(0, 0), 1, &expected, int4(9));
    expected = int4(5);
    y[4] = cells.atomic_compare_exchange_weak(uint2(0, 0), 1, &expected, int4(4));
    y[5] = expected.x;
    cells.atomic_fetch_or(uint2(0, 0), 1, int4(2));
    cells.atomic_fetch_xor(uint2(0, 0), 1, int4(1));
    cells.atomic_fetch_and(uint2(0, 0), 1, int4(14));
    cells.atomic_fetch_sub(uint2(0, 0), 1, int4(3));
    y[6] = cells.atomic_fetch_max(uint2(0, 0), 1, int4(100)).x;
}
// run: @atomics(cells = texture(r32sint, 1, 1, 2), y = zeros(7)) grid(1) threadgroup(1)
//   -> y == [7, -3, -3, 1, 0, 9, 7], cells == [0, 100]

kernel void races(texture2d<uint, access::read_write> cells [[texture(0)]], device uint *y [[buffer(0)]],
                  uint i [[thread_position_in_grid]]) {
    cells.atomic_fetch_add(uint2(0, 0), uint4(1));
    y[i] = cells.read(uint2(0, 0)).x; // error[data-race]: cells
}
// run: @races(cells = texture(r32uint, 1, 1), y = zeros(8)) grid(8) threadgroup(8)

kernel void whether(texture2d<float> picture [[texture(0)]], device int *y [[buffer(0)]]) {
    y[0] = is_null_texture(picture) ? 1 : 2;
}
// run: @whether(picture = texture(r8unorm, 1, 1), y = zeros(1)) grid(1) threadgroup(1) -> y == [2]
