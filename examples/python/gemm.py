"""Matrix products by tiles: double-buffered with simdgroup matrices, and one result a thread.

Every size is a multiple of the tile's. Matrices are row-major.
"""

import numpy as np

import invar as iv
from invar import layout as ly

#: A threadgroup computes a TILE x TILE part of the product, DEPTH columns of A at a time; each of its
#: simdgroups has DOWN x ACROSS of it in registers.
TILE, DEPTH, DOWN, ACROSS = 64, 16, 8, 32
THREADS = 32 * (TILE // DOWN) * (TILE // ACROSS)


@iv.kernel(threadgroup=THREADS, simdgroup=32)
def double_buffered(
    a: iv.Buffer[iv.f32], b: iv.Buffer[iv.f32], c: iv.Buffer[iv.f32], m, n, k
):
    """While the simdgroups multiply the front stage, the next tiles arrive in the back one."""
    t = iv.thread_index_in_threadgroup()
    row = iv.threadgroup_position_in_grid("y") * TILE
    column = iv.threadgroup_position_in_grid("x") * TILE
    left = iv.pipeline(iv.f32, TILE * DEPTH)
    right = iv.pipeline(iv.f32, DEPTH * TILE)

    def fetch(step):
        for i in iv.range(t, TILE * DEPTH, THREADS):
            left.back[i] = a[(row + i // DEPTH) * k + step + i % DEPTH]
            right.back[i] = b[(step + i // TILE) * n + column + i % TILE]

    part = iv.simdgroup_index_in_threadgroup()
    down, across = part // (TILE // ACROSS) * DOWN, part % (TILE // ACROSS) * ACROSS
    total = iv.simdgroup_tile(iv.f32, DOWN, ACROSS)
    fetch(iv.u32(0))
    for step in iv.range(iv.u32(0), k, DEPTH):
        left.advance()
        right.advance()
        iv.barrier("threadgroup", "threadgroup")
        if step + DEPTH < k:
            fetch(step + DEPTH)
        iv.gemm(
            total,
            left.front.at(down * DEPTH),
            right.front.at(across),
            DOWN,
            ACROSS,
            DEPTH,
            b_row=TILE,
        )
    iv.simdgroup_tile_store(total, c, (row + down) * n + column + across, n)


@iv.kernel(threadgroup=(16, 16))
def tiled(a: iv.Buffer[iv.f32], b: iv.Buffer[iv.f32], c: iv.Buffer[iv.f32], m, n, k):
    """One result a thread, through tiles of 16 x 16 seen through layouts."""
    i, j = iv.thread_position_in_threadgroup("y"), iv.thread_position_in_threadgroup("x")
    row, column = iv.threadgroup_position_in_grid("y"), iv.threadgroup_position_in_grid("x")
    left = iv.Tensor(iv.threadgroup_alloc(iv.f32, 256), ly.Layout((16, 16), (16, 1)))
    right = iv.Tensor(iv.threadgroup_alloc(iv.f32, 256), ly.Layout((16, 16), (16, 1)))
    tiles_a = iv.Tensor(a, ly.Layout((m, k), (k, 1))).zipped_divide((16, 16))
    tiles_b = iv.Tensor(b, ly.Layout((k, n), (n, 1))).zipped_divide((16, 16))
    total = 0.0
    for step in iv.range(iv.u32(0), k // 16):
        left[i, j] = tiles_a[(i, j), (row, step)]
        right[i, j] = tiles_b[(i, j), (step, column)]
        iv.barrier("threadgroup", "threadgroup")
        for inner in range(16):
            total += left[i, inner] * right[inner, j]
        iv.barrier("threadgroup", "threadgroup")
    iv.Tensor(c, ly.Layout((m, n), (n, 1)))[row * 16 + i, column * 16 + j] = total


def grid(kernel, m, n):
    """The grid and the threadgroup size for a product of m x n."""
    if kernel is double_buffered:
        return (n // TILE * THREADS, m // TILE), THREADS
    return (n, m), (16, 16)


def run(kernel=double_buffered, m=64, n=128, k=80, seed=0):
    """Multiplies two random matrices; gives the largest relative difference to NumPy."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    kernel[grid(kernel, m, n)](a, b, c, m, n, k)
    wanted = a.astype(np.float64) @ b
    return float((np.abs(c - wanted) / wanted).max())


if __name__ == "__main__":
    for kernel in (double_buffered, tiled):
        print(f"{kernel.__name__}: largest relative difference to NumPy {run(kernel):.2g}")
