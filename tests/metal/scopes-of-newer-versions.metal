// A source may define a scope that a newer version of the language has.
#include <metal_stdlib>
using namespace metal;

#if __METAL_VERSION__ < 400
namespace metal {
constexpr constant thread_scope thread_scope_system = static_cast<thread_scope>(3);
}
#endif

kernel void scopes(device uint *y [[buffer(0)]]) {
    y[0] = thread_scope_system;
    y[1] = thread_scope_device;
}
// run: @scopes(y = zeros(2)) grid(1) threadgroup(1)
//   -> y == [3, 2]
