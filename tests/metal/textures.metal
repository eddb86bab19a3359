// Textures and samplers: texels, samples, sizes and levels, and samplers of the source and of the host.
#include <metal_stdlib>
using namespace metal;

constexpr sampler by_texels(coord::pixel, address::clamp_to_zero, filter::nearest);

static float4 brighter(texture2d<float, access::read> picture, uint2 at) {
    return picture.read(at) + 1.0;
}

kernel void brighten(texture2d<float, access::read> picture [[texture(0)]],
                     texture2d<float, access::write> bright [[texture(1)]],
                     uint2 at [[thread_position_in_grid]]) {
    if (at.x >= bright.get_width() || at.y >= bright.get_height()) return;
    bright.write(brighter(picture, at), at);
}
// run: @brighten(picture = texture(r8unorm, 2, 2, [0, 255, 255, 0]), bright = texture(r32float, 2, 2)) grid(4, 4) threadgroup(4, 4)
//   -> bright == [1, 2, 2, 1]

kernel void sampled(texture2d<float> picture [[texture(0)]], sampler how [[sampler(0)]],
                    device float *y [[buffer(0)]]) {
    constexpr sampler smooth(filter::linear, address::repeat);
    y[0] = picture.sample(smooth, float2(0.5, 0.5)).x;
    y[1] = picture.sample(by_texels, float2(1.5, 0.5)).x;
    y[2] = picture.sample(by_texels, float2(-3, 0)).x;
    y[3] = picture.sample(how, float2(1.25, 0.25)).x;
    y[4] = picture.sample(how, float2(0.1, 0.1), level(1)).x;
    const float4 four = picture.gather(smooth, float2(0.5, 0.5));
    y[5] = four.x * 1000 + four.y * 100 + four.z * 10 + four.w;
}
// run: @sampled(picture = texture(r32float, 2, 2, levels 2, [2, 4, 6, 8, 9]), how = sampler(repeat, mip_nearest), y = zeros(6)) grid(1) threadgroup(1)
//   -> y == [5, 4, 0, 2, 9, 6842]

kernel void others(texture2d_array<uint> frames [[texture(0)]], texture3d<int, access::read> volume [[texture(1)]],
                   texture1d<half, access::read> line [[texture(2)]], texturecube<float> sky [[texture(3)]],
                   depth2d<float> shadow [[texture(4)]], texture_buffer<ushort> row [[texture(5)]],
                   device float *y [[buffer(0)]]) {
    y[0] = frames.read(uint2(1, 0), 1).x;
    y[1] = frames.get_array_size();
    y[2] = volume.read(uint3(0, 0, 1)).x;
    y[3] = volume.get_depth();
    y[4] = line.read(2).x;
    y[5] = sky.sample(sampler(filter::nearest), float3(0, -1, 0)).x;
    y[6] = shadow.sample_compare(sampler(coord::pixel, compare_func::less), float2(0.5, 0.5), 1.5f);
    y[7] = shadow.read(uint2(1, 0));
    y[8] = row.read(1).x + 100 * row.get_width();
    y[9] = sky.get_width() + shadow.sample(sampler(address::clamp_to_border, border_color::opaque_white), float2(2, 0));
}
// run: @others(frames = texture(r8uint, 2, 1, 2, [1, 2, 3, 4]), volume = texture(r8sint, 1, 1, 2, [5, 6]),
//   line = texture(r16float, 3, 1, [7, 8, 9]), sky = texture(r32float, 1, 1, 6, iota(6)),
//   shadow = texture(depth32float, 2, 1, [2, 3]), row = texture(r16uint, 3, 1, [7, 8, 9]), y = zeros(10)) grid(1) threadgroup(1)
//   -> y == [4, 2, 6, 2, 9, 3, 1, 3, 308, 2]

// A texture is chosen while the kernel runs.
kernel void chosen(texture2d<float, access::read> first [[texture(0)]],
                   texture2d<float, access::read> second [[texture(1)]],
                   device float *y [[buffer(0)]], constant uint &which [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    y[i] = (i < which ? first : second).read(uint2(i, 0)).x;
}
// run: @chosen(first = texture(r32float, 2, 1, [1, 2]), second = texture(r32float, 2, 1, [3, 4]), y = zeros(2), which = [1]) grid(2) threadgroup(2)
//   -> y == [1, 4]

// What was written is read through the barrier's flag.
kernel void neighbours(texture2d<uint, access::read_write> sums [[texture(0)]], device uint *y [[buffer(0)]],
                       uint i [[thread_position_in_threadgroup]]) {
    sums.write(uint4(i), uint2(i, 0));
    threadgroup_barrier(mem_flags::mem_texture);
    y[i] = sums.read(uint2(7 - i, 0)).x;
}
// run: @neighbours(sums = texture(r32uint, 8, 1), y = zeros(8)) grid(8) threadgroup(8) -> y == [7, 6, 5, 4, 3, 2, 1, 0]

kernel void races(texture2d<uint, access::read_write> sums [[texture(0)]], device uint *y [[buffer(0)]],
                  uint i [[thread_position_in_threadgroup]]) {
    sums.write(uint4(i), uint2(i, 0));
    threadgroup_barrier(mem_flags::mem_device);
    y[i] = sums.read(uint2(7 - i, 0)).x; // error[execution-only-barrier]: sums
}
// run: @races(sums = texture(r32uint, 8, 1), y = zeros(8)) grid(8) threadgroup(8)
