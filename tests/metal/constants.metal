// Vectors as constants of the program, and conversions between the floats of 16 bits.
#include <metal_stdlib>
using namespace metal;

constexpr constant int3 steps = {3, 5, 7};
constexpr constant float4 weights[2] = {float4(1, 2, 3, 4), float4(0.5)};
static_assert(steps[1] == 5 && vec_elements<half3>::value == 3, "known before the kernel runs");

kernel void table(device const half * x [[buffer(0)]], device float * y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    const bfloat b = static_cast<bfloat>(x[i]);
    const float4 more = {x[i], x[i]};
    y[i] = static_cast<half>(b) * steps[i % 3] + weights[i % 2][i] + more[2];
}
// run: @table(x = [1, 2, 3, 257], y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [4, 10.5, 24, 768.5]

// Vectors made of vectors, conversions and matrices outside of functions.
constant float4 joined = float4(float3(1, 2, 3), 4);
constant float4 parted = float4(1, float2(2, 3), 4);
constant float2 converted[2] = {float2(int2(3, 4)), float2(half2(5, 6))};
constant packed_float3 packed_rows[2] = {packed_float3(1, 2, 3), float3(4)};
constant float2x2 numbers = float2x2(1, 2, 3, 4);
constant float2x2 columns = float2x2(float2(1, 2), float2(3, 4));
constant half3x3 diagonal = half3x3(5.0h);
constant float2x2 several[2] = {float2x2(1, 2, 3, 4), float2x2(5, 6, 7, 8)};

kernel void outside_of_functions(device float * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[0] = joined.z * 10 + joined.w;
    y[1] = parted.y * 10 + parted.z;
    y[2] = converted[0].y * 10 + converted[i + 1].x;
    y[3] = packed_rows[i].y * 10 + packed_rows[i + 1].z;
    y[4] = numbers[1][0] * 10 + columns[0][1];
    y[5] = diagonal[2][2] * 10 + diagonal[1][0];
    y[6] = several[i + 1][1][0];
}
// run: @outside_of_functions(y = zeros(7)) grid(1) threadgroup(1) -> y == [34, 23, 45, 24, 32, 50, 7]

// What functions of the library give is known before the kernel runs.
constant int bits = popcount(0xf0u) + max(3, 4) + clz(1u) + ctz(8u);
constant uint3 clamped = clamp(uint3(1, 5, 9), 2u, 8u);
constant float root = sqrt(2.0f);
constant float3 axis = normalize(float3(0, 3, 4));
constant float rounded[] = {floor(-1.5f), ceil(-1.5f), trunc(-1.5f), abs(-1.5f), fmin(1.0f, NAN), sign(-2.0f), saturate(3.0f)};
constant half halved = fmax(0.25h, 0.5h);
static_assert(max(int2(1, 2), 2)[0] == 2 && sqrt(1e-40f) > 0.99e-20f && rsqrt(4.0f) == 0.5f && floor(-0.0f) == 0, "");

kernel void of_functions(device float * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[0] = bits;
    y[1] = clamped.x * 100 + clamped.y * 10 + clamped.z;
    y[2] = root;
    y[3] = axis.z + halved;
    for (uint k = 0; k < 7; ++k) {
        y[4 + k] = rounded[i + k];
    }
}
// run: @of_functions(y = zeros(11)) grid(1) threadgroup(1)
//   -> y == [42, 258, 1.4142135, 1.3, -2, -1, -1, 1.5, 1, -1, 1]

// Constants that are made of others.
constant int2 base = int2(3, 4);
constant int4 joined_to = int4(base, 5, 6);
constant float third = 1.0f / 3;
constant float3 thirds = float3(third, base.y, third * 2) * 3;
constant packed_float3 packed_thirds = thirds;
constant float2x2 rows_of = float2x2(float2(third), thirds.zy);

kernel void of_others(device float * y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[0] = joined_to[i] * 100 + joined_to[i + 1] * 10 + joined_to[i + 3];
    y[1] = thirds[i] + thirds[i + 1] * 10;
    y[2] = packed_thirds[i + 2];
    y[3] = rows_of[i + 1].y;
}
// run: @of_others(y = zeros(4)) grid(1) threadgroup(1) -> y == [346, 121, 2, 12]
