// Threadgroup memory that the host sizes, as a parameter without `[[threadgroup(n)]]`.
#include <metal_stdlib>
using namespace metal;

static float sum(threadgroup const float * all, uint n) {
    float s = 0;
    for (uint i = 0; i < n; ++i) s += all[i];
    return s;
}

kernel void sums(device const float * x, device float * y, threadgroup float * all, uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]],
                 uint g [[threadgroup_position_in_grid]]) {
    all[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) y[g] = sum(all, n);
}
// run: @sums(x = iota(16), y = zeros(2), all = length(8)) grid(16) threadgroup(8) -> y == [28, 92]
