// Kernels of a template, by the names that the host knows.
#include <metal_stdlib>
using namespace metal;

template <typename T, int N> T power(T x) {
    T all = 1;
#pragma unroll
    for (int k = 0; k < N; ++k) { all *= x; }
    return all;
}

template <typename T, int N>
[[kernel]] void raise(device const T * x [[buffer(0)]], device T * y [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    y[i] = power<T, N>(x[i]);
}

typedef decltype(raise<float, 2>) raise_t;
template [[host_name("square_f32")]] kernel raise_t raise<float, 2>;
template [[host_name("cube_i32")]] kernel void raise<int, 3>(device const int *, device int *, uint);
// run: @square_f32(x = iota(4), y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [0, 1, 4, 9]
// run: @cube_i32(x = [-2, -1, 0, 3], y = zeros(4)) grid(4) threadgroup(4)
//   -> y == [-8, -1, 0, 27]
