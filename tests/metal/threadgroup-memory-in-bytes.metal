// Threadgroup memory of bytes that a kernel divides among arrays of other types: its length is in bytes, as the host
// gives it, however much the kernel accesses at a time.
#include <metal_stdlib>
using namespace metal;

kernel void divided(threadgroup char * room [[threadgroup(0)]], device const float * x [[buffer(0)]],
                    device int * y [[buffer(1)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup half * halves = (threadgroup half *) room;
    threadgroup int * ints = (threadgroup int *) (room + 16 * sizeof(half));
    halves[i] = half(x[i]);
    ints[i] = int(i) * 10;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = int(halves[15 - i]) + ints[15 - i];
}
// run: @divided(room = length(96), x = iota(16), y = zeros(16)) grid(16) threadgroup(16)
//   -> y == [165, 154, 143, 132, 121, 110, 99, 88, 77, 66, 55, 44, 33, 22, 11, 0]
