// Several variables in threadgroup memory in one declaration, pointers among them, and of a type that it defines.
#include <metal_stdlib>
using namespace metal;

kernel void scalars(device uint * y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint a, b;
    if (t == 0) { a = 5; b = 7; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = a * 10 + b;
}
// run: @scalars(y = zeros(4)) grid(4) threadgroup(4) -> y == [57, 57, 57, 57]

kernel void pointers(device uint * y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint2 a;
    threadgroup struct { uint p, q; } b;
    threadgroup uint *pa, c;
    threadgroup unsigned int d[4], *pd = d,e;
    if (t == 0) { a = uint2(1, 2); b.p = 5; b.q = 7; c = 9; d[2] = 3; e = 4; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    pa = &c;
    y[t] = a.y * 10 + b.q + *pa * 1000 + pd[2] * 10000 + e * 100000;
}
// run: @pointers(y = zeros(4)) grid(4) threadgroup(4) -> y == [439027, 439027, 439027, 439027]
