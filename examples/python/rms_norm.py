"""RMSNorm: each row divided by its root mean square, a threadgroup a row."""

import numpy as np

import invar as iv

THREADS = 256


@iv.kernel(threadgroup=THREADS, simdgroup=32)
def rms_norm(
    x: iv.Buffer[iv.f32],
    weight: iv.Buffer[iv.f32],
    y: iv.Buffer[iv.f32],
    n: iv.Scalar[iv.u32],
    epsilon: iv.Scalar[iv.f32],
):
    row = iv.threadgroup_position_in_grid("x") * n
    t = iv.thread_index_in_threadgroup()
    partial = iv.threadgroup_alloc(iv.f32, THREADS // 32)
    total = 0.0
    for i in iv.range(t, n, THREADS):
        total += x[row + i] * x[row + i]
    total = iv.simd_sum(total)
    if iv.thread_index_in_simdgroup() == 0:
        partial[iv.simdgroup_index_in_threadgroup()] = total
    iv.barrier("threadgroup", "threadgroup")
    total = 0.0
    for k in range(THREADS // 32):
        total += partial[k]
    scale = iv.rsqrt(total / iv.f32(n) + epsilon)
    for i in iv.range(t, n, THREADS):
        y[row + i] = x[row + i] * scale * weight[i]


def run(rows=4, n=1000, seed=0):
    """Normalises random rows; gives the largest difference to NumPy."""
    rng = np.random.default_rng(seed)
    x, weight = rng.standard_normal((rows, n), np.float32), rng.random(n, np.float32)
    y = np.zeros_like(x)
    rms_norm[rows * THREADS, THREADS](x, weight, y, n, 1e-6)
    wanted = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-6) * weight
    return float(np.abs(y - wanted).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run():.2g}")
