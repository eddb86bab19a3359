"""Transpose through threadgroup memory, with a swizzle instead of padding.

Rows of a tile are written and columns read; the swizzle spreads both over all banks.
"""

import numpy as np

import invar as iv
from invar import layout as ly

TILE = ly.swizzle(ly.Layout((32, 32), (32, 1)), 5, 0, 5)


@iv.kernel(threadgroup=(32, 8))
def transpose(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], rows: iv.Scalar[iv.u32], columns: iv.Scalar[iv.u32]):
    tile = iv.Tensor(iv.threadgroup_alloc(iv.f32, 1024), TILE)
    i, j = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    row = iv.threadgroup_position_in_grid("y") * 32
    column = iv.threadgroup_position_in_grid("x") * 32
    for k in range(0, 32, 8):
        if row + j + k < rows and column + i < columns:
            tile[j + k, i] = x[(row + j + k) * columns + column + i]
    iv.barrier("threadgroup", "threadgroup")
    for k in range(0, 32, 8):
        if column + j + k < columns and row + i < rows:
            y[(column + j + k) * rows + row + i] = tile[i, j + k]


def run(rows=100, columns=70, seed=0):
    """Transposes a random matrix; gives whether it is NumPy's transpose."""
    x = np.random.default_rng(seed).random((rows, columns), dtype=np.float32)
    y = np.zeros((columns, rows), np.float32)
    groups = -(-columns // 32), -(-rows // 32)
    transpose[iv.threadgroups(*groups), (32, 8)](x, y, rows, columns)
    return bool((y == x.T).all())


if __name__ == "__main__":
    print("equal to NumPy's transpose:", run())
