// Atomics of truth values, each of 4 bytes.
#include <metal_stdlib>
using namespace metal;

kernel void flags(device atomic_bool * flags [[buffer(0)]], device uint * x [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    const bool was = atomic_load_explicit(flags + i, memory_order_relaxed);
    atomic_store_explicit(flags + i, !was, memory_order_relaxed);
    const bool old = atomic_exchange_explicit(flags + i, i != 0, memory_order_relaxed);
    bool expected = true;
    const bool done = atomic_compare_exchange_weak_explicit(flags + i, &expected, false, memory_order_relaxed, memory_order_relaxed);
    x[i] = was * 8 + old * 4 + expected * 2 + done;
}
// run: @flags(flags = [0, 1], x = zeros(2)) grid(2) threadgroup(2) -> x == [4, 11], flags == [0, 0]
