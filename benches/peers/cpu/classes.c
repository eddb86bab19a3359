// The kernels of benches/kernels/classes as one writes them well in C with OpenMP: borders apart from the
// inside, `restrict`, `simd` where a compiler must be told.
#include <math.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
#define ROWS _Pragma("omp parallel for schedule(static)")
#define EACH _Pragma("omp parallel for simd schedule(static)")

// wrapped.py

static u8 next_state(int count, u8 alive) { return count == 3 || (alive && count == 2); }

void life(const u8 *restrict x, u8 *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        const u8 *up = x + (long)((r + n - 1) % n) * n, *here = x + (long)r * n;
        const u8 *down = x + (long)((r + 1) % n) * n;
        u8 *out = y + (long)r * n;
#pragma omp simd
        for (int c = 1; c < n - 1; c++) {
            u8 count = up[c - 1] + up[c] + up[c + 1] + here[c - 1] + here[c + 1] + down[c - 1] + down[c] + down[c + 1];
            out[c] = (count == 3) | (here[c] & (count == 2));
        }
        for (int c = 0; c < n; c += n - 1) {
            int l = (c + n - 1) % n, m = (c + 1) % n;
            out[c] = next_state(up[l] + up[c] + up[m] + here[l] + here[m] + down[l] + down[c] + down[m], here[c]);
        }
    }
}

void wrapped_by_select(const float *restrict x, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        const float *up = x + (long)(r ? r - 1 : n - 1) * n, *here = x + (long)r * n;
        const float *down = x + (long)(r == n - 1 ? 0 : r + 1) * n;
        float *out = y + (long)r * n;
        out[0] = 0.25f * (here[n - 1] + here[1] + up[0] + down[0]);
#pragma omp simd
        for (int c = 1; c < n - 1; c++) out[c] = 0.25f * (here[c - 1] + here[c + 1] + up[c] + down[c]);
        out[n - 1] = 0.25f * (here[n - 2] + here[0] + up[n - 1] + down[n - 1]);
    }
}

static int clamped(int i, int n) { return i < 0 ? 0 : i > n - 1 ? n - 1 : i; }

static float convolved(const float *restrict x, const float *restrict w, int r, int c, int n) {
    float total = 0;
    for (int j = -2; j < 3; j++)
        for (int i = -2; i < 3; i++)
            total += x[(long)clamped(r + j, n) * n + clamped(c + i, n)] * w[(j + 2) * 5 + i + 2];
    return total;
}

void clamped_convolution(const float *restrict x, const float *restrict w, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float *out = y + (long)r * n;
        const float *rows[5];
        for (int j = 0; j < 5; j++) rows[j] = x + (long)clamped(r + j - 2, n) * n;
        for (int c = 0; c < 2; c++) out[c] = convolved(x, w, r, c, n);
#pragma omp simd
        for (int c = 2; c < n - 2; c++) {
            float total = 0;
#pragma GCC unroll 5
            for (int j = 0; j < 5; j++)
#pragma GCC unroll 5
                for (int i = 0; i < 5; i++) total += rows[j][c + i - 2] * w[j * 5 + i];
            out[c] = total;
        }
        for (int c = n - 2; c < n; c++) out[c] = convolved(x, w, r, c, n);
    }
}

void clamped_blur(const u8 *restrict x, u8 *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        const u8 *up = x + (long)clamped(r - 1, n) * n, *here = x + (long)r * n;
        const u8 *down = x + (long)clamped(r + 1, n) * n;
        u8 *out = y + (long)r * n;
#pragma omp simd
        for (int c = 1; c < n - 1; c++) {
            unsigned short total = up[c - 1] + up[c] + up[c + 1] + here[c - 1] + here[c] + here[c + 1] +
                                   down[c - 1] + down[c] + down[c + 1];
            out[c] = total / 9;
        }
        for (int c = 0; c < n; c += n - 1) {
            int l = clamped(c - 1, n), m = clamped(c + 1, n);
            out[c] = (up[l] + up[c] + up[m] + here[l] + here[c] + here[m] + down[l] + down[c] + down[m]) / 9;
        }
    }
}

// bytes.py

void gray(const u8 *restrict rgb, u8 *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) y[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}

