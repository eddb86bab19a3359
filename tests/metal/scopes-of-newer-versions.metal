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

// A texture that others see written says no more here than that it is written.
kernel void seen(texture2d<float, access::read_write, memory_coherence_device> t [[texture(0)]],
                 uint2 at [[thread_position_in_grid]]) {
    t.write(t.read(at) + 1, at);
}
// run: @seen(t = texture(r32float, 2, 1, [4, 5])) grid(2) threadgroup(2) -> t == [5, 6]
