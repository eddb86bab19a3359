// Constructors that do nothing of their own, of each address space, leave a list of members; arrays in threadgroup
// memory as parameters are addresses.
#include <metal_stdlib>
using namespace metal;

template <typename T>
struct Pair {
    T most;
    uint count;

    constexpr Pair<T>() = default;
    constexpr Pair<T>() threadgroup = default;
};

struct Sum {
    float total;
    Sum() = default;
    Sum() threadgroup = default;
    Sum(float first) : total(first) {}
};

template <typename T>
Pair<T> joined(Pair<T> a, Pair<T> b) {
    return Pair<T> { max(a.most, b.most), a.count + b.count };
}

template <typename T>
static Pair<T> reduced(uint t, threadgroup Pair<T> shared[32], threadgroup float also[32]) {
    for (uint half_size = 16; half_size > 0; half_size /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < half_size) {
            shared[t] = joined(Pair<T>(shared[t]), Pair<T>(shared[t + half_size]));
            also[t] += also[t + half_size];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return shared[0];
}

kernel void reduce(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                   uint t [[thread_position_in_threadgroup]]) {
    threadgroup Pair<float> shared[32];
    threadgroup float also[32];
    shared[t] = Pair<float> { x[t], 1 };
    Sum first(x[t]);
    also[t] = first.total;
    const Pair<float> all = reduced<float>(t, shared, also);
    if (t == 0) {
        y[0] = all.most;
        y[1] = all.count;
        y[2] = also[0];
    }
}
// run: @reduce(x = iota(32), y = zeros(3)) grid(32) threadgroup(32) -> y == [31, 32, 496]
