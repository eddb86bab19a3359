// Threads that are done return before the barrier.
#include <metal_stdlib>
using namespace metal;

kernel void shift(device float * x [[buffer(0)]],
                  constant uint & count [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= count) { return; }
    float next = x[(i + 1) % count];
    threadgroup_barrier(mem_flags::mem_device); // error[barrier-not-uniform]: barrier
    x[i] = next;
}
// run: @shift(x = iota(32), count = [30]) grid(32) threadgroup(32)
