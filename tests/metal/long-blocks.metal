// Blocks of thousands of instructions, in a loop and outside, with variables that are structs.
#include <metal_stdlib>
using namespace metal;

struct S {
    int a;
    uint b;
    int c[2];
};

#define ONCE { S s; s.a = w; s.b = v; s.c[0] = w + 1; w = (w * 3 + s.a + s.c[0]) & 1023; v = ((v ^ (s.b >> 1)) + w) & 4095; }
#define FOUR(x) x x x x

kernel void k(device int * y [[buffer(0)]], device uint * z [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    int w = int(i);
    uint v = i + 5;
    for (int j = 0; j < 3; ++j) {
        w += j;
        FOUR(FOUR(FOUR(FOUR(ONCE))))
    }
    y[i] = w;
    z[i] = v;
    FOUR(FOUR(FOUR(FOUR(ONCE))))
    y[i + 8] = w;
}
// run: @k(y = zeros(16), z = zeros(8)) grid(8) threadgroup(8)
//   -> y == [259, 260, 261, 262, 263, 264, 265, 266, 3, 4, 5, 6, 7, 8, 9, 10], z == [3545, 1273, 375, 2056, 1081, 3611, 1960, 155]
