// Rows by an array of pointers, in loops that are written out.
#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                 constant uint & columns [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
    device const float * rows[4];
    for (int r = 0; r < 4; ++r) { rows[r] = x + r * columns; }
    float total[4] = { 0 };
    for (uint c = i; c < columns; c += 2) {
        for (int r = 0; r < 4; ++r) { total[r] += rows[r][c]; }
    }
    for (int r = 0; r < 4; ++r) { y[4 * i + r] = total[r]; }
}
// run: @sums(x = iota(16), y = zeros(8), columns = [4]) grid(2) threadgroup(2)
//   -> y == [2, 10, 18, 26, 4, 12, 20, 28]

// The author says how many iterations are written out as one: all of them, once with the test in front, once behind.
kernel void counted(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                    constant uint & columns [[buffer(2)]],
                    uint i [[thread_position_in_grid]]) {
    device const float * rows[4];
#pragma unroll(4)
    for (int r = 0; r < 4; ++r) { rows[r] = x + r * columns + i; }
    float total[4] = { 0 };
    for (uint c = i; c < columns; c += 2) {
#pragma unroll(4)
        for (int r = 0; r < 4; ++r) {
            total[r] += *rows[r];
            rows[r] += 2;
        }
    }
    int r = 0;
#pragma unroll(4)
    do { y[4 * i + r] = total[r] + *(rows[r] - 2); } while (++r < 4);
}
// run: @counted(x = iota(16), y = zeros(8), columns = [4]) grid(2) threadgroup(2)
//   -> y == [4, 16, 28, 40, 7, 19, 31, 43]
