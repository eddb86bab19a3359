"""OpenBLAS through NumPy, by the protocol of peers.c: blas.py matmul N."""

import sys
import time

import numpy


def numbers(n: int, seed: int) -> numpy.ndarray:
    """xorshift32, as -1 to 1."""
    state, values = seed, numpy.empty(n, numpy.uint32)
    for i in range(n):
        state = (state ^ state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state = (state ^ state << 5) & 0xFFFFFFFF
        values[i] = state
    return (values >> 8).astype(numpy.float32) / numpy.float32(8388608) - numpy.float32(1)


n = int(sys.argv[2])
a, b = (numbers(n * n, seed).reshape(n, n) for seed in (1, 2))
c = numpy.matmul(a, b)
weights = numpy.arange(n * n) % 7 + 1
print(repr(float((c.ravel().astype(float) * weights).sum())), flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    numpy.matmul(a, b, out=c)
    print(time.perf_counter() - start, flush=True)
