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

// An array of structs whose fields are addresses, at an index that the kernel computes.
struct Part {
    device const float * values;
    device float * sums;
    texture2d<float, access::read> unused;
};
struct Parts {
    device float * first;
    Part parts[3];
};

kernel void parts(constant Parts & all [[buffer(0)]], constant uint & count [[buffer(1)]], device float * y [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k < count; k++) { sum += all.parts[k].values[i]; }
    y[i] = sum;
    all.parts[i].sums[0] = sum;
    if (i > 0) { all.parts[i - 1].sums[1] = i; }
}
// run: @parts("all.parts.0.values" = [1, 2], "all.parts.1.values" = [3, 4], "all.parts.2.values" = [5, 6],
//   "all.parts.0.sums" = zeros(2), "all.parts.1.sums" = zeros(2), "all.parts.2.sums" = zeros(2), count = [2], y = zeros(2))
//   grid(2) threadgroup(2) -> y == [4, 6], "all.parts.0.sums" == [4, 1], "all.parts.1.sums" == [6, 0], "all.parts.2.sums" == [0, 0]
