// What the peers in C share: inputs, by the same generator as in benches/src/cpu.rs, and the protocol.
// A peer prints the checksum of what its kernel wrote, then runs it once for each line on standard
// input and prints the seconds that it took.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// xorshift32, as -1 to 1 times a scale.
static float *numbers(long n, uint32_t seed, float scale) {
    float *x = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    uint32_t s = seed;
    for (long i = 0; i < n; i++) {
        s ^= s << 13, s ^= s >> 17, s ^= s << 5;
        x[i] = ((float)(s >> 8) / 8388608.0f - 1.0f) * scale;
    }
    return x;
}

static uint8_t *bytes(long n, uint32_t seed) {
    uint8_t *x = aligned_alloc(64, (n + 63) / 64 * 64);
    uint32_t s = seed;
    for (long i = 0; i < n; i++) {
        s ^= s << 13, s ^= s >> 17, s ^= s << 5;
        x[i] = s >> 24;
    }
    return x;
}

static float *zeros(long n) {
    float *x = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    memset(x, 0, n * sizeof(float));
    return x;
}

static double sum(const float *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * (double)(i % 7 + 1);
    return s;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void serve(double checksum, void (*run)(void)) {
    printf("%.17g\n", checksum);
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        double start = seconds();
        run();
        printf("%.9g\n", seconds() - start);
        fflush(stdout);
    }
}
