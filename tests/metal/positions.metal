// Components of positions at places that are computed, by the kernel and by the compiler.
#include <metal_stdlib>
using namespace metal;

kernel void indexed(device uint * y [[buffer(0)]], constant uint & axis [[buffer(1)]],
                    uint2 id [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    y[id.y * size.x + id.x] = id[axis] * 10 + size[1 - axis];
}
// run: @indexed(y = zeros(6), axis = [0]) grid(3, 2) threadgroup(3, 1) -> y == [2, 12, 22, 2, 12, 22]
// run: @indexed(y = zeros(6), axis = [1]) grid(3, 2) threadgroup(3, 1) -> y == [3, 3, 3, 13, 13, 13]

// Of three components, and of 16 bits.
kernel void three(device uint * y [[buffer(0)]], constant uint & axis [[buffer(1)]],
                  ushort3 id [[thread_position_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]],
                  uint i [[thread_index_in_threadgroup]]) {
    y[i] = id[axis] + 10 * group[axis] + 100 * (axis < 2 ? id.z : group[axis - 1]);
}
// run: @three(y = zeros(8), axis = [0]) grid(2, 2, 2) threadgroup(2, 2, 2) -> y == [0, 1, 0, 1, 100, 101, 100, 101]
// run: @three(y = zeros(8), axis = [2]) grid(2, 2, 2) threadgroup(2, 2, 2) -> y == [0, 0, 0, 0, 1, 1, 1, 1]

// LLVM loads a component from an address that the loop carries.
kernel void carried(device float * y [[buffer(0)]], device const float * x [[buffer(1)]],
                    constant uint & n [[buffer(2)]], uint2 id [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k < 8; k++) {
        sum += x[id.y * n + k] * x[k * n + id.x] + x[id.y * 14 + id.x];
        y[id.y * 9 + id.x + 20] = sum;
    }
    y[id.y * 9 + id.x] = sum;
}
// run: @carried(y = zeros(40), x = iota(40), n = [2]) grid(2, 1) threadgroup(2, 1)
//   -> y == [280, 316, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 280, 316, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]

// A copy of a position that is indexed.
kernel void copied(device uint * y [[buffer(0)]], constant uint & axis [[buffer(1)]],
                   uint2 id [[thread_position_in_grid]]) {
    uint2 at = id;
    y[id.x] = at[axis];
}
// run: @copied(y = zeros(3), axis = [0]) grid(3, 1) threadgroup(3, 1) -> y == [0, 1, 2]

// There is no third component.
kernel void beyond(device uint * y [[buffer(0)]], constant uint & axis [[buffer(1)]],
                   uint2 id [[thread_position_in_grid]]) {
    y[id.x] = id[axis]; // error[out-of-bounds]: 2
}
// run: @beyond(y = [7, 7], axis = [2]) grid(2, 1) threadgroup(2, 1) -> y == [0, 0]
