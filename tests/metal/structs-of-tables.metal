// Structs with arrays that functions give by value, made of numbers and of tables.
#include <metal_stdlib>
using namespace metal;

constant uint SECOND[8] = {1, 2, 3, 4, 5, 6, 7, 8};

struct Number { uint limbs[8]; };
struct Point { Number x, y, z; };

static Number one() {
    Number n;
    n.limbs[0] = 5; n.limbs[1] = 6; n.limbs[2] = 7; n.limbs[3] = 8;
    n.limbs[4] = 9; n.limbs[5] = 10; n.limbs[6] = 11; n.limbs[7] = 12;
    return n;
}

static Number zero() {
    Number n;
    for (int k = 0; k < 8; ++k) n.limbs[k] = 0;
    return n;
}

static Number other() {
    Number n;
    for (int k = 0; k < 8; ++k) n.limbs[k] = SECOND[k];
    return n;
}

static Point nowhere() {
    Point p;
    p.x = one();
    p.y = other();
    p.z = zero();
    return p;
}

static bool is_nowhere(Point p) {
    uint any = 0;
    for (int k = 0; k < 8; ++k) any |= p.z.limbs[k];
    return any == 0;
}

static Number sum(Number a, Number b) {
    Number n;
    for (int k = 0; k < 8; ++k) n.limbs[k] = a.limbs[k] + b.limbs[k];
    return n;
}

static Point both(Point p, Point q) {
    if (is_nowhere(p)) return q;
    if (is_nowhere(q)) return p;
    Point r;
    r.x = sum(p.x, q.x);
    r.y = sum(p.y, q.y);
    r.z = sum(p.z, q.z);
    return r;
}

static Point times(Point p, uint word) {
    Point all = nowhere();
    Point base = p;
    for (uint bit = 0; bit < 4; ++bit) {
        if (word & 1) all = both(all, base);
        base = both(base, base);
        word >>= 1;
    }
    return all;
}

// So many loops that none is written out for its iterations.
#define EIGHT(WHAT) WHAT WHAT WHAT WHAT WHAT WHAT WHAT WHAT

kernel void walk(device const uint * words [[buffer(0)]], device const Point * in [[buffer(1)]], device Point * out [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
    Point p = in[i];
    EIGHT(EIGHT(p = times(p, 1);))
    out[i] = times(p, words[i]);
}
// run: @walk(words = [0, 5], in = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
//     1, 8, 15, 22, 29, 36, 43, 50, 57, 64, 71, 78, 85, 92, 99, 106, 113, 120, 127, 134, 141, 148, 155, 162], out = zeros(48)) grid(2) threadgroup(2)
//   -> out == [5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0,
//     5, 40, 75, 110, 145, 180, 215, 250, 285, 320, 355, 390, 425, 460, 495, 530, 565, 600, 635, 670, 705, 740, 775, 810]