void swap_channels(const u8 *restrict rgb, u8 *restrict bgr, int n) {
    EACH for (int i = 0; i < n; i++) {
        bgr[3 * i] = rgb[3 * i + 2];
        bgr[3 * i + 1] = rgb[3 * i + 1];
        bgr[3 * i + 2] = rgb[3 * i];
    }
}

void over(const u8 *restrict source, u8 *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        unsigned a = source[4 * i + 3];
        for (int k = 0; k < 4; k++) y[4 * i + k] = (source[4 * i + k] * a + y[4 * i + k] * (255 - a) + 127) / 255;
    }
}

void planes(const u8 *restrict rgb, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        y[i] = (rgb[3 * i] - 127.5f) * (float)(1.0 / 127.5);
        y[n + i] = (rgb[3 * i + 1] - 127.5f) * (float)(1.0 / 127.5);
        y[2 * n + i] = (rgb[3 * i + 2] - 127.5f) * (float)(1.0 / 127.5);
    }
}

// strides.py

void complex_product(const float *restrict a, const float *restrict b, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        float ar = a[2 * i], ai = a[2 * i + 1], br = b[2 * i], bi = b[2 * i + 1];
        y[2 * i] = ar * br - ai * bi;
        y[2 * i + 1] = ar * bi + ai * br;
    }
}

void particles(float *restrict p, int n, float dt) {
    EACH for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            float v = p[7 * i + 3 + k] * 0.999f;
            p[7 * i + 3 + k] = v;
            p[7 * i + k] += v * dt;
        }
}

void matrices_by_vectors(const float *restrict m, const float *restrict v, float *restrict y, int n) {
    ROWS for (int i = 0; i < n; i++)
        for (int r = 0; r < 4; r++) {
            float total = 0;
            for (int c = 0; c < 4; c++) total += m[16 * i + 4 * r + c] * v[4 * i + c];
            y[4 * i + r] = total;
        }
}

void normals(const float *restrict p, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        const float *t = p + 9 * i;
        float ax = t[3] - t[0], ay = t[4] - t[1], az = t[5] - t[2];
        float bx = t[6] - t[0], by = t[7] - t[1], bz = t[8] - t[2];
        float cx = ay * bz - az * by, cy = az * bx - ax * bz, cz = ax * by - ay * bx;
        float scale = 1.0f / sqrtf(cx * cx + cy * cy + cz * cz + 1e-20f);
        y[3 * i] = cx * scale, y[3 * i + 1] = cy * scale, y[3 * i + 2] = cz * scale;
    }
}

// columns.py

typedef float v16 __attribute__((vector_size(64), aligned(4)));

// Four rows by four at a time, 16 numbers of each.
void product_of_rows(const float *restrict a, const float *restrict b, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r += 4)
        for (int c = 0; c < n; c += 4) {
            v16 total[4][4] = {0};
            for (int k = 0; k < n; k += 16) {
                v16 p[4], q[4];
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) p[i] = *(const v16 *)(a + (long)(r + i) * n + k);
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) q[j] = *(const v16 *)(b + (long)(c + j) * n + k);
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
                    for (int j = 0; j < 4; j++) total[i][j] += p[i] * q[j];
            }
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) {
                    float s = 0;
                    for (int l = 0; l < 16; l++) s += total[i][j][l];
                    y[(long)(r + i) * n + c + j] = s;
                }
        }
}

void sums_of_rows(const float *restrict x, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int k = 0; k < n; k++) s += x[(long)r * n + k];
        y[r] = s;
    }
}

void matrix_by_vector(const float *restrict a, const float *restrict x, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int k = 0; k < n; k++) s += a[(long)r * n + k] * x[k];
        y[r] = s;
    }
}

void places_of_the_largest(const float *restrict x, u32 *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        const float *row = x + (long)r * n;
        float most = row[0];
#pragma omp simd reduction(max : most)
        for (int k = 1; k < n; k++) most = row[k] > most ? row[k] : most;
        int at = 0;
        while (row[at] != most) at++;
        y[r] = at;
    }
}

// rolled.py

