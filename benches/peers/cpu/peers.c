// The peers of the CPU device: kernels as one would write them in C with OpenMP.
//
// usage: peers KERNEL [N]: fills the inputs, runs the kernel once and prints the checksum of what it
// wrote; then runs it once for each line on standard input and prints the seconds that it took.
// Inputs are the same as in benches/src/cpu.rs, by the same generator.
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef int32_t i16 __attribute__((vector_size(64), aligned(4)));

// In its own file, which may use a faster exp and sin.
void exp_sin(const float *restrict x, float *restrict y, long n);

// As fast as the machine copies: each thread its part, by the C library.
static void copy(const float *restrict x, float *restrict y, long n) {
#pragma omp parallel
    {
        long each = (n + omp_get_num_threads() - 1) / omp_get_num_threads();
        long first = each * omp_get_thread_num();
        long count = n - first < each ? n - first : each;
        if (count > 0) memcpy(y + first, x + first, count * sizeof(float));
    }
}

static void saxpy(float a, const float *restrict x, float *restrict y, long n) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

static void triad(float a, const float *restrict x, const float *restrict y, float *restrict z, long n) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) z[i] = x[i] + a * y[i];
}

// Blocks of 8 x 32 results in registers.
static void matmul(const float *restrict a, const float *restrict b, float *restrict c, int n) {
#pragma omp parallel for collapse(2) schedule(dynamic, 4)
    for (int j = 0; j < n; j += 32)
        for (int i = 0; i < n; i += 8) {
            int width = n - j < 32 ? n - j : 32;
            if (width < 32) {
                for (int r = 0; r < 8; r++)
                    for (int l = 0; l < width; l++) {
                        float s = 0;
                        for (int k = 0; k < n; k++) s += a[(i + r) * n + k] * b[k * n + j + l];
                        c[(i + r) * n + j + l] = s;
                    }
                continue;
            }
            v16 acc[8][2];
            for (int r = 0; r < 8; r++) acc[r][0] = acc[r][1] = (v16){0};
            for (int k = 0; k < n; k++) {
                v16 b0 = *(v16 *)(b + k * n + j), b1 = *(v16 *)(b + k * n + j + 16);
#pragma GCC unroll 8
                for (int r = 0; r < 8; r++) {
                    float f = a[(i + r) * n + k];
                    acc[r][0] += f * b0;
                    acc[r][1] += f * b1;
                }
            }
            for (int r = 0; r < 8; r++) {
                *(v16 *)(c + (i + r) * n + j) = acc[r][0];
                *(v16 *)(c + (i + r) * n + j + 16) = acc[r][1];
            }
        }
}

static void mandelbrot(float *out, int n, int limit) {
    float step = 2.5f / n;
#pragma omp parallel for schedule(dynamic, 4)
    for (int p = 0; p < n; p++) {
        float cy = p * step - 1.25f;
        for (int q = 0; q < n; q++) {
            float cx = q * step - 2.0f, x = 0, y = 0;
            int count = 0;
            while (count < limit && x * x + y * y < 4.0f) {
                float next = 2 * x * y + cy;
                x = x * x - y * y + cx;
                y = next;
                count++;
            }
            out[p * n + q] = count;
        }
    }
}

// Four vectors at a time.
static void mandelbrot_by_hand(float *out, int n, int limit) {
    float step = 2.5f / n;
#pragma omp parallel for schedule(dynamic, 4)
    for (int p = 0; p < n; p++) {
        float cy = p * step - 1.25f;
        for (int q = 0; q < n; q += 64) {
            v16 cx[4], x[4], y[4];
            i16 count[4], active[4];
            for (int u = 0; u < 4; u++) {
                for (int l = 0; l < 16; l++) cx[u][l] = (q + u * 16 + l) * step - 2.0f;
                x[u] = y[u] = (v16){0};
                count[u] = (i16){0};
                active[u] = ~count[u];
            }
            for (int t = 0; t < limit; t++) {
                i16 any = {0};
#pragma GCC unroll 4
                for (int u = 0; u < 4; u++) {
                    v16 x2 = x[u] * x[u], y2 = y[u] * y[u];
                    active[u] &= (i16)(x2 + y2 < 4.0f);
                    count[u] -= active[u];
                    any |= active[u];
                    v16 next = (x[u] + x[u]) * y[u] + cy;
                    x[u] = x2 - y2 + cx[u];
                    y[u] = next;
                }
                int some = 0;
#ifdef __AVX512F__
                typedef int32_t whole __attribute__((vector_size(64)));
                some = __builtin_ia32_ptestmd512((whole)any, (whole)any, -1);
#else
                for (int l = 0; l < 16; l++) some |= any[l];
#endif
                if (!some) break;
            }
            for (int u = 0; u < 4; u++)
                for (int l = 0; l < 16; l++) out[p * n + q + u * 16 + l] = count[u][l];
        }
    }
}

// The sum of each 4096 elements.
static void reduction(const float *restrict x, float *restrict out, long n) {
#pragma omp parallel for schedule(static)
    for (long g = 0; g < n / 4096; g++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int i = 0; i < 4096; i++) s += x[g * 4096 + i];
        out[g] = s;
    }
}

