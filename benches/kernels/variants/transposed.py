"""A B', A' B and A B through tiles of 16 x 16: the operands as they are stored.

The inputs are stored so that all compute the same product.
"""

import numpy as np

import invar as iv

SIDE = 1024
NAMES = ("a", "b", "c")
#: Of the worst to the best.
WORST = 1.3


def inputs(rng):
    a, b = rng.random((2, SIDE, SIDE), np.float32)
    return {"a": a, "b": b, "c": np.zeros((SIDE, SIDE), np.float32)}


def stored(given, left, right):
    """The inputs with sides transposed."""
    a, b = given["a"], given["b"]
    return given | {
        "a": np.ascontiguousarray(a.T) if left else a,
        "b": np.ascontiguousarray(b.T) if right else b,
    }


X = iv.Buffer[iv.f32]


@iv.kernel
def product(a: X, b: X, c: X, n: iv.Scalar[iv.u32], left=False, right=False, width=16):
    x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    column, row = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    tile_a, tile_b = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    first_row, first_column = row - y, column - x
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        if left:
            tile_a[x * width + y] = a[(k + y) * n + first_row + x]
        else:
            tile_a[y * width + x] = a[row * n + k + x]
        if right:
            tile_b[x * width + y] = b[(first_column + y) * n + k + x]
        else:
            tile_b[y * width + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in range(width):
            total += tile_a[y * width + i] * tile_b[i * width + x]
        iv.barrier()
    c[row * n + column] = total


SQUARE = ((SIDE, SIDE), (16, 16))

VARIANTS = [
    ("A B", product, *SQUARE, {"n": SIDE}),
    ("A B'", product, *SQUARE, {"n": SIDE, "right": True}, lambda g: stored(g, False, True)),
    ("A' B", product, *SQUARE, {"n": SIDE, "left": True}, lambda g: stored(g, True, False)),
]
