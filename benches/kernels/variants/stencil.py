"""The mean of the eight neighbours in 4096 x 4096: how the border is written, and by shape."""

import numpy as np

import invar as iv

SIDE = 4096
NAMES = ("x", "y")


def inputs(rng):
    x = rng.random((SIDE, SIDE), np.float32)
    # The border is not computed; what is wrapped or clamped there would differ.
    return {"x": x, "y": np.zeros_like(x)}


def result(arrays):
    return arrays["y"][1:-1, 1:-1]


X = iv.Buffer[iv.f32]
U, I = iv.Scalar[iv.u32], iv.Scalar[iv.i32]
AROUND = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]


@iv.kernel
def inside(x: X, y: X, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c > 0 and c < n - 1 and r > 0 and r < n - 1:
        total = 0.0
        for j in range(3):
            for i in range(3):
                if (i, j) != (1, 1):
                    total += x[(r + j - 1) * n + c + i - 1]
        y[r * n + c] = total * 0.125


@iv.kernel
def signed(x: X, y: X, n: I):
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    if c < 1 or r < 1 or c >= n - 1 or r >= n - 1:
        return
    total = 0.0
    for j, i in AROUND:
        total += x[(r + j) * n + c + i]
    y[r * n + c] = total * 0.125


@iv.kernel
def clamped(x: X, y: X, n: I):
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    total = 0.0
    for j, i in AROUND:
        row, column = iv.clamp(r + j, 0, n - 1), iv.clamp(c + i, 0, n - 1)
        total += x[row * n + column]
    y[r * n + c] = total * 0.125


@iv.kernel
def wrapped(x: X, y: X, n: I):
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    total = 0.0
    for j, i in AROUND:
        total += x[(r + j + n) % n * n + (c + i + n) % n]
    y[r * n + c] = total * 0.125


@iv.kernel
def selected(x: X, y: X, n: I):
    """Left of the first is the last."""
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    up, down = n - 1 if r == 0 else r - 1, 0 if r == n - 1 else r + 1
    left, right = n - 1 if c == 0 else c - 1, 0 if c == n - 1 else c + 1
    total = x[up * n + left] + x[up * n + c] + x[up * n + right]
    total += x[r * n + left] + x[r * n + right]
    total += x[down * n + left] + x[down * n + c] + x[down * n + right]
    y[r * n + c] = total * 0.125


@iv.kernel
def skipped(x: X, y: X, n: I):
    """Each neighbour behind its own test."""
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    total = 0.0
    for j, i in AROUND:
        if r + j >= 0 and r + j < n and c + i >= 0 and c + i < n:
            total += x[(r + j) * n + c + i]
    y[r * n + c] = total * 0.125


@iv.kernel
def rolled(x: X, y: X, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c > 0 and c < n - 1 and r > 0 and r < n - 1:
        total = 0.0
        for j in iv.range(iv.u32(0), 3):
            for i in iv.range(iv.u32(0), 3):
                total += x[(r + j - 1) * n + c + i - 1]
        y[r * n + c] = (total - x[r * n + c]) * 0.125


GRID = (SIDE, SIDE)
N = {"n": SIDE}

VARIANTS = [
    ("inside, 16 x 16", inside, GRID, (16, 16), N),
    ("inside, 8 x 8", inside, GRID, (8, 8), N),
    ("inside, 32 x 8", inside, GRID, (32, 8), N),
    ("inside, 64 x 4", inside, GRID, (64, 4), N),
    ("inside, 256 x 1", inside, GRID, (256, 1), N),
    ("inside, 1 x 256", inside, GRID, (1, 256), N),
    ("inside, 10 x 10", inside, GRID, (10, 10), N),
    ("i32, early return", signed, GRID, (16, 16), N),
    ("clamped", clamped, GRID, (16, 16), N),
    ("wrapped", wrapped, GRID, (16, 16), N),
    ("wrapped by conditions", selected, GRID, (16, 16), N),
    ("each neighbour tested", skipped, GRID, (16, 16), N),
    ("rolled", rolled, GRID, (16, 16), N),
]
