// Quantised blocks: a half and bytes of one struct, read also by twos.
#include <metal_stdlib>
using namespace metal;

struct Block { half d; uchar q[6]; };

kernel void unpack(device const void * src [[buffer(0)]], device float * y [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    device const Block * blocks = (device const Block *) src;
    device const Block & b = blocks[i / 6];
    device const ushort * pairs = (device const ushort *) b.q;
    const ushort pair = pairs[(i % 6) / 2];
    y[i] = (float) b.d * (i % 2 == 0 ? pair & 0xff : pair >> 8) + b.q[0];
}
// run: @unpack(src = [0, 0x40, 1, 2, 3, 4, 5, 6, 0, 0x38, 10, 20, 30, 40, 50, 60], y = zeros(12)) grid(12) threadgroup(12)
//   -> y == [3, 5, 7, 9, 11, 13, 15, 20, 25, 30, 35, 40]
