// The words and types of the language need no header.
constant float4 weights = {1, 2, 3, 4};

kernel void add(device float4 * y [[buffer(0)]], constant half & by [[buffer(1)]],
                uint i [[thread_position_in_grid]]) {
    y[i] += weights * by;
}
// run: @add(y = iota(8), by = [2]) grid(2) threadgroup(2)
//   -> y == [2, 5, 8, 11, 6, 9, 12, 15]
