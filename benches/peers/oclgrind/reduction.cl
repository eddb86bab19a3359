kernel void reduction(global const float *x, global float *sums) {
    local float scratch[256];
    uint t = get_local_id(0);
    scratch[t] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 128; step > 0; step /= 2) {
        if (t < step)
            scratch[t] += scratch[t + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        sums[get_group_id(0)] = scratch[0];
}
