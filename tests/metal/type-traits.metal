// Type traits of the library and integer sequences; casts in a namespace of the author's called `metal`.
#include <metal_stdlib>
using namespace metal;

template <typename T> constant constexpr bool floats = is_floating_point_v<T> && is_scalar_v<T>;
struct Plain { int a; float b; };
union Either { int a; float b; };

template <int... I> static int sum(metal::integer_sequence<int, I...>) { return (I + ... + 0); }
template <size_t... I> static int count(metal::index_sequence<I...>) { return sizeof...(I); }

kernel void traits(device int * y [[buffer(0)]]) {
    y[0] = floats<half> + 2 * floats<bfloat> + 4 * floats<int> + 8 * is_scalar<float4>::value;
    y[1] = is_pointer_v<thread int *> + 2 * is_void_v<void> + 4 * is_class<Plain>::value + 8 * is_union_v<Either>;
    y[2] = is_trivially_copyable_v<Plain> + 2 * is_default_constructible<Plain>::value + 4 * is_assignable_v<thread int &, int>;
    y[3] = sum(metal::make_integer_sequence<int, 5>{}) + 100 * count(metal::make_index_sequence<4>{});
    y[4] = is_same_v<common_type_t<short, float>, float> + 2 * is_same_v<add_cv_t<int>, const volatile int> + 4 * (alignment_of<float4>::value == 16);
}
// run: @traits(y = zeros(5)) grid(1) threadgroup(1) -> y == [3, 15, 7, 410, 7]

namespace own { namespace metal {
template <typename T> static T twice(float x) { return static_cast<T>(2 * x); }
} }

kernel void casts(device int * y [[buffer(0)]]) { y[0] = own::metal::twice<int>(3.4f) + static_cast<int>(bfloat(2)); }
// run: @casts(y = zeros(1)) grid(1) threadgroup(1) -> y == [8]
