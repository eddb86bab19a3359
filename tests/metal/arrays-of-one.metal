// Arrays of one element, in loops that are written out: no iteration is made behind the end, where other fields lie.
#include <metal_stdlib>
using namespace metal;

template <short N>
struct Window {
    device const float * rows[N];
    short above[N];
    short left[N];
    short at;

    Window(device const float * x, constant int * size, uint i) : at(0) {
        int first[N];
#pragma unroll
        for (short r = 0; r < N; ++r) {
            first[r] = int(i) * 2 + r - 1;
            rows[r] = x + first[r] * size[0];
        }
#pragma unroll
        for (short r = 0; r < N; ++r) { above[r] = 0; left[r] = 0; }
        for (short k = 0; k < size[1]; k++) {
#pragma unroll
            for (short r = 0; r < N; ++r) {
                bool is_inside = first[r] + k >= 0 && first[r] + k < size[0];
                above[r] |= is_inside << k;
            }
        }
        for (short k = 0; k < size[1]; k++) {
#pragma unroll
            for (short r = 0; r < N; ++r) { left[r] |= (k < size[0]) << k; }
        }
    }

    void load(threadgroup float * tile) const {
#pragma unroll
        for (short r = 0, s = 0; r < N; ++r, s += 8) {
            if ((above[r] & (1 << at)) && (left[r] & 1)) {
#pragma unroll
                for (short j = 0; j < 2; ++j) { tile[s + j] = rows[r][j]; }
            } else {
#pragma unroll
                for (short j = 0; j < 2; ++j) { tile[s + j] = 0; }
            }
        }
    }

    void next(constant int * size) {
        if (++at < size[1]) {
#pragma unroll
            for (short r = 0; r < N; r++) { rows[r] += size[0]; }
            return;
        }
        at = 0;
#pragma unroll
        for (short r = 0; r < N; r++) { rows[r] += 1; }
    }
};

kernel void windows(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                    constant int * size [[buffer(2)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup float tile[64];
    Window<1> window(x, size, i);
    float sum = 0;
    for (int k = 0; k < size[2]; ++k) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        window.load(tile + 2 * i);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += tile[2 * i] + 2 * tile[2 * i + 1];
        window.next(size);
    }
    y[i] = sum;
}
// run: @windows(x = iota(16), y = zeros(2), size = [4, 2, 2]) grid(2) threadgroup(2) -> y == [2, 40]
