kernel void histogram(global const uint *x, volatile global uint *bins) {
    uint bin = (x[get_global_id(0)] * 2654435761u) >> 24;
    atomic_inc(&bins[bin]);
}
