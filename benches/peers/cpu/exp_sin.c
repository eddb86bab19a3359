// Compiled with -Ofast, so that the compiler takes exp and sin from libmvec.
#include <math.h>

void exp_sin(const float *restrict x, float *restrict y, long n) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) y[i] = expf(x[i]) * sinf(x[i]);
}
