// Loops behind which the kernel ends: alone, in a condition, and around one another.
#include <metal_stdlib>
using namespace metal;

kernel void rows(device const int * x [[buffer(0)]], device int * y [[buffer(1)]],
                 constant int & count [[buffer(2)]],
                 uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    for (int at = i; at < count; at += n) { y[at] = 2 * x[at]; }
}
// run: @rows(x = iota(6), y = zeros(6), count = [5]) grid(2) threadgroup(2)
//   -> y == [0, 2, 4, 6, 8, 0]
// run: @rows(x = iota(6), y = zeros(6), count = [0]) grid(2) threadgroup(2)
//   -> y == [0, 0, 0, 0, 0, 0]

kernel void first(device const int * x [[buffer(0)]], device int * y [[buffer(1)]],
                  constant int & count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (x[i] > 2) {
        for (int row = 0; row < count; ++row) {
            for (int column = 0; column < count; ++column) {
                y[i] += 1;
                if (row * count + column == x[i]) { return; }
            }
        }
        return;
    }
    y[i] = 100;
    if (count > 3) { return; }
    while (true) {
        y[i] += 1;
        if (y[i] > 104 + (int) i) { return; }
    }
}
// run: @first(x = [1, 7, 3, 99], y = zeros(4), count = [3]) grid(4) threadgroup(4)
//   -> y == [105, 8, 4, 9]
// run: @first(x = [1, 7, 3, 99], y = zeros(4), count = [4]) grid(4) threadgroup(4)
//   -> y == [100, 8, 4, 16]
