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

// Sums are of floats or of integers by the type of the atomic; floats are compared and exchanged by their bits.
kernel void kinds(device uint * x [[buffer(0)]], device float * y [[buffer(1)]], device atomic_float * most [[buffer(2)]],
                  device float * z [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    if (i == 0) { y[0] = 1; }
    threadgroup_barrier(mem_flags::mem_device);
    atomic_fetch_add_explicit((device atomic_float *)&x[0], 1.5f, memory_order_relaxed);
    atomic_fetch_add_explicit((device atomic_uint *)&y[0], 0x400000u, memory_order_relaxed);
    const float mine = float(i * 3 % 4);
    float old = atomic_load_explicit(most, memory_order_relaxed);
    while (old < mine && !atomic_compare_exchange_weak_explicit(most, &old, mine, memory_order_relaxed, memory_order_relaxed)) {}
    threadgroup_barrier(mem_flags::mem_device);
    if (i == 0) { z[0] = as_type<float>(x[0]); z[1] = y[0]; z[2] = atomic_load_explicit(most, memory_order_relaxed); }
}
// run: @kinds(x = zeros(1), y = zeros(1), most = zeros(1), z = zeros(3)) grid(4) threadgroup(4) -> z == [6, 4, 3]
