"""Down a column: neighbouring threads read places a row apart."""

import numpy as np

import invar as iv

X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


@iv.kernel
def product_of_rows(a: X, b: X, y: X, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c < n and r < n:
        total = iv.f32(0)
        for k in iv.range(n):
            total += a[r * n + k] * b[c * n + k]
        y[r * n + c] = total


@iv.kernel
def sums_of_rows(x: X, y: X, n: U):
    r = iv.thread_position_in_grid("x")
    if r < n:
        total = iv.f32(0)
        for k in iv.range(n):
            total += x[r * n + k]
        y[r] = total


@iv.kernel
def matrix_by_vector(a: X, x: X, y: X, n: U):
    r = iv.thread_position_in_grid("x")
    if r >= n:
        return
    total = iv.f32(0)
    for k in iv.range(n):
        total += a[r * n + k] * x[k]
    y[r] = total


@iv.kernel
def places_of_the_largest(x: X, y: iv.Buffer[iv.u32], n: U):
    r = iv.thread_position_in_grid("x")
    if r < n:
        best, at = x[r * n], iv.u32(0)
        for k in iv.range(iv.u32(1), n):
            v = x[r * n + k]
            if v > best:
                best, at = v, k
        y[r] = at


def cases(rng):
    def square(n):
        return rng.random((n, n), np.float32)

    for n in (1024, 1008):
        yield (f"naive A.B' of {n}", product_of_rows, {"a": square(n), "b": square(n), "y": square(n)}, {"n": n},
               (n, n), (16, 16))  # fmt: skip
    n = 4096
    x, y, scalars = square(n), np.zeros(n, np.float32), {"n": n}
    yield "sums of rows", sums_of_rows, {"x": x, "y": y}, scalars, n, 256
    yield "matrix by vector", matrix_by_vector, {"a": x, "x": square(64).ravel(), "y": y}, scalars, n, 64
    yield ("place of the largest of each row", places_of_the_largest, {"x": x, "y": np.zeros(n, np.uint32)}, scalars,
           n, 64)  # fmt: skip
