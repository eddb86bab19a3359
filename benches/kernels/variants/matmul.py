"""The product of two square matrices, naively, in the ways in which people write it."""

import numpy as np

import invar as iv

SIDE = 1024
NAMES = ("a", "b", "c")


def inputs(rng):
    a, b = rng.random((2, SIDE, SIDE), np.float32)
    return {"a": a, "b": b, "c": np.zeros((SIDE, SIDE), np.float32)}


X = iv.Buffer[iv.f32]
U, I, W = iv.Scalar[iv.u32], iv.Scalar[iv.i32], iv.Scalar[iv.u64]


@iv.kernel
def plain(a: X, b: X, c: X, n: U):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def guarded(a: X, b: X, c: X, n: U):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if y < n and x < n:
        total = 0.0
        for k in iv.range(iv.u32(0), n):
            total += a[y * n + k] * b[k * n + x]
        c[y * n + x] = total


@iv.kernel
def early_return(a: X, b: X, c: X, n: U):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if x >= n or y >= n:
        return
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def signed(a: X, b: X, c: X, n: I):
    x, y = iv.i32(iv.thread_position_in_grid("x")), iv.i32(iv.thread_position_in_grid("y"))
    total = 0.0
    for k in iv.range(iv.i32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def wide(a: X, b: X, c: X, n: W):
    x, y = iv.u64(iv.thread_position_in_grid("x")), iv.u64(iv.thread_position_in_grid("y"))
    total = 0.0
    for k in iv.range(iv.u64(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def rectangular(a: X, b: X, c: X, m: U, n: U, k: U):
    """Three sizes."""
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if y < m and x < n:
        total = 0.0
        for i in iv.range(iv.u32(0), k):
            total += a[y * k + i] * b[i * n + x]
        c[y * n + x] = total


@iv.kernel
def constant(a: X, b: X, c: X, n=SIDE):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def from_the_dispatch(a: X, b: X, c: X):
    n = iv.threads_per_grid("x")
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@iv.kernel
def while_loop(a: X, b: X, c: X, n: U):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total, k = 0.0, iv.u32(0)
    while k < n:
        total += a[y * n + k] * b[k * n + x]
        k += 1
    c[y * n + x] = total


@iv.kernel
def unrolled(a: X, b: X, c: X, n: U):
    """Four steps an iteration."""
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), n, 4):
        for j in range(4):
            total += a[y * n + k + j] * b[(k + j) * n + x]
    c[y * n + x] = total


@iv.kernel
def shifted(a: X, b: X, c: X):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), SIDE):
        total += a[(y << 10) + k] * b[(k << 10) + x]
    c[(y << 10) + x] = total


@iv.kernel
def running_index(a: X, b: X, c: X, n: U):
    """Indices that are added to instead of products."""
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total, p, q = 0.0, y * n, x
    for _ in iv.range(iv.u32(0), n):
        total += a[p] * b[q]
        p += 1
        q += n
    c[y * n + x] = total


@iv.kernel
def flat(a: X, b: X, c: X, n: U):
    """One dimension, divided."""
    i = iv.thread_position_in_grid("x")
    x, y = i % n, i // n
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[i] = total


M = iv.Buffer[iv.f32, (SIDE, SIDE)]


@iv.kernel
def shaped(a: M, b: M, c: M):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), SIDE):
        total += a[y, k] * b[k, x]
    c[y, x] = total


@iv.kernel
def rows_by_x(a: X, b: X, c: X, n: U):
    """The row by x, as in CUDA's first examples turned round."""
    y, x = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    total = 0.0
    for k in iv.range(iv.u32(0), n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


SQUARE = ((SIDE, SIDE), (16, 16))
N = {"n": SIDE}

VARIANTS = [
    ("plain", plain, *SQUARE, N),
    ("guarded", guarded, *SQUARE, N),
    ("early return", early_return, *SQUARE, N),
    ("i32 indices", signed, *SQUARE, N),
    ("u64 indices", wide, *SQUARE, N),
    ("three sizes", rectangular, *SQUARE, {"m": SIDE, "n": SIDE, "k": SIDE}),
    ("constant size", constant, *SQUARE, {}),
    ("size of the dispatch", from_the_dispatch, *SQUARE, {}),
    ("while", while_loop, *SQUARE, N),
    ("four steps an iteration", unrolled, *SQUARE, N),
    ("shifts", shifted, *SQUARE, {}),
    ("running indices", running_index, *SQUARE, N),
    ("one dimension", flat, SIDE * SIDE, 256, N),
    ("arrays with shapes", shaped, *SQUARE, {}),
    ("rows by x", rows_by_x, *SQUARE, N),
    ("threadgroups of 8 x 8", plain, (SIDE, SIDE), (8, 8), N),
    ("threadgroups of 32 x 8", plain, (SIDE, SIDE), (32, 8), N),
    ("threadgroups of 64 x 4", plain, (SIDE, SIDE), (64, 4), N),
    ("threadgroups of 256 x 1", plain, (SIDE, SIDE), (256, 1), N),
    ("threadgroups of 1 x 256", plain, (SIDE, SIDE), (1, 256), N),
]
