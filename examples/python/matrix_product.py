"""The product of two matrices by tiles: a threadgroup brings tiles of both into its own memory."""

import numpy as np

import invar as iv

TILE = 16


@iv.kernel(threadgroup=(TILE, TILE))
def product(
    a: iv.Buffer[iv.f32],
    b: iv.Buffer[iv.f32],
    c: iv.Buffer[iv.f32],
    k: iv.Scalar[iv.u32],
    n: iv.Scalar[iv.u32],
):
    """``c = a @ b``, of ``m`` by ``k`` and ``k`` by ``n`` numbers; all multiples of TILE."""
    column, row = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    tile_a = iv.threadgroup_alloc(iv.f32, TILE * TILE)
    tile_b = iv.threadgroup_alloc(iv.f32, TILE * TILE)
    total = 0.0
    for first in iv.range(iv.u32(0), k, TILE):
        tile_a[y * TILE + x] = a[row * k + first + x]
        tile_b[y * TILE + x] = b[(first + y) * n + column]
        iv.barrier("threadgroup", "threadgroup")
        for i in range(TILE):
            total = iv.fma(tile_a[y * TILE + i], tile_b[i * TILE + x], total)
        iv.barrier("threadgroup", "threadgroup")
    c[row * n + column] = total


def run(m=64, k=48, n=32, seed=0):
    """Multiplies two random matrices; gives the largest relative difference to NumPy."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    product[(n, m), (TILE, TILE)](a, b, c, k, n)
    wanted = a.astype(np.float64) @ b
    return float((np.abs(c - wanted) / wanted).max())


if __name__ == "__main__":
    print(f"largest relative difference to NumPy: {run():.2g}")
