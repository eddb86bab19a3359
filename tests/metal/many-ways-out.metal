// Loops with very many ways out, each of which does something of its own.
#include <metal_stdlib>
using namespace metal;

kernel void ways(device const int * x [[buffer(0)]], device int * y [[buffer(1)]], device int * z [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
    int v = x[i], w = 0;
    for (int j = 0; j < 60; ++j) {
        v = (v * 5 + 3) & 255;
        if (v == 8) { w += 100 + j; y[i] = v + 1; break; }
        if (v == 15) { w += 200 + j; break; }
        if (v == 22) { w += 300 + j; y[i] = v + 3; break; }
        if (v == 29) { w += 400 + j; break; }
        if (v == 36) { w += 500 + j; y[i] = v + 5; break; }
        if (v == 43) { w += 600 + j; break; }
        if (v == 50) { w += 700 + j; y[i] = v + 7; break; }
        if (v == 57) { w += 800 + j; break; }
        if (v == 64) { w += 900 + j; y[i] = v + 9; break; }
        if (v == 71) { w += 1000 + j; break; }
        if (v == 78) { w += 1100 + j; y[i] = v + 11; break; }
        if (v == 85) { w += 1200 + j; break; }
        if (v == 92) { w += 1300 + j; y[i] = v + 13; break; }
        if (v == 99) { w += 1400 + j; break; }
        if (v == 106) { w += 1500 + j; y[i] = v + 15; break; }
        if (v == 113) { w += 1600 + j; break; }
        if (v == 120) { w += 1700 + j; y[i] = v + 17; break; }
        if (v == 127) { w += 1800 + j; break; }
        if (v == 134) { w += 1900 + j; y[i] = v + 19; break; }
        if (v == 141) { w += 2000 + j; break; }
        w += 1;
    }
    z[i] = w * 1000 + v;
}

static int find(int v) {
    for (int r = 0; r < 3; ++r) {
        v += r;
        for (int j = 0; j < 30; ++j) {
            v = (v * 13 + 7) & 127;
            if (v == 53) { return v * 1 + j + 100 * r; }
            if (v == 56) { return v * 2 + j + 100 * r; }
            if (v == 59) { return v * 3 + j + 100 * r; }
            if (v == 62) { return v * 4 + j + 100 * r; }
            if (v == 65) { return v * 5 + j + 100 * r; }
            if (v == 68) { return v * 6 + j + 100 * r; }
            if (v == 71) { return v * 7 + j + 100 * r; }
            if (v == 74) { return v * 8 + j + 100 * r; }
            if (v == 77) { return v * 9 + j + 100 * r; }
            if (v == 80) { return v * 10 + j + 100 * r; }
            if (v == 83) { return v * 11 + j + 100 * r; }
            if (v == 86) { return v * 12 + j + 100 * r; }
            if (v == 89) { return v * 13 + j + 100 * r; }
            if (v == 92) { return v * 14 + j + 100 * r; }
            if (v == 95) { return v * 15 + j + 100 * r; }
            if (v == 98) { return v * 16 + j + 100 * r; }
            if (v == 101) { return v * 17 + j + 100 * r; }
            if (v == 104) { return v * 18 + j + 100 * r; }
            if (v < 8) { break; }
        }
        v ^= 1;
    }
    return -v;
}

kernel void loops(device const int * x [[buffer(0)]], device int * y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    int t = 0;
    for (int r = 0; r < 4; ++r) { t += find((x[i] + r) & 127); }
    y[i] = t;
}
// run: @ways(x = [3, 8, 21, 34, 55, 90, 144, 233], y = fill(8, -1), z = zeros(8)) grid(8) threadgroup(8)
//   -> y == [25, -1, 41, -1, 25, -1, -1, -1], z == [340022, 600043, 548036, 1820127, 300022, 2016141, 1824127, 1826127]
// run: @loops(x = [3, 8, 21, 34, 55, 90, 144, 233], y = zeros(8)) grid(8) threadgroup(8) -> y == [2569, 4402, 3541, 4752, 3207, 2352, 2802, 4569]
