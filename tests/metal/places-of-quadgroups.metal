// Numbers of quadgroups, and the grid by its other names.
#include <metal_stdlib>
using namespace metal;

kernel void quadgroups(device uint * x [[buffer(0)]],
                       uint t [[thread_index_in_threadgroup]],
                       uint quad [[quadgroup_index_in_threadgroup]],
                       ushort quads [[quadgroups_per_threadgroup]],
                       uint dispatched [[dispatch_quadgroups_per_threadgroup]]) {
    x[t] = quad * 100 + quads * 10 + dispatched;
}
// run: @quadgroups(x = zeros(6)) grid(6) threadgroup(6) -> x == [22, 22, 22, 22, 122, 122]

kernel void grids(device uint * x [[buffer(0)]],
                  uint i [[thread_position_in_grid]],
                  uint size [[grid_size]],
                  uint origin [[grid_origin]],
                  uint2 sizes [[grid_size]],
                  uint3 origins [[grid_origin]]) {
    x[i] = size + sizes.x * 10 + origin + origins.y;
}
// run: @grids(x = zeros(2)) grid(2) threadgroup(2) -> x == [22, 22]
