// What compilers to Metal's language write: arrays of one that stand for any length, masks as numbers, shifts by
// vectors of another sign, `volatile` components, hints and attributes of pictures.
#include <metal_stdlib>
using namespace metal;

typedef float any_length[1];
struct Head { uint n; };
struct Counted { uint n; char gap[12]; any_length rows; };
struct Corner { float4 place [[position]]; float lit [[user(locn1), center_perspective]]; float w [[user(shade)]]; };

kernel void arrays(device any_length const & x [[buffer(0)]], device Counted & c [[buffer(1)]], device float * y [[buffer(2)]]) {
    y[0] = x[1] + x[3];
    c.rows[1] = 7;
    y[1] = c.rows[1];
}
// run: @arrays(x = [1, 2, 3, 4], c = zeros(24), y = zeros(2)) grid(1) threadgroup(1) -> y == [6, 7]

kernel void masks(device ulong * y [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    ulong odd = (uint64_t)simd_ballot((i & 1) == 1);
    uint4 all = uint4((uint)((uint64_t)simd_active_threads_mask() & 0xFFFFFFFF), 0, 0, 0);
    if (__builtin_expect(i == 0, 1)) { y[0] = odd; y[1] = all.x; y[2] = simd_is_helper_thread(); }
}
// run: @masks(y = zeros(3)) grid(32) threadgroup(32) simdgroup(32) -> y == [2863311530, 4294967295, 0]

kernel void shifts(device int2 * y [[buffer(0)]], device ushort2 * z [[buffer(1)]]) {
    int2 a = int2(-8, 3) << uint2(1, 2);
    y[0] = a;
    y[1] = a >> uint2(2);
    a <<= uint2(1);
    y[2] = a;
    z[0] = ushort2(1, 0x8001) << uint2(15, 1);
}
// run: @shifts(y = zeros(6), z = zeros(2)) grid(1) threadgroup(1) -> y == [-16, 12, -4, 3, -32, 24], z == [32768, 2]

struct Lit { float4 colour; };

kernel void seen(volatile device Lit & s [[buffer(0)]], coherent device float4 * y [[buffer(1)]],
                 volatile coherent(system) device float2 * z [[buffer(2)]]) {
    s.colour = float4(1, 2, 3, 4);
    y[0] = s.colour * 2;
    y[1] = 1 - s.colour;
    z[0] = y[0].xy;
    z[0].y = z[0][0] + 1;
}
// run: @seen(s = zeros(4), y = zeros(8), z = zeros(2)) grid(1) threadgroup(1)
//   -> s == [1, 2, 3, 4], y == [2, 4, 6, 8, 0, -1, -2, -3], z == [2, 3]

kernel void cleared(device atomic_uint * counts [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    atomic_store_explicit(&counts[i], i + 5, memory_order_relaxed);
}
// run: @cleared(counts = zeros(2)) grid(2) threadgroup(2) -> counts == [5, 6]
