"""The softmax of each row of a matrix, a threadgroup a row."""

import numpy as np

import invar as iv

THREADS = 256


def share(own, parts):
    """What each simdgroup of the threadgroup has found, in a place for each."""
    if iv.thread_index_in_simdgroup() == 0:
        parts[iv.simdgroup_index_in_threadgroup()] = own
    iv.barrier("threadgroup", "threadgroup")


@iv.kernel(threadgroup=THREADS, simdgroup=32)
def softmax(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
    maxima = iv.threadgroup_alloc(iv.f32, THREADS // 32)
    sums = iv.threadgroup_alloc(iv.f32, THREADS // 32)
    t = iv.thread_index_in_threadgroup()
    start = iv.threadgroup_position_in_grid("x") * n
    most = -np.inf
    for i in iv.range(t, n, THREADS):
        most = iv.fmax(most, x[start + i])
    share(iv.simd_max(most), maxima)
    most = -np.inf
    for k in range(THREADS // 32):
        most = iv.fmax(most, maxima[k])
    total = 0.0
    for i in iv.range(t, n, THREADS):
        total += iv.exp(x[start + i] - most)
    share(iv.simd_sum(total), sums)
    total = 0.0
    for k in range(THREADS // 32):
        total += sums[k]
    for i in iv.range(t, n, THREADS):
        y[start + i] = iv.exp(x[start + i] - most) / total


def run(rows=4, n=1000, seed=0):
    """The softmax of random rows; gives the largest difference to NumPy."""
    x = 8 * np.random.default_rng(seed).standard_normal((rows, n), np.float32)
    y = np.zeros_like(x)
    softmax[rows * THREADS, THREADS](x, y, n)
    wanted = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return float(np.abs(y - wanted / wanted.sum(1, keepdims=True)).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run():.2g}")
