// A barrier is missing between the sum's writes and the reads of other threads.
#include <metal_stdlib>
using namespace metal;

static float neighbour(threadgroup const float * tile, uint i) {
    return tile[(i + 1) % 64]; // error[data-race]: tile
}

kernel void blur(device const float * x [[buffer(0)]],
                 device float * y [[buffer(1)]],
                 uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]]) {
    threadgroup float tile[64];
    tile[t] = x[i];
    y[i] = 0.5 * (tile[t] + neighbour(tile, t));
}
// run: @blur(x = iota(64), y = zeros(64)) grid(64) threadgroup(64)