void filter(const float *restrict x, const float *restrict w, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        float total = 0;
#pragma GCC unroll 16
        for (int k = 0; k < 16; k++) total += x[i + k] * w[k];
        y[i] = total;
    }
}

void polynomial(const float *restrict x, const float *restrict w, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        float total = 0;
#pragma GCC unroll 12
        for (int k = 0; k < 12; k++) total = total * x[i] + w[k];
        y[i] = total;
    }
}

void sums(const float *restrict x, float *restrict y, int n) {
    ROWS for (int g = 0; g < n; g++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int k = 0; k < 256; k++) s += x[(long)g * 256 + k];
        y[g] = s;
    }
}

// grids.py

void seven_points(const float *restrict x, float *restrict y, int n) {
    ROWS for (int k = 1; k < n - 1; k++)
        for (int j = 1; j < n - 1; j++) {
            long row = ((long)k * n + j) * n, plane = (long)n * n;
#pragma omp simd
            for (int i = 1; i < n - 1; i++) {
                const float *p = x + row + i;
                float near = p[-1] + p[1] + p[-n] + p[n] + p[-plane] + p[plane];
                y[row + i] = 0.4f * p[0] + 0.1f * near;
            }
        }
}

void scaled(const float *restrict x, float *restrict y, int n) {
    EACH for (long i = 0; i < (long)n * n * n; i++) y[i] = 2.0f * x[i] + y[i];
}

void axes_turned(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int k = 0; k < n; k++)
        for (int l = 0; l < n; l += 16)
            for (int m = 0; m < n; m += 16)
                for (int i = l; i < l + 16; i++)
                    for (int j = m; j < m + 16; j++) y[((long)i * n + k) * n + j] = x[((long)k * n + j) * n + i];
}

// tables.py

void looked_up(const u8 *restrict x, const u8 *restrict table, u8 *restrict y, int n) {
    ROWS for (int i = 0; i < n; i++) y[i] = table[x[i]];
}

void sparse_rows(const u32 *restrict start, const u32 *restrict column, const float *restrict value,
                 const float *restrict x, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float total = 0;
        for (u32 k = start[r]; k < start[r + 1]; k++) total += value[k] * x[column[k]];
        y[r] = total;
    }
}

void searched(const float *restrict x, const float *restrict table, u32 *restrict y, int n, int m) {
    ROWS for (int i = 0; i < n; i++) {
        const float *from = table;
        int left = m;
        // Without branches.
        while (left > 1) {
            int half = left / 2;
            from += (from[half - 1] < x[i]) * half;
            left -= half;
        }
        y[i] = from - table + (*from < x[i]);
    }
}

void gathered(const float *restrict x, const u32 *restrict at, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) y[i] = x[at[i]];
}

// fields.py

void scan(const float *restrict x, float *restrict y, int n) {
    ROWS for (int g = 0; g < n / 256; g++) {
        float s = 0;
        for (int k = 0; k < 256; k++) y[g * 256 + k] = s += x[g * 256 + k];
    }
}

void bitonic_step(float *restrict x, int j, int k, int n) {
    ROWS for (int block = 0; block < n; block += 2 * j) {
        int rises = !(block & k);
#pragma omp simd
        for (int i = block; i < block + j; i++) {
            float a = x[i], b = x[i + j];
            float low = a > b ? b : a, high = a > b ? a : b;
            x[i] = rises ? low : high;
            x[i + j] = rises ? high : low;
        }
    }
}

void shortest_paths_step(float *restrict d, int k, int n) {
    ROWS for (int i = 0; i < n; i++) {
        float by = d[(long)i * n + k];
#pragma omp simd
        for (int j = 0; j < n; j++) {
            float other = by + d[(long)k * n + j], own = d[(long)i * n + j];
            d[(long)i * n + j] = other < own ? other : own;
        }
    }
}

void nearest_centres(const float *restrict p, const float *restrict centres, u32 *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        float best = 1e30f;
        u32 at = 0;
        for (int c = 0; c < 16; c++) {
            float total = 0;
            for (int k = 0; k < 4; k++) {
                float difference = p[4 * i + k] - centres[4 * c + k];
                total += difference * difference;
            }
            at = total < best ? c : at;
            best = total < best ? total : best;
        }
        y[i] = at;
    }
}

