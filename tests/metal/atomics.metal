// Atomics of the device and of the threadgroup.
#include <metal_stdlib>
using namespace metal;

kernel void count(device atomic_uint * bins [[buffer(0)]], device uint * y [[buffer(1)]],
                  uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup atomic_uint local[2];
    atomic_fetch_add_explicit(&local[i % 2], i, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 2) {
        const uint sum = atomic_load_explicit(&local[t], memory_order_relaxed);
        atomic_fetch_add_explicit(&bins[t], sum, memory_order_relaxed);
        atomic_fetch_max_explicit(&bins[2], sum, memory_order_relaxed);
        y[i] = sum;
    }
}
// run: @count(bins = zeros(3), y = zeros(8)) grid(8) threadgroup(4)
//   -> bins == [12, 16, 12], y == [2, 4, 0, 0, 10, 12, 0, 0]
