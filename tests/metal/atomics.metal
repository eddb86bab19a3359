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

// The least and the greatest by the type that an atomic is of, whatever that of the memory is.
kernel void signs(device uint * x [[buffer(0)]], device int * y [[buffer(1)]], device float * z [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
    threadgroup uint least[1];
    if (i == 0) { atomic_store_explicit((threadgroup atomic_int *)least, 0, memory_order_relaxed); }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_min_explicit((device atomic_int *)&x[0], int(i) - 2, memory_order_relaxed);
    atomic_fetch_max_explicit((device atomic_int *)&x[1], int(i) - 2, memory_order_relaxed);
    atomic_fetch_max_explicit((device atomic_uint *)&y[0], i == 0 ? 0x80000000u : i, memory_order_relaxed);
    atomic_fetch_min_explicit((threadgroup atomic_int *)least, -int(i), memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (i == 0) { z[0] = int(x[0]); z[1] = int(x[1]); z[2] = uint(y[0]); z[3] = int(least[0]); }
}
// run: @signs(x = [1, 0], y = [5], z = zeros(4)) grid(4) threadgroup(4) -> z == [-2, 1, 2147483648, -3]