static void softmax(const float *restrict x, float *restrict y, int rows, int columns) {
#pragma omp parallel for schedule(static)
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * columns;
        float *out = y + (long)r * columns;
        float most = -INFINITY, s = 0;
#pragma omp simd reduction(max : most)
        for (int c = 0; c < columns; c++) most = in[c] > most ? in[c] : most;
#pragma omp simd reduction(+ : s)
        for (int c = 0; c < columns; c++) s += out[c] = expf(in[c] - most);
        float scale = 1 / s;
#pragma omp simd
        for (int c = 0; c < columns; c++) out[c] *= scale;
    }
}

static void rms_norm(const float *restrict x, const float *restrict w, float *restrict y, int rows, int columns) {
#pragma omp parallel for schedule(static)
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * columns;
        float *out = y + (long)r * columns;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int c = 0; c < columns; c++) s += in[c] * in[c];
        float scale = 1 / sqrtf(s / columns + 1e-6f);
#pragma omp simd
        for (int c = 0; c < columns; c++) out[c] = in[c] * scale * w[c];
    }
}

// Tiles of 32 x 32.
static void transpose(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i += 32)
        for (int j = 0; j < n; j += 32)
            for (int r = i; r < i + 32; r++)
#pragma omp simd
                for (int c = j; c < j + 32; c++) y[(long)r * n + c] = x[(long)c * n + r];
}

static void histogram(const uint8_t *restrict x, float *restrict out, long n) {
    uint32_t total[256] = {0};
#pragma omp parallel
    {
        uint32_t own[4][256] = {0};
#pragma omp for schedule(static) nowait
        for (long i = 0; i < n / 4; i++) {
            own[0][x[4 * i]]++, own[1][x[4 * i + 1]]++;
            own[2][x[4 * i + 2]]++, own[3][x[4 * i + 3]]++;
        }
#pragma omp critical
        for (int b = 0; b < 256; b++) total[b] += own[0][b] + own[1][b] + own[2][b] + own[3][b];
    }
    for (int b = 0; b < 256; b++) out[b] = total[b];
}

// The mean of the eight neighbours, inside.
static void stencil(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for schedule(static)
    for (int r = 1; r < n - 1; r++) {
        const float *above = x + (long)(r - 1) * n, *here = above + n, *below = here + n;
        float *out = y + (long)r * n;
#pragma omp simd
        for (int c = 1; c < n - 1; c++)
            out[c] = (above[c - 1] + above[c] + above[c + 1] + here[c - 1] + here[c + 1] +
                      below[c - 1] + below[c] + below[c + 1]) * 0.125f;
    }
}

// Accelerations of bodies x, y, z, mass.
static void n_body(const float *restrict x, const float *restrict y, const float *restrict z,
                   const float *restrict mass, float *restrict out, int n) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
        for (int j = 0; j < n; j++) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float d = dx * dx + dy * dy + dz * dz + 0.01f;
            float f = mass[j] / (d * sqrtf(d));
            ax += dx * f, ay += dy * f, az += dz * f;
        }
        out[i] = ax, out[n + i] = ay, out[2 * n + i] = az;
    }
}

static long n;
static float *a, *b, *c, *d, *out;
static uint8_t *text;

#define KERNEL(label, results, call, ...)        \
    if (!strcmp(name, label)) {                  \
        __VA_ARGS__;                             \
        out = zeros(results);                    \
        void run(void) { call; }                 \
        run();                                   \
        serve(sum(out, results), run);           \
        return 0;                                \
    }

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    long size = count > 2 ? atol(words[2]) : 0;
    n = size;
    KERNEL("copy", n, copy(a, out, n), a = numbers(n, 1, 1))
    KERNEL("saxpy", n, saxpy(0.001f, a, out, n), a = numbers(n, 1, 1))
    KERNEL("triad", n, triad(0.5f, a, b, out, n), a = numbers(n, 1, 1), b = numbers(n, 2, 1))
    KERNEL("matmul", n *n, matmul(a, b, out, n), a = numbers(n * n, 1, 1), b = numbers(n * n, 2, 1))
    KERNEL("mandelbrot", n *n, mandelbrot(out, n, 256), )
    KERNEL("mandelbrot_by_hand", n *n, mandelbrot_by_hand(out, n, 256), )
    KERNEL("exp_sin", n, exp_sin(a, out, n), a = numbers(n, 1, 10))
    KERNEL("reduction", n / 4096, reduction(a, out, n), a = numbers(n, 1, 1))
    KERNEL("softmax", n *n, softmax(a, out, n, n), a = numbers(n * n, 1, 5))
    KERNEL("rms_norm", n *n, rms_norm(a, b, out, n, n), a = numbers(n * n, 1, 5), b = numbers(n, 2, 1))
    KERNEL("transpose", n *n, transpose(a, out, n), a = numbers(n * n, 1, 1))
    KERNEL("histogram", 256, histogram(text, out, n), text = bytes(n, 1))
    KERNEL("stencil", n *n, stencil(a, out, n), a = numbers(n * n, 1, 1))
    KERNEL("n_body", 3 * n, n_body(a, b, c, d, out, n), a = numbers(n, 1, 1), b = numbers(n, 2, 1),
           c = numbers(n, 3, 1), d = numbers(n, 4, 1))
    fprintf(stderr, "no kernel %s\n", name);
    return 2;
}
