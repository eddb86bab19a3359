"""The transposition of 4096 x 4096, naively and through tiles."""

import numpy as np

import invar as iv

SIDE = 4096
NAMES = ("x", "y")


def inputs(rng):
    x = rng.random((SIDE, SIDE), np.float32)
    return {"x": x, "y": np.zeros_like(x)}


X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


@iv.kernel
def gather(x: X, y: X, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    y[r * n + c] = x[c * n + r]


@iv.kernel
def scatter(x: X, y: X, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    y[c * n + r] = x[r * n + c]


@iv.kernel
def scatter_guarded(x: X, y: X, n: iv.Scalar[iv.i32]):
    c, r = (iv.i32(iv.thread_position_in_grid(a)) for a in "xy")
    if c < n and r < n:
        y[c * n + r] = x[r * n + c]


@iv.kernel
def tiled(x: X, y: X, n: U, width=16, padding=0):
    c, r = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    left = iv.threadgroup_position_in_grid("x") * width
    top = iv.threadgroup_position_in_grid("y") * width
    pitch = width + padding
    tile = iv.threadgroup_alloc(iv.f32, width * pitch)
    tile[r * pitch + c] = x[(top + r) * n + left + c]
    iv.barrier()
    y[(left + r) * n + top + c] = tile[c * pitch + r]


@iv.kernel
def four_rows(x: X, y: X, n: U, padding=1):
    """Tiles of 32 x 32 by 32 x 8 threads."""
    c, r = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    left = iv.threadgroup_position_in_grid("x") * 32
    top = iv.threadgroup_position_in_grid("y") * 32
    pitch = 32 + padding
    tile = iv.threadgroup_alloc(iv.f32, 32 * pitch)
    for k in range(0, 32, 8):
        tile[(r + k) * pitch + c] = x[(top + r + k) * n + left + c]
    iv.barrier()
    for k in range(0, 32, 8):
        y[(left + r + k) * n + top + c] = tile[c * pitch + r + k]


@iv.kernel
def four_rows_rolled(x: X, y: X, n: U, padding=1):
    c, r = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    left = iv.threadgroup_position_in_grid("x") * 32
    top = iv.threadgroup_position_in_grid("y") * 32
    pitch = 32 + padding
    tile = iv.threadgroup_alloc(iv.f32, 32 * pitch)
    for k in iv.range(r, 32, 8):
        tile[k * pitch + c] = x[(top + k) * n + left + c]
    iv.barrier()
    for k in iv.range(r, 32, 8):
        y[(left + k) * n + top + c] = tile[c * pitch + k]


@iv.kernel
def swizzled(x: X, y: X, n: U, width=32):
    """Without padding, the columns of each row exchanged."""
    c, r = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    left = iv.threadgroup_position_in_grid("x") * width
    top = iv.threadgroup_position_in_grid("y") * width
    tile = iv.threadgroup_alloc(iv.f32, width * width)
    tile[r * width + (c ^ r)] = x[(top + r) * n + left + c]
    iv.barrier()
    y[(left + r) * n + top + c] = tile[c * width + (c ^ r)]


GRID = (SIDE, SIDE)
N = {"n": SIDE}

VARIANTS = [
    ("gather, 16 x 16", gather, GRID, (16, 16), N),
    ("gather, 256 x 1", gather, GRID, (256, 1), N),
    ("scatter, 16 x 16", scatter, GRID, (16, 16), N),
    ("scatter, 32 x 8", scatter, GRID, (32, 8), N),
    ("scatter, 1 x 256", scatter, GRID, (1, 256), N),
    ("scatter, i32, guarded", scatter_guarded, GRID, (16, 16), N),
    ("tiles of 16", tiled, GRID, (16, 16), N),
    ("tiles of 16, padded", tiled, GRID, (16, 16), N | {"padding": 1}),
    ("tiles of 8", tiled, GRID, (8, 8), N | {"width": 8}),
    ("tiles of 32", tiled, GRID, (32, 32), N | {"width": 32, "padding": 1}),
    ("tiles of 32 by 32 x 8", four_rows, (SIDE, SIDE // 4), (32, 8), N),
    ("the same, rolled", four_rows_rolled, (SIDE, SIDE // 4), (32, 8), N),
    ("the same, not padded", four_rows, (SIDE, SIDE // 4), (32, 8), N | {"padding": 0}),
    ("swizzled", swizzled, GRID, (32, 32), N),
]
