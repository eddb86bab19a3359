"""y = a x + y, in the ways in which people write it."""

import numpy as np

import invar as iv

COUNT = 1 << 24
NAMES = ("a", "x", "y")


def inputs(rng):
    return {"a": 0.001, "x": rng.random(COUNT, np.float32), "y": np.zeros(COUNT, np.float32)}


X = iv.Buffer[iv.f32]
A = iv.Scalar[iv.f32]


@iv.kernel
def plain(a: A, x: X, y: X):
    i = iv.thread_position_in_grid("x")
    y[i] = a * x[i] + y[i]


@iv.kernel
def guarded(a: A, x: X, y: X, n: iv.Scalar[iv.u32]):
    i = iv.thread_position_in_grid("x")
    if i < n:
        y[i] = a * x[i] + y[i]


@iv.kernel
def early_return(a: A, x: X, y: X, n: iv.Scalar[iv.u32]):
    i = iv.thread_position_in_grid("x")
    if i >= n:
        return
    y[i] = a * x[i] + y[i]


@iv.kernel
def guarded_by_length(a: A, x: X, y: X):
    i = iv.thread_position_in_grid("x")
    if i < len(x):
        y[i] = a * x[i] + y[i]


@iv.kernel
def signed(a: A, x: X, y: X, n: iv.Scalar[iv.i32]):
    i = iv.i32(iv.thread_position_in_grid("x"))
    if i < n:
        y[i] = a * x[i] + y[i]


@iv.kernel
def wide(a: A, x: X, y: X, n: iv.Scalar[iv.u64]):
    i = iv.u64(iv.thread_position_in_grid("x"))
    if i < n:
        y[i] = a * x[i] + y[i]


@iv.kernel
def by_threadgroups(a: A, x: X, y: X):
    """As CUDA's kernels compute it."""
    g, t = iv.threadgroup_position_in_grid("x"), iv.thread_position_in_threadgroup("x")
    i = g * iv.threads_per_threadgroup("x") + t
    y[i] = a * x[i] + y[i]


@iv.kernel
def grid_stride(a: A, x: X, y: X, n: iv.Scalar[iv.u32]):
    first, step = iv.thread_position_in_grid("x"), iv.threads_per_grid("x")
    for i in iv.range(first, n, step):
        y[i] = a * x[i] + y[i]


@iv.kernel
def four_apart(a: A, x: X, y: X):
    """Four elements a thread, a threadgroup's width apart."""
    g, t = iv.threadgroup_position_in_grid("x"), iv.thread_position_in_threadgroup("x")
    for k in range(4):
        i = g * 1024 + k * 256 + t
        y[i] = a * x[i] + y[i]


@iv.kernel
def four_together(a: A, x: X, y: X):
    """Four neighbours a thread."""
    i = iv.thread_position_in_grid("x") * 4
    for k in range(4):
        y[i + k] = a * x[i + k] + y[i + k]


@iv.kernel
def four_in_a_loop(a: A, x: X, y: X):
    i = iv.thread_position_in_grid("x") << 2
    for k in iv.range(iv.u32(4)):
        y[i + k] = a * x[i + k] + y[i + k]


@iv.kernel
def plane(a: A, x: X, y: X, width: iv.Scalar[iv.u32]):
    """Two dimensions."""
    i = iv.thread_position_in_grid("y") * width + iv.thread_position_in_grid("x")
    y[i] = a * x[i] + y[i]


@iv.kernel
def shaped(a: A, x: iv.Buffer[iv.f32, (4096, 4096)], y: iv.Buffer[iv.f32, (4096, 4096)]):
    i, j = iv.thread_position_in_grid("y"), iv.thread_position_in_grid("x")
    y[i, j] = a * x[i, j] + y[i, j]


def in_rows(given):
    return {k: v.reshape(4096, -1) if k in ("x", "y") else v for k, v in given.items()}


LINE = (COUNT, 256)
PLANE = ((4096, COUNT // 4096), (16, 16))

VARIANTS = [
    ("plain", plain, *LINE, {}),
    ("guarded", guarded, *LINE, {"n": COUNT}),
    ("early return", early_return, *LINE, {"n": COUNT}),
    ("guarded by the length", guarded_by_length, *LINE, {}),
    ("i32 indices", signed, *LINE, {"n": COUNT}),
    ("u64 indices", wide, *LINE, {"n": COUNT}),
    ("by threadgroups", by_threadgroups, *LINE, {}),
    ("grid-stride loop", grid_stride, COUNT // 16, 256, {"n": COUNT}),
    ("four apart", four_apart, COUNT // 4, 256, {}),
    ("four together", four_together, COUNT // 4, 256, {}),
    ("four in a loop", four_in_a_loop, COUNT // 4, 256, {}),
    ("two dimensions", plane, *PLANE, {"width": 4096}),
    ("arrays with shapes", shaped, *PLANE, {}, in_rows),
    ("threadgroups of 64", plain, COUNT, 64, {}),
    ("threadgroups of 1024", plain, COUNT, 1024, {}),
]
