// Jumps out of loops and of loops in loops, short circuits, and a `switch`.
#include <metal_stdlib>
using namespace metal;

static int classify(int x) {
    switch (x % 5) {
        case 0: return 10;
        case 1: x += 1; // goes on
        case 2: return 20 + x;
        default: break;
    }
    return x > 12 && x % 2 == 0 || x == 4 ? 30 : 40;
}

static int search(device const int * x, int wanted) {
    for (int row = 0; row < 4; ++row) {
        for (int column = 0; column < 4; ++column) {
            if (x[4 * row + column] == wanted) { return 10 * row + column; }
            if (x[4 * row + column] > 100) { break; }
        }
    }
    return -1;
}

kernel void jumps(device const int * x [[buffer(0)]], device int * y [[buffer(1)]], device int * z [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
    y[i] = classify((int) i);
    z[i] = search(x, (int) i);
    int steps = 0;
    uint n = i + 1;
    while (true) {
        if (n == 1) { break; }
        if (n % 2 == 0) { n /= 2; steps += 1; continue; }
        n = 3 * n + 1;
        do { steps += 1; } while (steps < 0);
    }
    z[i] += 100 * steps;
}
// run: @jumps(x = [3, 0, 7, 1, 2, 101, 4, 5, 6, 9, 8, 8, 8, 8, 8, 8], y = zeros(8), z = zeros(8)) grid(8) threadgroup(4)
//   -> y == [10, 22, 22, 40, 30, 10, 27, 27], z == [1, 103, 710, 200, 499, 799, 1620, 302]
