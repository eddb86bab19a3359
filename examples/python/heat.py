"""The 1-D Laplacian and the heat equation: a threadgroup steps its part of a rod in shared tiles.

A tile has a halo as wide as the steps that it makes, so that no threadgroup waits for another.
"""

import numpy as np

import invar as iv

THREADS, STEPS = 256, 8


@iv.kernel
def laplacian(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
    """Second differences; beyond both ends the rod is 0."""
    i = iv.thread_position_in_grid("x")
    left = iv.load_if(i > 0, x, i - 1)
    right = iv.load_if(i + 1 < n, x, i + 1)
    y[i] = left - 2.0 * x[i] + right


@iv.kernel(threadgroup=THREADS)
def heat(
    x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.i32], rate: iv.Scalar[iv.f32]
):
    """STEPS steps of the heat equation, in two tiles that take turns."""
    t = iv.i32(iv.thread_index_in_threadgroup())
    inner = THREADS - 2 * STEPS
    i = iv.i32(iv.threadgroup_position_in_grid("x")) * inner + t - STEPS
    inside = (i >= 0) & (i < n)
    tiles = iv.pipeline(iv.f32, THREADS)
    tiles.front[t] = iv.load_if(inside, x, i)
    for _ in iv.range(STEPS):
        iv.barrier("threadgroup", "threadgroup")
        here = tiles.front[t]
        left = iv.load_if(t > 0, tiles.front, t - 1)
        right = iv.load_if(t < THREADS - 1, tiles.front, t + 1)
        warmer = here + rate * (left - 2.0 * here + right)
        tiles.back[t] = warmer if inside else 0.0
        tiles.advance()
    if (t >= STEPS) & (t < THREADS - STEPS) & inside:
        y[i] = tiles.front[t]


def differences(x):
    """NumPy's second differences."""
    padded = np.pad(x, 1)
    return padded[:-2] - 2 * x + padded[2:]


def run(n=1000, seed=0):
    """Both kernels on a random rod; gives their largest differences to NumPy."""
    x = np.random.default_rng(seed).random(n, dtype=np.float32)
    y = np.zeros_like(x)
    laplacian[n, THREADS](x, y, n)
    first = np.abs(y - differences(x)).max()
    wanted = x.astype(np.float64)
    for _ in range(STEPS):
        wanted = wanted + 0.2 * differences(wanted)
    groups = -(-n // (THREADS - 2 * STEPS))
    heat[groups * THREADS, THREADS](x, y, n, 0.2)
    return float(first), float(np.abs(y - wanted).max())


if __name__ == "__main__":
    print("largest differences to NumPy: Laplacian %.2g, heat %.2g" % run())