void quantised_rows(const int8_t *restrict w, const float *restrict scale, const float *restrict x,
                    float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int k = 0; k < n; k++) s += w[(long)r * n + k] * x[k];
        y[r] = s * scale[r];
    }
}

void random_walks(float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        u32 state = i * 747796405u + 2891336453u, inside = 0;
        for (int k = 0; k < 64; k++) {
            state = state * 1664525u + 1013904223u;
            float a = (int)(state >> 8) * (1.0f / 16777216.0f);
            state = state * 1664525u + 1013904223u;
            float b = (int)(state >> 8) * (1.0f / 16777216.0f);
            inside += a * a + b * b <= 1.0f;
        }
        y[i] = (int)inside * (4.0f / 64.0f);
    }
}

void edges(const u8 *restrict x, u8 *restrict y, int n) {
    ROWS for (int r = 1; r < n - 1; r++) {
        const u8 *up = x + (long)(r - 1) * n, *here = up + n, *down = here + n;
        u8 *out = y + (long)r * n;
#pragma omp simd
        for (int c = 1; c < n - 1; c++) {
            short gx = up[c + 1] + 2 * here[c + 1] + down[c + 1] - up[c - 1] - 2 * here[c - 1] - down[c - 1];
            short gy = down[c - 1] + 2 * down[c] + down[c + 1] - up[c - 1] - 2 * up[c] - up[c + 1];
            short sum = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
            out[c] = sum < 255 ? sum : 255;
        }
    }
}

void butterflies(float *restrict x, const float *restrict w, int half) {
    int n = 1 << 21;
    ROWS for (int block = 0; block < n / half; block++) {
        float *a = x + 4l * block * half, *b = a + 2 * half;
#pragma omp simd
        for (int k = 0; k < half; k++) {
            float tr = b[2 * k] * w[2 * k] - b[2 * k + 1] * w[2 * k + 1];
            float ti = b[2 * k] * w[2 * k + 1] + b[2 * k + 1] * w[2 * k];
            float ar = a[2 * k], ai = a[2 * k + 1];
            a[2 * k] = ar + tr, a[2 * k + 1] = ai + ti;
            b[2 * k] = ar - tr, b[2 * k + 1] = ai - ti;
        }
    }
}

void running_sums(const float *restrict x, float *restrict y, int n) {
    ROWS for (int r = 0; r < n; r++) {
        float s = 0;
        for (int k = 0; k < n; k++) y[(long)r * n + k] = s += x[(long)r * n + k];
    }
}

void reached(const u32 *restrict start, const u32 *restrict column, const u32 *restrict level, u32 *restrict y,
             u32 now, int n) {
    ROWS for (int v = 0; v < n; v++) {
        u32 found = 0;
        if (level[v] > now)
            for (u32 k = start[v]; k < start[v + 1] && !found; k++) found = level[column[k]] == now;
        y[v] = found;
    }
}

void mixed(const u32 *restrict x, u32 *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        u32 h = x[i];
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
            h = (h ^ (h >> 13)) * 0xC2B2AE35u + k;
        }
        y[i] = h ^ (h >> 16);
    }
}

void heat(const double *restrict x, double *restrict y, int n) {
    ROWS for (int r = 1; r < n - 1; r++) {
        const double *here = x + (long)r * n, *up = here - n, *down = here + n;
        double *out = y + (long)r * n;
#pragma omp simd
        for (int c = 1; c < n - 1; c++)
            out[c] = here[c] + 0.1 * (here[c - 1] + here[c + 1] + up[c] + down[c] - 4.0 * here[c]);
    }
}

void tiled_filter(const float *restrict x, const float *restrict w, float *restrict y, int n) {
    EACH for (int i = 0; i < n; i++) {
        float total = 0;
#pragma GCC unroll 9
        for (int k = 0; k < 9; k++) total += x[i + k] * w[k];
        y[i] = total;
    }
}

void found_words(const u8 *restrict text, const u8 *restrict word, u8 *restrict y, int n) {
    EACH for (int i = 0; i < n - 7; i++) {
        u8 same = 1;
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) same &= text[i + k] == word[k];
        y[i] = same;
    }
}
