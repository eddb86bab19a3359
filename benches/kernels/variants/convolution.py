"""A 5 x 5 convolution of 2048 x 2048, by shape of threadgroup and by spelling."""

import numpy as np

import invar as iv

SIDE = 2048
NAMES = ("x", "w", "y")


def inputs(rng):
    x = rng.random((SIDE, SIDE), np.float32)
    return {"x": x, "w": rng.random(25, np.float32), "y": np.zeros_like(x)}


X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


@iv.kernel
def rolled(x: X, w: X, y: X, n: U):
    column, row = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if column >= 2 and row >= 2 and column + 2 < n and row + 2 < n:
        total = 0.0
        for j in iv.range(iv.u32(0), 5):
            for i in iv.range(iv.u32(0), 5):
                total += x[(row + j - 2) * n + column + i - 2] * w[j * 5 + i]
        y[row * n + column] = total


@iv.kernel
def written_out(x: X, w: X, y: X, n: U):
    column, row = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if column >= 2 and row >= 2 and column + 2 < n and row + 2 < n:
        total = 0.0
        for j in range(5):
            for i in range(5):
                total += x[(row + j - 2) * n + column + i - 2] * w[j * 5 + i]
        y[row * n + column] = total


@iv.kernel
def signed(x: X, w: X, y: X, n: iv.Scalar[iv.i32]):
    column, row = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    if column < 2 or row < 2 or column >= n - 2 or row >= n - 2:
        return
    total = 0.0
    for j in iv.range(iv.i32(-2), 3):
        for i in iv.range(iv.i32(-2), 3):
            total += x[(row + j) * n + column + i] * w[(j + 2) * 5 + i + 2]
    y[row * n + column] = total


@iv.kernel
def from_the_corner(x: X, w: X, y: X, n: U):
    """A grid that leaves out the border."""
    column, row = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for j in iv.range(iv.u32(0), 5):
        for i in iv.range(iv.u32(0), 5):
            total += x[(row + j) * n + column + i] * w[j * 5 + i]
    y[(row + 2) * n + column + 2] = total


@iv.kernel
def wide(x: X, w: X, y: X, n: iv.Scalar[iv.u64]):
    column, row = (iv.u64(iv.thread_position_in_grid(a)) for a in "xy")
    if column >= 2 and row >= 2 and column + 2 < n and row + 2 < n:
        total = 0.0
        for j in iv.range(iv.u64(0), 5):
            for i in iv.range(iv.u64(0), 5):
                total += x[(row + j - 2) * n + column + i - 2] * w[j * 5 + i]
        y[row * n + column] = total


GRID = (SIDE, SIDE)
N = {"n": SIDE}

VARIANTS = [
    ("written out, 16 x 16", written_out, GRID, (16, 16), N),
    ("written out, 64 x 4", written_out, GRID, (64, 4), N),
    ("written out, 256 x 1", written_out, GRID, (256, 1), N),
    ("rolled, 16 x 16", rolled, GRID, (16, 16), N),
    ("rolled, 8 x 8", rolled, GRID, (8, 8), N),
    ("rolled, 32 x 8", rolled, GRID, (32, 8), N),
    ("rolled, 64 x 4", rolled, GRID, (64, 4), N),
    ("rolled, 256 x 1", rolled, GRID, (256, 1), N),
    ("rolled, 10 x 10", rolled, GRID, (10, 10), N),
    ("i32, early return", signed, GRID, (16, 16), N),
    ("u64", wide, GRID, (16, 16), N),
    ("no border", from_the_corner, (SIDE - 4, SIDE - 4), (16, 16), N),
]
