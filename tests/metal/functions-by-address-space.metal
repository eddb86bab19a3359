// Functions and methods that only address spaces distinguish, where all do the same: also with other names of
// parameters, and in branches of conditions. Which of them a call means makes no difference.
#include <metal_stdlib>
using namespace metal;

static float first(device const float * x, uint i) { return x[i]; }
static float first(threadgroup const float * t, uint k) { return t[k]; }

#ifdef NOWHERE
static float second(threadgroup const float * x, uint i) { return 100 * x[i]; }
#else
static float second(device const float * x, uint i) { return 2 * x[i]; }
#endif

struct Row {
    float v[2];
    thread float & operator[](const int i) { return v[i]; }
    device float & operator[](const int i) device { return v[i]; }
    float operator[](const int i) const device { return v[i]; }
public:
    float last() const thread { return v[1]; }
    float last() const device { return v[1]; }
#ifdef NOWHERE
    float sum() const device { return 0; }
#else
    float sum() const device { return v[0] + v[1]; }
#endif
};

kernel void sums(device const float * x [[buffer(0)]], device Row * r [[buffer(1)]], device float * y [[buffer(2)]],
                 uint i [[thread_position_in_threadgroup]]) {
    threadgroup float t[4];
    t[i] = x[i];
    Row own;
    own[0] = first(x, i);
    own[1] = first(t, i);
    r[i] = own;
    r[i][1] += 1;
    y[i] = second(x, i) + own.last() + 10 * r[i].sum();
}
// run: @sums(x = [1, 2, 3, 4], r = zeros(8), y = zeros(4)) grid(4) threadgroup(4) -> y == [33, 56, 79, 102]
