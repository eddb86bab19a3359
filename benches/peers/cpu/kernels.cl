// The kernels in OpenCL, in the forms that suit a CPU: vectors where a work-item goes along memory,
// a work-item a row where rows are reduced.

kernel void saxpy(float a, global const float *restrict x, global float *restrict y) {
    size_t i = get_global_id(0);
    vstore8(a * vload8(i, x) + vload8(i, y), i, y);
}

kernel void triad(float a, global const float *restrict x, global const float *restrict y,
                  global float *restrict z) {
    size_t i = get_global_id(0);
    vstore8(vload8(i, x) + a * vload8(i, y), i, z);
}

kernel void exp_sin(global const float *restrict x, global float *restrict y) {
    size_t i = get_global_id(0);
    float8 v = vload8(i, x);
    vstore8(exp(v) * sin(v), i, y);
}

// Blocks of 8 x 32 results.
kernel void matmul(global const float *restrict a, global const float *restrict b,
                   global float *restrict c, int n) {
    size_t j = get_global_id(0) * 32, i = get_global_id(1) * 8;
    float16 left[8], right[8];
#pragma unroll
    for (int r = 0; r < 8; r++) left[r] = right[r] = 0;
    for (int k = 0; k < n; k++) {
        float16 b0 = vload16(0, b + k * n + j), b1 = vload16(0, b + k * n + j + 16);
#pragma unroll
        for (int r = 0; r < 8; r++) {
            float16 f = a[(i + r) * n + k];
            left[r] = fma(f, b0, left[r]);
            right[r] = fma(f, b1, right[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
        vstore16(left[r], 0, c + (i + r) * n + j);
        vstore16(right[r], 0, c + (i + r) * n + j + 16);
    }
}

// 64 pixels, in four vectors.
kernel void mandelbrot(global float *restrict out, int n, int limit) {
    size_t q = get_global_id(0) * 64, p = get_global_id(1);
    float step = 2.5f / n;
    float16 lanes = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 cx[4], x[4], y[4];
    int16 count[4], active[4];
    float cy = p * step - 1.25f;
#pragma unroll
    for (int u = 0; u < 4; u++) {
        cx[u] = (lanes + (float)(q + u * 16)) * step - 2.0f;
        x[u] = y[u] = 0, count[u] = 0, active[u] = -1;
    }
    for (int t = 0; t < limit; t++) {
        int16 some = 0;
#pragma unroll
        for (int u = 0; u < 4; u++) {
            float16 xx = x[u] * x[u], yy = y[u] * y[u];
            active[u] &= xx + yy < 4.0f;
            count[u] -= active[u];
            some |= active[u];
            y[u] = (x[u] + x[u]) * y[u] + cy;
            x[u] = xx - yy + cx[u];
        }
        if (!any(some)) break;
    }
#pragma unroll
    for (int u = 0; u < 4; u++) vstore16(convert_float16(count[u]), u, out + p * n + q);
}

float total(float16 v) {
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

kernel void reduction(global const float *restrict x, global float *restrict sums) {
    size_t g = get_global_id(0);
    float16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t i = 0; i < 256; i += 4) {
        s0 += vload16(g * 256 + i, x), s1 += vload16(g * 256 + i + 1, x);
        s2 += vload16(g * 256 + i + 2, x), s3 += vload16(g * 256 + i + 3, x);
    }
    sums[g] = total((s0 + s1) + (s2 + s3));
}

kernel void softmax(global const float *restrict x, global float *restrict y, int n) {
    global const float *in = x + get_global_id(0) * n;
    global float *out = y + get_global_id(0) * n;
    float16 most16 = -INFINITY, sum = 0;
    for (int c = 0; c < n / 16; c++) most16 = fmax(most16, vload16(c, in));
    float8 most8 = fmax(most16.lo, most16.hi);
    float4 most4 = fmax(most8.lo, most8.hi);
    float most = fmax(fmax(most4.x, most4.y), fmax(most4.z, most4.w));
    for (int c = 0; c < n / 16; c++) {
        float16 e = exp(vload16(c, in) - most);
        vstore16(e, c, out);
        sum += e;
    }
    float scale = 1 / total(sum);
    for (int c = 0; c < n / 16; c++) vstore16(vload16(c, out) * scale, c, out);
}

kernel void rms_norm(global const float *restrict x, global const float *restrict w,
                     global float *restrict y, int n) {
    global const float *in = x + get_global_id(0) * n;
    global float *out = y + get_global_id(0) * n;
    float16 s = 0;
    for (int c = 0; c < n / 16; c++) s += vload16(c, in) * vload16(c, in);
    float scale = 1 / sqrt(total(s) / n + 1e-6f);
    for (int c = 0; c < n / 16; c++) vstore16(vload16(c, in) * scale * vload16(c, w), c, out);
}

// A block of 16 x 16.
kernel void transpose(global const float *restrict x, global float *restrict y, int n) {
    size_t j = get_global_id(0) * 16, i = get_global_id(1) * 16;
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) y[(i + r) * n + j + c] = x[(j + c) * n + i + r];
}

// 64 KiB, counted in memory of its own.
kernel void histogram(global const uchar *restrict x, global uint *restrict bins) {
    uint own[4][256];
    for (int i = 0; i < 256; i++) own[0][i] = own[1][i] = own[2][i] = own[3][i] = 0;
    size_t start = get_global_id(0) * 65536;
    for (size_t i = start; i < start + 65536; i += 4) {
        own[0][x[i]]++, own[1][x[i + 1]]++, own[2][x[i + 2]]++, own[3][x[i + 3]]++;
    }
    for (int i = 0; i < 256; i++)
        atomic_add(bins + i, own[0][i] + own[1][i] + own[2][i] + own[3][i]);
}

kernel void stencil(global const float *restrict x, global float *restrict y, int n) {
    int c = get_global_id(0), r = get_global_id(1);
    if (c > 0 && c < n - 1 && r > 0 && r < n - 1) {
        global const float *here = x + r * n + c;
        y[r * n + c] = (here[-n - 1] + here[-n] + here[-n + 1] + here[-1] + here[1] +
                        here[n - 1] + here[n] + here[n + 1]) * 0.125f;
    }
}

// Sixteen bodies.
kernel void n_body(global const float *restrict x, global const float *restrict y,
                   global const float *restrict z, global const float *restrict mass,
                   global float *restrict out, int n) {
    size_t i = get_global_id(0);
    float16 xi = vload16(i, x), yi = vload16(i, y), zi = vload16(i, z), ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        float16 dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        float16 d = dx * dx + dy * dy + dz * dz + 0.01f;
        float16 f = mass[j] / (d * sqrt(d));
        ax += dx * f, ay += dy * f, az += dz * f;
    }
    vstore16(ax, i, out), vstore16(ay, i, out + n), vstore16(az, i, out + 2 * n);
}
