// A reduction in threadgroup memory, whose array is a parameter, by a loop of barriers.
#include <metal_stdlib>
using namespace metal;

kernel void total(device const float * x [[buffer(0)]],
                  device float * y [[buffer(1)]],
                  threadgroup float * partial [[threadgroup(0)]],
                  uint i [[thread_position_in_grid]],
                  uint t [[thread_position_in_threadgroup]],
                  uint g [[threadgroup_position_in_grid]],
                  uint n [[threads_per_threadgroup]]) {
    partial[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_ = n / 2; half_ > 0; half_ /= 2) {
        if (t < half_) { partial[t] += partial[t + half_]; }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) { y[g] = partial[0]; }
}
// run: @total(x = iota(128), y = zeros(2), partial = length(64)) grid(128) threadgroup(64)
//   -> y == [2016, 6112]
