// What is said to a logger is printed.
#include <metal_stdlib>
#include <metal_logging>
using namespace metal;

constant os_log logger("kernels", "values");

kernel void says(device float * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    const half2 pair = half2(1, 2.5h);
    if (i == 1) {
        os_log_default.log("x[%u] is %.2f {%v2hf}", i, x[i], pair);
        logger.log_error("%#x of %ld", 255u, -1l);
        x[i] = 7;
    }
}
// run: @says(x = iota(2)) grid(2) threadgroup(2) -> x == [0, 7]
