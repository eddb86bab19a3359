// Argument buffers: fields that hold addresses are parameters by the field's name.
#include <metal_stdlib>
using namespace metal;

struct Layer {
    device const float * weights [[id(0)]];
    device float * sums [[id(1)]];
    uint count;
};

kernel void layer(constant Layer & layer [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (i < layer.count) layer.sums[i] = layer.sums[i] + 2 * layer.weights[i];
}
// run: @layer("layer.weights" = iota(4), "layer.sums" = iota(4), layer = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]) grid(4) threadgroup(4)
//   -> "layer.sums" == [0, 3, 6, 3]

struct Lists {
    array<device float *, 3> rows [[id(0)]];
    texture2d<float, access::read> picture;
};

// The array is indexed by what the kernel computes.
kernel void lists(constant Lists & lists [[buffer(0)]], constant uint & first [[buffer(1)]],
                  uint2 at [[thread_position_in_grid]]) {
    lists.rows[first + at.y][at.x] += lists.picture.read(at).x;
}
// run: @lists("lists.rows.0" = zeros(2), "lists.rows.1" = iota(2), "lists.rows.2" = iota(2), "lists.picture" = texture(r32float, 2, 2, [4, 5, 6, 7]), first = [1])
//   grid(2, 2) threadgroup(2, 2) -> "lists.rows.0" == [0, 0], "lists.rows.1" == [4, 6], "lists.rows.2" == [6, 8]

// A load from beyond the array gives 0.
kernel void beyond(constant Lists & lists [[buffer(0)]], constant int & first [[buffer(1)]], device float * y [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
    y[i] = lists.rows[first + int(i)][i]; // error[out-of-bounds]: lists.rows.2
}
// run: @beyond("lists.rows.0" = [1, 2, 3], "lists.rows.1" = [1, 2, 3], "lists.rows.2" = [4, 5, 6], y = zeros(3), first = [0])
//   grid(3) threadgroup(3) -> y == [1, 2, 6]
// run: @beyond("lists.rows.0" = [1, 2, 3], "lists.rows.1" = [1, 2, 3], "lists.rows.2" = [4, 5, 6], y = zeros(3), first = [1])
//   grid(3) threadgroup(3) -> y == [1, 5, 0]
// run: @beyond("lists.rows.0" = [1, 2, 3], "lists.rows.1" = [1, 2, 3], "lists.rows.2" = [4, 5, 6], y = zeros(3), first = [-1])
//   grid(3) threadgroup(3) -> y == [0, 2, 3]
