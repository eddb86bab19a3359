// Traits that the library does not have may be declared in its namespace.
#include <metal_stdlib>
using namespace metal;

namespace metal {
template <typename T> struct is_empty : metal::bool_constant<__is_empty(T)> {};
template <typename T> constexpr constant bool is_empty_v = is_empty<T>::value;
template <typename... T> struct make_void { typedef void type; };
template <typename... T> using void_t = typename make_void<T...>::type;
}

struct Nothing {};
template <typename T, typename = void> struct width : metal::integral_constant<int, 0> {};
template <typename T> struct width<T, void_t<decltype(T::lanes)>> : metal::integral_constant<int, T::lanes> {};
struct Wide { static constexpr constant int lanes = 4; };

kernel void traits(device int * y [[buffer(0)]]) {
    y[0] = is_empty_v<Nothing> + 2 * is_empty<Wide>::value + 4 * is_empty_v<int>;
    y[1] = width<Wide>::value * 10 + width<int>::value;
}
// run: @traits(y = zeros(2)) grid(1) threadgroup(1) -> y == [3, 40]
