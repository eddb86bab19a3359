"""Small constant strides: complex numbers, structs, small matrices."""

import numpy as np

import invar as iv

X = iv.Buffer[iv.f32]
U, F = iv.Scalar[iv.u32], iv.Scalar[iv.f32]
MANY, SOME = 1 << 22, 1 << 20


@iv.kernel
def complex_product(a: X, b: X, y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        ar, ai, br, bi = a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]
        y[2 * i] = ar * br - ai * bi
        y[2 * i + 1] = ar * bi + ai * br


@iv.kernel
def particles(p: X, n: U, dt: F):
    """Position, velocity and mass of each, 7 numbers."""
    i = iv.thread_position_in_grid("x")
    if i >= n:
        return
    for k in range(3):
        v = p[7 * i + 3 + k] * 0.999
        p[7 * i + 3 + k] = v
        p[7 * i + k] = p[7 * i + k] + v * dt


@iv.kernel
def matrix_by_vector(m: X, v: X, y: X, n: U):
    """4x4 by 4, of each."""
    i = iv.thread_position_in_grid("x")
    if i < n:
        for r in iv.range(iv.u32(0), 4):
            total = iv.f32(0)
            for c in iv.range(iv.u32(0), 4):
                total += m[16 * i + 4 * r + c] * v[4 * i + c]
            y[4 * i + r] = total


@iv.kernel
def normals(p: X, y: X, n: U):
    """Of triangles, 9 numbers each."""
    i = iv.thread_position_in_grid("x")
    if i < n:
        a = [p[9 * i + 3 + k] - p[9 * i + k] for k in range(3)]
        b = [p[9 * i + 6 + k] - p[9 * i + k] for k in range(3)]
        c = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        scale = 1.0 / iv.sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + 1e-20)
        for k in range(3):
            y[3 * i + k] = c[k] * scale


def cases(rng):
    def floats(count):
        return rng.random(count, np.float32)

    n = {"n": MANY}
    yield ("complex products", complex_product, {"a": floats(2 * MANY), "b": floats(2 * MANY), "y": floats(2 * MANY)},
           n, MANY, 256)  # fmt: skip
    yield "particles of 7 numbers", particles, {"p": floats(7 * MANY)}, {"n": MANY, "dt": 0.01}, MANY, 256
    yield ("4x4 matrices by vectors", matrix_by_vector, {"m": floats(16 * SOME), "v": floats(4 * SOME),
           "y": floats(4 * SOME)}, {"n": SOME}, SOME, 256)  # fmt: skip
    yield "normals of triangles", normals, {"p": floats(9 * SOME), "y": floats(3 * SOME)}, {"n": SOME}, SOME, 256
