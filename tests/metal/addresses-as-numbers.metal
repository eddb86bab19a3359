// Of an address as a number the low bits are those of its distance from where the buffer begins.
#include <metal_stdlib>
using namespace metal;

kernel void k(device float * x [[buffer(0)]],
              device uint * z [[buffer(1)]],
              device float * y [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    device float * p = x + i;
    z[4 * i] = (uintptr_t(p) & 15) == 0;
    z[4 * i + 1] = ulong(p) % 8;
    z[4 * i + 2] = uint(reinterpret_cast<ulong>(p) - reinterpret_cast<ulong>(x));
    device float4 * down = (device float4 *)((ulong)p & ~15ul);
    z[4 * i + 3] = uint(down->y);
    if (((uint)(uintptr_t)p & 7) == 0 && (ulong)p != 0 && ulong(p) < ulong(x + 4)) {
        y[i] = 1;
    }
}
// run: @k(x = iota(8), z = zeros(32), y = zeros(8)) grid(8) threadgroup(8)
//   -> z == [1, 0, 0, 1, 0, 4, 4, 1, 0, 0, 8, 1, 0, 4, 12, 1, 1, 0, 16, 5, 0, 4, 20, 5, 0, 0, 24, 5, 0, 4, 28, 5]
//   -> y == [1, 0, 1, 0, 0, 0, 0, 0]
