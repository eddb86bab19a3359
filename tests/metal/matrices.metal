// Simdgroup matrices, in arrays that loops which are written out go through.
#include <metal_stdlib>
using namespace metal;

kernel void multiply(device const float * a [[buffer(0)]], device const float * b [[buffer(1)]],
                     device float * c [[buffer(2)]]) {
    simdgroup_float8x8 ma, mb[2], mc[2];
    for (short k = 0; k < 2; ++k) { mc[k] = make_filled_simdgroup_matrix<float, 8>(1.f); }
    simdgroup_load(ma, a, 8);
#pragma unroll
    for (short k = 0; k < 2; ++k) {
        simdgroup_load(mb[k], b + 8 * k, 16);
        simdgroup_multiply_accumulate(mc[k], ma, mb[k], mc[k]);
        simdgroup_store(mc[k], c + 8 * k, 16);
    }
}
// run: @multiply(a = fill(64, 1), b = iota(128), c = zeros(128)) grid(32) threadgroup(32) simdgroup(32)
//   -> c == [449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569, 449, 457, 465, 473, 481, 489, 497, 505, 513, 521, 529, 537, 545, 553, 561, 569]
