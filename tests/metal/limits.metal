// Limits of types, as C++ has them.
#include <metal_stdlib>
using namespace metal;

template <typename T> static void put(device float *o) {
    typedef numeric_limits<T> L;
    o[0] = L::digits; o[1] = L::digits10; o[2] = L::radix; o[3] = L::min_exponent; o[4] = L::max_exponent;
    o[5] = L::min_exponent10; o[6] = L::max_exponent10; o[7] = L::is_signed; o[8] = L::is_iec559; o[9] = L::has_quiet_NaN;
    o[10] = float(L::round_error()); o[11] = float(L::denorm_min()) * 0x1p24f; o[12] = isnan(float(L::signaling_NaN()));
}

kernel void limits(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (i == 0) { put<half>(o); }
    if (i == 1) { put<bfloat>(o + 13); }
    if (i == 2) { put<float>(o + 26); }
    if (i == 3) { put<int>(o + 39); }
    if (i == 4) { put<uchar>(o + 52); }
}
// run: @limits(o = zeros(65)) grid(5) threadgroup(5)
//   -> o == [11, 2, 2, -13, 16, -4, 4, 1, 1, 1, 0.5, 1, 1,
//     8, 2, 2, -125, 128, -37, 38, 1, 1, 1, 0.5, 1.540744e-33, 1,
//     24, 6, 2, -125, 128, -37, 38, 1, 1, 1, 0.5, 2.3509887e-38, 1,
//     31, 9, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
