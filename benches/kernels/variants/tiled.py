"""The product of two square matrices through tiles in threadgroup memory."""

import numpy as np

import invar as iv

SIDE = 1024
NAMES = ("a", "b", "c")


def inputs(rng):
    a, b = rng.random((2, SIDE, SIDE), np.float32)
    return {"a": a, "b": b, "c": np.zeros((SIDE, SIDE), np.float32)}


X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


def positions():
    return (
        iv.thread_position_in_threadgroup("x"),
        iv.thread_position_in_threadgroup("y"),
        iv.thread_position_in_grid("x"),
        iv.thread_position_in_grid("y"),
    )


@iv.kernel
def written_out(a: X, b: X, c: X, n: U, width=16):
    x, y, column, row = positions()
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        left[y * width + x] = a[row * n + k + x]
        right[y * width + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in range(width):
            total += left[y * width + i] * right[i * width + x]
        iv.barrier()
    c[row * n + column] = total


@iv.kernel
def rolled(a: X, b: X, c: X, n: U, width=16):
    x, y, column, row = positions()
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        left[y * width + x] = a[row * n + k + x]
        right[y * width + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in iv.range(iv.u32(0), width):
            total += left[y * width + i] * right[i * width + x]
        iv.barrier()
    c[row * n + column] = total


@iv.kernel
def by_tiles(a: X, b: X, c: X, n: U, width=16):
    """The tile counted, not its first column."""
    x, y, column, row = positions()
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for t in iv.range(iv.u32(0), n // width):
        left[y * width + x] = a[row * n + t * width + x]
        right[y * width + x] = b[(t * width + y) * n + column]
        iv.barrier()
        for i in iv.range(iv.u32(0), width):
            total += left[y * width + i] * right[i * width + x]
        iv.barrier()
    c[row * n + column] = total


@iv.kernel
def padded(a: X, b: X, c: X, n: U, width=16):
    x, y, column, row = positions()
    pitch = width + 1
    left, right = (iv.threadgroup_alloc(iv.f32, width * pitch) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        left[y * pitch + x] = a[row * n + k + x]
        right[y * pitch + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in range(width):
            total += left[y * pitch + i] * right[i * pitch + x]
        iv.barrier()
    c[row * n + column] = total


@iv.kernel
def guarded(a: X, b: X, c: X, n: U, width=16):
    """For any size: what lies outside is 0."""
    x, y, column, row = positions()
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        left[y * width + x] = a[row * n + k + x] if row < n and k + x < n else 0.0
        right[y * width + x] = b[(k + y) * n + column] if k + y < n and column < n else 0.0
        iv.barrier()
        for i in range(width):
            total += left[y * width + i] * right[i * width + x]
        iv.barrier()
    if row < n and column < n:
        c[row * n + column] = total


@iv.kernel
def signed(a: X, b: X, c: X, n: iv.Scalar[iv.i32], width=16):
    x, y, column, row = (iv.i32(p) for p in positions())
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.i32(0), n, width):
        left[y * width + x] = a[row * n + k + x]
        right[y * width + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in iv.range(iv.i32(0), width):
            total += left[y * width + i] * right[i * width + x]
        iv.barrier()
    c[row * n + column] = total


@iv.kernel
def double_buffered(a: X, b: X, c: X, n: U, width=16):
    """One barrier an iteration, with two pairs of tiles."""
    x, y, column, row = positions()
    size = width * width
    left, right = (iv.threadgroup_alloc(iv.f32, 2 * size) for _ in range(2))
    total, half = 0.0, iv.u32(0)
    for k in iv.range(iv.u32(0), n, width):
        left[half + y * width + x] = a[row * n + k + x]
        right[half + y * width + x] = b[(k + y) * n + column]
        iv.barrier()
        for i in range(width):
            total += left[half + y * width + i] * right[half + i * width + x]
        half = size - half
    c[row * n + column] = total


@iv.kernel
def transposed_right(a: X, b: X, c: X, n: U, width=16):
    """The right tile kept transposed."""
    x, y, column, row = positions()
    left, right = (iv.threadgroup_alloc(iv.f32, width * width) for _ in range(2))
    total = 0.0
    for k in iv.range(iv.u32(0), n, width):
        left[y * width + x] = a[row * n + k + x]
        right[x * width + y] = b[(k + y) * n + column]
        iv.barrier()
        for i in range(width):
            total += left[y * width + i] * right[x * width + i]
        iv.barrier()
    c[row * n + column] = total


def tiles(width):
    return (SIDE, SIDE), (width, width)


N = {"n": SIDE}

VARIANTS = [
    ("tiles of 16", written_out, *tiles(16), N),
    ("tiles of 8", written_out, *tiles(8), {"n": SIDE, "width": 8}),
    ("tiles of 32", written_out, *tiles(32), {"n": SIDE, "width": 32}),
    ("inner loop rolled", rolled, *tiles(16), N),
    ("tiles counted", by_tiles, *tiles(16), N),
    ("padded", padded, *tiles(16), N),
    ("guarded", guarded, *tiles(16), N),
    ("i32 indices", signed, *tiles(16), N),
    ("double buffered", double_buffered, *tiles(16), N),
    ("right tile transposed", transposed_right, *tiles(16), N),
    ("rolled, tiles of 8", rolled, *tiles(8), {"n": SIDE, "width": 8}),
    ("rolled, tiles of 32", rolled, *tiles(32), {"n": SIDE, "width": 32}),
]
