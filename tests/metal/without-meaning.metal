// What C++ gives no meaning to, of numbers that only the compiler sees: it is neither left out nor is the way to it.
#include <metal_stdlib>
using namespace metal;

kernel void divisions(device int * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int zero = 0, minus = -1, least = INT_MIN;
    uint none = 0;
    if (i == 0) x[i] = 7 / zero;
    else if (i == 1) x[i] = 7 % zero + 1;
    else if (i == 2) x[i] = least / minus;
    else x[i] = int(i / none) + 5;
}
// run: @divisions(x = fill(4, 9)) grid(4) threadgroup(4) -> x == [0, 1, -2147483648, 5]

kernel void shifts(device int * x [[buffer(0)]], constant int & n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    int count = 33;
    if (i == 0) x[i] = 1 << count;
    else x[i] = 1 << n;
}
// run: @shifts(x = fill(2, 9), n = [34]) grid(2) threadgroup(2) -> x == [2, 4]

// Divisors that are known by then let loops count.
kernel void counted(device int * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int width = 8, all = 64, sum = 0;
    for (int k = 0; k < all / width; k++) sum += k;
    x[i] = sum / (all / width);
}
// run: @counted(x = zeros(2)) grid(2) threadgroup(2) -> x == [3, 3]

constant int table[4] = {1, 2, 3, 4};
constant float4 rows[2] = {float4(1, 2, 3, 4), float4(5, 6, 7, 8)};

kernel void tables(device int * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int sum = 0, at = 1;
    for (int k = 0; k < 4; k++) sum += table[k];
    x[i] = sum + int(rows[at].z);
}
// run: @tables(x = zeros(2)) grid(2) threadgroup(2) -> x == [17, 17]

kernel void beyond_a_table(device int * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int at = 7;
    x[i] = table[at] + 1; // error[out-of-bounds]: reads element 7
}
// run: @beyond_a_table(x = zeros(1)) grid(1) threadgroup(1) -> x == [1]

kernel void a_round_too_much(device int * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int sum = 0;
    for (int k = 0; k <= 4; k++) sum += table[k]; // error[out-of-bounds]: reads element 4
    x[i] = sum;
}
// run: @a_round_too_much(x = zeros(1)) grid(1) threadgroup(1) -> x == [10]

kernel void beyond_vectors(device float * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    thread float4 a[4];
    int at = 7;
    a[0] = x[i];
    x[i] = a[at].x + 1; // error[out-of-bounds]: reads element 28
}
// run: @beyond_vectors(x = zeros(1)) grid(1) threadgroup(1) -> x == [1]

kernel void behind_a_pointer(device float * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float a[4] = {1, 2, 3, 4};
    thread float * p = a;
    x[i] = p[7] + 1; // error[out-of-bounds]: reads element 7
}
// run: @behind_a_pointer(x = zeros(1)) grid(1) threadgroup(1) -> x == [1]

static float third_after(thread const float * a, int k) {
    return a[k + 3]; // error[out-of-bounds]: reads element 5
}

kernel void in_a_function(device float * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float a[4] = {1, 2, 3, 4};
    x[i] = third_after(a, 2) + 1;
}
// run: @in_a_function(x = zeros(1)) grid(1) threadgroup(1) -> x == [1]

kernel void component(device float * x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float4 v = float4(1, 2, 3, 4);
    int at = 5;
    x[i] = v[at] + 1; // error[out-of-bounds]: reads element 5
}
// run: @component(x = zeros(1)) grid(1) threadgroup(1) -> x == [1]
