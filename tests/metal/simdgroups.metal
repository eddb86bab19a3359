// Functions of a simdgroup.
#include <metal_stdlib>
using namespace metal;

kernel void lanes(device const float * x [[buffer(0)]], device float * sums [[buffer(1)]],
                  device int * least [[buffer(2)]], device uint * votes [[buffer(3)]],
                  uint i [[thread_position_in_grid]],
                  ushort lane [[thread_index_in_simdgroup]],
                  ushort group [[simdgroup_index_in_threadgroup]]) {
    const float sum = simd_sum(x[i]);
    const int low = simd_min(-(int) i);
    const float before = simd_shuffle_up(x[i], 1);
    const bool odd = simd_any(i % 2 == 1 && group == 1);
    if (lane == 0) {
        sums[group] = sum;
        least[group] = low;
        votes[group] = odd;
    }
    if (lane == 31) { sums[2 + group] = before; }
}
// run: @lanes(x = iota(64), sums = zeros(4), least = zeros(2), votes = zeros(2)) grid(64) threadgroup(64) simdgroup(32)
//   -> sums == [496, 1520, 30, 62], least == [-31, -63], votes == [0, 1]

// Which types functions of a simdgroup take, the library says; 64 bits go in halves.
template <typename T, bool = __is_valid_simdgroup_type<T>::value> struct total {
    static T of(T x) { return simd_sum(x); }
};
template <typename T> struct total<T, false> {
    static T of(T x) {
        for (ushort by = 16; by > 0; by /= 2) { x += as_type<T>(simd_shuffle_xor(as_type<uint2>(x), by)); }
        return x;
    }
};

kernel void totals(device const long * x [[buffer(0)]], device long * wide [[buffer(1)]],
                   device int * narrow [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const long all = total<long>::of(x[i] << 32);
    const int some = total<int>::of((int) x[i]);
    if (i == 0) { wide[0] = all >> 32; narrow[0] = some; }
}
// run: @totals(x = iota(32), wide = zeros(1), narrow = zeros(1)) grid(32) threadgroup(32) simdgroup(32)
//   -> wide == [496], narrow == [496]
