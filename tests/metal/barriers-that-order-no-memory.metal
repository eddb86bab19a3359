// Barriers that make threads wait and order other memory, or none.
#include <metal_stdlib>
using namespace metal;

kernel void none(device uint * y [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup uint tile[64];
    tile[t] = t;
    threadgroup_barrier(mem_flags::mem_none);
    y[t] = tile[63 - t]; // error[execution-only-barrier]: the barrier between the two does not order `tile`
}
// run: @none(y = zeros(64)) grid(64) threadgroup(64)

kernel void other(device uint * y [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup uint tile[64];
    tile[t] = t;
    threadgroup_barrier(mem_flags::mem_device);
    y[t] = tile[63 - t]; // error[execution-only-barrier]: tile
}
// run: @other(y = zeros(64)) grid(64) threadgroup(64)

kernel void both(device uint * y [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup uint tile[64];
    tile[t] = t;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    y[t] = tile[63 - t];
}
// run: @both(y = zeros(64)) grid(64) threadgroup(64)
