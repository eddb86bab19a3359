// A kernel that a macro writes has the address spaces that it says.
#include <metal_stdlib>
using namespace metal;

#define COPY(NAME, T) \
kernel void NAME( \
    constant uint &n, \
    device const T *x, \
    device T *y, \
    uint i [[thread_position_in_grid]] \
) { \
    threadgroup T room[4]; \
    room[i] = x[i]; \
    if (i < n) { y[i] = room[i]; } \
}
COPY(copy_f32, float)
COPY(copy_u32, uint)
// run: @copy_f32(n = [3], x = iota(4), y = zeros(4)) grid(4) threadgroup(4) -> y == [0, 1, 2, 0]
// run: @copy_u32(n = [2], x = iota(4), y = zeros(4)) grid(4) threadgroup(4) -> y == [0, 1, 0, 0]
