#define TILE 16
kernel void matmul(global const float *a, global const float *b, global float *c, uint n) {
    local float tile_a[TILE * TILE];
    local float tile_b[TILE * TILE];
    uint tx = get_local_id(0), ty = get_local_id(1);
    uint column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (uint k = 0; k < n; k += TILE) {
        tile_a[ty * TILE + tx] = a[row * n + k + tx];
        tile_b[ty * TILE + tx] = b[(k + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < TILE; j++)
            sum += tile_a[ty * TILE + j] * tile_b[j * TILE + tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
