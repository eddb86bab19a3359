// Rows at a stride in bytes that is not a multiple of what is accessed there.
#include <metal_stdlib>
using namespace metal;

struct Rows { ulong stride; };

kernel void sums(device const char * x [[buffer(0)]], device float * y [[buffer(1)]],
                 constant Rows & rows [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const float * row = (device const float *) (x + i * rows.stride);
    y[i] = row[0] + row[1]; // error[misaligned-access]: accesses 4 bytes at byte 6, which is not a multiple of 4
}
// run: @sums(x = iota(8), y = zeros(2), rows = [8]) grid(2) threadgroup(2) -> y == [1, 5]
// run: @sums(x = iota(8), y = zeros(2), rows = [6]) grid(2) threadgroup(2) -> y == [1, 3]

// Bytes and wider words of one object.
kernel void words(device const uchar * x [[buffer(0)]], device uint * y [[buffer(1)]],
                  constant uint & first [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const uint low = *(device const ushort *) (x + first + 2 * i); // error[misaligned-access]: accesses 2 bytes at byte 1
    y[i] = low + x[2 * i];
}
// run: @words(x = [1, 0, 2, 0, 3], y = zeros(2), first = [0]) grid(2) threadgroup(2) -> y == [2, 4]
// run: @words(x = [1, 0, 2, 0, 3], y = zeros(2), first = [1]) grid(2) threadgroup(2) -> y == [513, 770]
