"""Three dimensions, and threadgroups of every shape."""

import numpy as np

import invar as iv

X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]
SIDE = 256


@iv.kernel
def seven_points(x: X, y: X, n: U):
    i, j, k = (iv.thread_position_in_grid(a) for a in "xyz")
    if i > 0 and j > 0 and k > 0 and i < n - 1 and j < n - 1 and k < n - 1:
        at = (k * n + j) * n + i
        near = x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + x[at - n * n] + x[at + n * n]
        y[at] = 0.4 * x[at] + 0.1 * near


@iv.kernel
def scaled(x: X, y: X, n: U):
    i, j, k = (iv.thread_position_in_grid(a) for a in "xyz")
    if i < n and j < n and k < n:
        at = (k * n + j) * n + i
        y[at] = 2.0 * x[at] + y[at]


@iv.kernel
def axes_turned(x: X, y: X, n: U):
    """`y[i, k, j] = x[k, j, i]`."""
    i, j, k = (iv.thread_position_in_grid(a) for a in "xyz")
    if i < n and j < n and k < n:
        y[(i * n + k) * n + j] = x[(k * n + j) * n + i]


def cases(rng):
    x, n, grid = rng.random(SIDE**3, np.float32), {"n": SIDE}, (SIDE, SIDE, SIDE)
    y = 0 * x
    for threads in ((16, 16, 1), (8, 8, 4), (4, 4, 4)):
        shape = "x".join(map(str, threads))
        yield f"7 points in 3-D, {shape}", seven_points, {"x": x, "y": y}, n, grid, threads
    yield "a*x+y in 3-D, 16x16x1", scaled, {"x": x, "y": y}, n, grid, (16, 16, 1)
    yield "axes turned in 3-D, 8x8x8", axes_turned, {"x": x, "y": y}, n, grid, (8, 8, 8)
