// `uint64_t` is `ulong` and `int64_t` is `long`: for templates, overloads, pointers, references and functions of the library.
#include <metal_stdlib>
using namespace metal;

template <typename T> struct Width { static constexpr constant int bits = 0; };
template <> struct Width<uint> { static constexpr constant int bits = 32; };
template <> struct Width<ulong> { static constexpr constant int bits = 64; };
template <> struct Width<long> { static constexpr constant int bits = -64; };

static int which(uint) { return 1; }
static int which(ulong) { return 2; }

template <typename T> static int is_ulong(T) { return is_same_v<T, ulong> ? 1 : 0; }

kernel void names(device const uint64_t * a [[buffer(0)]], device int * y [[buffer(1)]]) {
    y[0] = Width<uint64_t>::bits;
    y[1] = Width<int64_t>::bits;
    y[2] = Width<size_t>::bits;
    y[3] = which(a[0]);
    y[4] = is_ulong(a[0]);
    y[5] = Width<decltype(UINT64_C(1))>::bits;
    y[6] = is_same_v<uintmax_t, ulong> && is_same_v<intmax_t, long> && is_same_v<uint_least64_t, ulong>;
}
// run: @names(a = [1], y = zeros(7)) grid(1) threadgroup(1) -> y == [64, -64, 64, 2, 1, 64, 1]

kernel void values(device const uint64_t * a [[buffer(0)]], device const ulong2 * b [[buffer(1)]],
                   device uint64_t * y [[buffer(2)]]) {
    vec<uint64_t, 2> v = b[0];
    ulong2 w = vec<uint64_t, 2>(a[0], a[1]);
    device const ulong * p = a;
    thread uint64_t z = 5;
    thread ulong & r = z;
    y[0] = v.x + w.y;
    y[1] = p[1] + r;
    y[2] = as_type<uint64_t>(uint2(1, 2));
    y[3] = mulhi(a[0], a[1]);
    y[4] = max(a[0], b[0].x) + select(a[0], b[0].y, true);
}
// run: @values(a = [9223372036854775808, 6], b = [10, 20], y = zeros(5)) grid(1) threadgroup(1)
//   -> y == [16, 11, 8589934593, 3, 9223372036854775828]
