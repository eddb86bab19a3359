// Functions of the library that are made of others, of scalars and of components, where a scalar stands for all of them.
#include <metal_stdlib>
using namespace metal;

kernel void whole(device int * y [[buffer(0)]], device uint * u [[buffer(1)]], device long * l [[buffer(2)]]) {
    y[0] = absdiff(-3, 4);
    y[1] = addsat(0x7fffffff, 1);
    y[2] = subsat(-0x7fffffff, 2);
    y[3] = hadd(3, 4);
    y[4] = rhadd(3, 4);
    y[5] = madsat(0x10000, 0x10000, 1);
    y[6] = mulhi(short(0x4000), short(8));
    y[7] = median3(9, 1, 5);
    y[8] = addsat(char(100), char(100));
    y[9] = insert_bits(0, 5, 4, 3);
    y[10] = extract_bits(int2(0x70, 0xf0), 4, 4).y;
    y[11] = mad24(3, 4, 5) + mul24(6, 7);
    u[0] = subsat(3u, 5u);
    u[1] = addsat(0xffffffffu, 1u);
    u[2] = addsat(uint4(1, 2, 3, 0xffffffff), 2u).w;
    u[3] = popcount(uint2(7, 15)).y + clz(uint2(1, 2)).y + ctz(uint2(1, 8)).y;
    u[4] = rotate(uint2(1, 0x80000000), uint2(1, 1)).y;
    u[5] = reverse_bits(uint2(1, 2)).x;
    u[6] = madhi(0x80000000u, 4u, 1u);
    l[0] = mulhi(-1l, 5l);
    l[1] = madsat(0x4000000000000000l, 2l, 0l);
    l[2] = addsat(-0x7fffffffffffffffl, -5l);
}
// run: @whole(y = zeros(12), u = zeros(7), l = zeros(3)) grid(1) threadgroup(1)
//   -> y == [7, 2147483647, -2147483648, 3, 4, 2147483647, 2, 5, 127, 80, -1, 59],
//      u == [0, 4294967295, 4294967295, 37, 1, 2147483648, 3], l == [-1, 9223372036854775807, -9223372036854775808]

kernel void decimal(device float * y [[buffer(0)]], device const float4 * v [[buffer(1)]]) {
    const float4 a = v[0], b = v[1];
    y[0] = smoothstep(0.0, 4.0, a).z;
    y[1] = smoothstep(0, 2, 1.0f);
    y[2] = distance(a, b);
    y[3] = distance_squared(a.xy, b.xy);
    y[4] = length_squared(b);
    y[5] = reflect(float2(1, -1), float2(0, 1)).y;
    y[6] = refract(float2(0, -1), float2(0, 1), 0.5).y;
    y[7] = faceforward(float2(0, 1), float2(0, 1), float2(0, 1)).y;
    y[8] = determinant(-float2x2(1, 2, 3, 4));
    y[9] = determinant(float3x3(2, 0, 0, 0, 3, 0, 0, 0, 4));
    y[10] = determinant(float4x4(1, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 5));
    float c;
    y[11] = precise::sincos(0.0f, c) + c;
    int e;
    y[12] = frexp(12.0f, e) * 100 + e;
    y[13] = ilogb(12.0f) + ilogb(half(0.25)) + ilogb(1e-40f) + 133;
    y[14] = fmedian3(3.0, 1.0, 2.0) + fmin3(a, 1.0f, b).w * 10 + fmax3(a, b, 3.0).x * 100;
    y[15] = select(a, -1.0f, a > 1.5f).z + select(7.0f, a, a > 1.5f).x;
    y[16] = isnormal(1e-40f) + 2 * isordered(1.0, NAN) + 4 * isunordered(1.0, NAN) + 8 * signbit(half(-0.0h));
    float4 whole;
    y[17] = modf(a + 0.25, whole).w + whole.w;
    y[18] = fma(a, 2.0f, b).x + ldexp(half2(1, 3), 2).y;
    y[19] = all(isfinite(a)) && any(isunordered(a, float4(1, 2, 3, NAN)));
}
// run: @decimal(y = zeros(20), v = [0, 1, 2, 3, 1, 2, 3, 4]) grid(1) threadgroup(1)
//   -> y == [0.5, 0.5, 2, 2, 30, 1, -1, -1, -2, 24, -10, 1, 79, 1, 312, 6, 12, 3.25, 13, 1]

kernel void packing(device uint * y [[buffer(0)]], device float4 * v [[buffer(1)]]) {
    y[0] = pack_float_to_unorm4x8(float4(0, 1, 0.5, 2));
    y[1] = pack_float_to_snorm4x8(float4(-1, 1, -2, 0));
    y[2] = pack_float_to_unorm2x16(float2(1, 0));
    y[3] = pack_half_to_snorm2x16(half2(-1, 1));
    y[4] = pack_float_to_unorm10a2(float4(1, 0, 1, 1));
    y[5] = pack_float_to_srgb_unorm4x8(float4(0, 1, 0.5, 0));
    v[0] = unpack_unorm4x8_to_float(0xff00ff00);
    v[1] = unpack_snorm4x8_to_float(0x00817f80);
    v[2].xy = unpack_unorm2x16_to_float(0x0000ffff);
    v[2].zw = float2(unpack_snorm2x16_to_half(0x80007fff));
    v[3] = unpack_unorm10a2_to_float(0xfff003ff);
    v[4] = unpack_unorm4x8_srgb_to_float(0x80ff00ff);
}
// run: @packing(y = zeros(6), v = zeros(20)) grid(1) threadgroup(1)
//   -> y == [4286643968, 8486785, 65535, 2147450881, 4293919743, 12386048],
//      v == [0, 1, 0, 1, -1, 1, -1, 0, 1, 0, 1, -1, 1, 0, 1, 1, 1, 0, 1, 0.5019608]
