"""The kernels in Numba, parallel and without fastmath, by the protocol of inputs.h: numba_peer.py KERNEL N."""

import math
import sys
import time

import numpy as np
from numba import get_num_threads, njit, prange


@njit
def bits(count, seed):
    """xorshift32."""
    out = np.empty(count, np.uint32)
    s = np.uint32(seed)
    for i in range(count):
        s ^= np.uint32(s << np.uint32(13))
        s ^= np.uint32(s >> np.uint32(17))
        s ^= np.uint32(s << np.uint32(5))
        out[i] = s
    return out


def numbers(count, seed, scale=1.0):
    """-1 to 1 times a scale."""
    x = (bits(count, seed) >> 8).astype(np.float32)
    return (x / np.float32(8388608) - np.float32(1)) * np.float32(scale)


@njit(parallel=True)
def saxpy(a, x, y):
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


@njit(parallel=True)
def triad(a, x, y, z):
    for i in prange(x.size):
        z[i] = x[i] + a * y[i]


@njit(parallel=True)
def exp_sin(x, y):
    for i in prange(x.size):
        y[i] = math.exp(x[i]) * math.sin(x[i])


@njit(parallel=True)
def matmul(a, b, c):
    n = a.shape[0]
    for block in prange(n // 8):
        for r in range(8 * block, 8 * block + 8):
            c[r] = 0
        for k in range(n):
            for r in range(8 * block, 8 * block + 8):
                f = a[r, k]
                for j in range(n):
                    c[r, j] += f * b[k, j]


@njit(parallel=True)
def mandelbrot(out, n, limit):
    step = np.float32(2.5) / np.float32(n)
    two, four = np.float32(2), np.float32(4)
    for p in prange(n):
        cy = np.float32(p) * step - np.float32(1.25)
        for q in range(n):
            cx = np.float32(q) * step - two
            x = y = np.float32(0)
            count = 0
            while count < limit and x * x + y * y < four:
                x, y = x * x - y * y + cx, two * x * y + cy
                count += 1
            out[p, q] = count


@njit(parallel=True)
def reduction(x, out):
    for g in prange(out.size):
        s = np.float32(0)
        for i in range(4096):
            s += x[g * 4096 + i]
        out[g] = s


@njit(parallel=True)
def softmax(x, y):
    for r in prange(x.shape[0]):
        most = np.float32(-np.inf)
        for c in range(x.shape[1]):
            most = max(most, x[r, c])
        s = np.float32(0)
        for c in range(x.shape[1]):
            y[r, c] = math.exp(x[r, c] - most)
            s += y[r, c]
        scale = np.float32(1) / s
        for c in range(x.shape[1]):
            y[r, c] *= scale


@njit(parallel=True)
def rms_norm(x, w, y):
    n = x.shape[1]
    for r in prange(x.shape[0]):
        s = np.float32(0)
        for c in range(n):
            s += x[r, c] * x[r, c]
        scale = np.float32(1) / np.float32(math.sqrt(s / np.float32(n) + np.float32(1e-6)))
        for c in range(n):
            y[r, c] = x[r, c] * scale * w[c]


@njit(parallel=True)
def transpose(x, y):
    n = x.shape[0]
    for block in prange(n // 32):
        for j in range(0, n, 32):
            for r in range(block * 32, block * 32 + 32):
                for c in range(j, j + 32):
                    y[r, c] = x[c, r]


@njit(parallel=True)
def histogram(x, own, out):
    parts = own.shape[0]
    each = x.size // parts
    for p in prange(parts):
        mine = own[p]
        mine[:] = 0
        for i in range(p * each, (p + 1) * each):
            mine[x[i]] += 1
    for b in range(256):
        total = 0
        for p in range(parts):
            total += own[p, b]
        out[b] = total


@njit(parallel=True)
def stencil(x, y):
    n = x.shape[0]
    eighth = np.float32(0.125)
    for r in prange(1, n - 1):
        for c in range(1, n - 1):
            y[r, c] = (
                x[r - 1, c - 1] + x[r - 1, c] + x[r - 1, c + 1] + x[r, c - 1] + x[r, c + 1]
                + x[r + 1, c - 1] + x[r + 1, c] + x[r + 1, c + 1]
            ) * eighth


@njit(parallel=True)
def n_body(x, y, z, mass, out):
    n = x.size
    soft = np.float32(0.01)
    for i in prange(n):
        ax = ay = az = np.float32(0)
        for j in range(n):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            d = dx * dx + dy * dy + dz * dz + soft
            f = mass[j] / (d * np.float32(math.sqrt(d)))
            ax += dx * f
            ay += dy * f
            az += dz * f
        out[i], out[n + i], out[2 * n + i] = ax, ay, az


def prepared(name, n):
    """The call, and what it writes."""
    square = (n, n)
    if name == "saxpy":
        x, y = numbers(n, 1), np.zeros(n, np.float32)
        return lambda: saxpy(np.float32(0.001), x, y), y
    if name == "triad":
        x, y, z = numbers(n, 1), numbers(n, 2), np.zeros(n, np.float32)
        return lambda: triad(np.float32(0.5), x, y, z), z
    if name == "exp_sin":
        x, y = numbers(n, 1, 10), np.zeros(n, np.float32)
        return lambda: exp_sin(x, y), y
    if name == "reduction":
        x, y = numbers(n, 1), np.zeros(n // 4096, np.float32)
        return lambda: reduction(x, y), y
    if name == "histogram":
        # The bytes as they come, and a table for each thread.
        x, y = (bits(n, 1) >> 24).astype(np.uint8), np.zeros(256, np.float32)
        own = np.zeros((get_num_threads(), 256), np.uint32)
        return lambda: histogram(x, own, y), y
    if name == "n_body":
        given = [numbers(n, seed) for seed in (1, 2, 3, 4)]
        y = np.zeros(3 * n, np.float32)
        return lambda: n_body(*given, y), y
    y = np.zeros(square, np.float32)
    if name == "mandelbrot":
        return lambda: mandelbrot(y, n, 256), y
    x = numbers(n * n, 1, 5 if name in ("softmax", "rms_norm") else 1).reshape(square)
    if name == "matmul":
        b = numbers(n * n, 2).reshape(square)
        return lambda: matmul(x, b, y), y
    if name == "rms_norm":
        w = numbers(n, 2)
        return lambda: rms_norm(x, w, y), y
    kernel = {"softmax": softmax, "transpose": transpose, "stencil": stencil}[name]
    return lambda: kernel(x, y), y


run, result = prepared(sys.argv[1], int(sys.argv[2]))
run()
weights = np.arange(result.size) % 7 + 1
print(repr(float((result.ravel().astype(float) * weights).sum())), flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    run()
    print(time.perf_counter() - start, flush=True)
