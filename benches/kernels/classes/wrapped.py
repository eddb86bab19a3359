"""Neighbours beyond the border: indices that wrap around or are clamped."""

import numpy as np

import invar as iv

X, Y = iv.Buffer[iv.f32], iv.Buffer[iv.f32]
B = iv.Buffer[iv.u8]
U, I = iv.Scalar[iv.u32], iv.Scalar[iv.i32]
BYTES, FLOATS = 4096, 2048


@iv.kernel
def life(x: B, y: B, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c >= n or r >= n:
        return
    left, right = (c + n - 1) % n, (c + 1) % n
    up, down = (r + n - 1) % n, (r + 1) % n
    count = iv.u32(0)
    for row in (up, r, down):
        for column in (left, c, right):
            count += iv.u32(x[row * n + column])
    alive = iv.u32(x[r * n + c])
    count -= alive
    y[r * n + c] = iv.u8((count == 3) | ((alive == 1) & (count == 2)))


@iv.kernel
def wrapped_by_select(x: X, y: Y, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    left = iv.select(c - 1, n - 1, c == 0)
    right = iv.select(c + 1, iv.u32(0), c == n - 1)
    up = iv.select(r - 1, n - 1, r == 0)
    down = iv.select(r + 1, iv.u32(0), r == n - 1)
    y[r * n + c] = 0.25 * (x[r * n + left] + x[r * n + right] + x[up * n + c] + x[down * n + c])


@iv.kernel
def clamped_convolution(x: X, w: X, y: Y, n: I):
    c, r = iv.i32(iv.thread_position_in_grid("x")), iv.i32(iv.thread_position_in_grid("y"))
    total = iv.f32(0)
    for j in iv.range(iv.i32(-2), 3):
        for i in iv.range(iv.i32(-2), 3):
            row = iv.min(iv.max(r + j, 0), n - 1)
            column = iv.min(iv.max(c + i, 0), n - 1)
            total += x[row * n + column] * w[(j + 2) * 5 + i + 2]
    y[r * n + c] = total


@iv.kernel
def clamped_blur(x: B, y: B, n: I):
    c, r = iv.i32(iv.thread_position_in_grid("x")), iv.i32(iv.thread_position_in_grid("y"))
    if c < n and r < n:
        total = iv.u32(0)
        for j in iv.range(iv.i32(-1), 2):
            for i in iv.range(iv.i32(-1), 2):
                row = iv.clamp(r + j, 0, n - 1)
                column = iv.clamp(c + i, 0, n - 1)
                total += iv.u32(x[row * n + column])
        y[r * n + c] = iv.u8(total // 9)


def cases(rng):
    cells = rng.integers(0, 2, (BYTES, BYTES), np.uint8)
    picture = rng.integers(0, 256, (BYTES, BYTES), np.uint8)
    floats = rng.random((FLOATS, FLOATS), np.float32)
    weights = rng.random(25, np.float32)
    n, m = {"n": BYTES}, {"n": FLOATS}
    yield "life, wrapped bytes", life, {"x": cells, "y": 0 * cells}, n, (BYTES, BYTES), (16, 16)
    yield "4 neighbours, wrapped", wrapped_by_select, {"x": floats, "y": 0 * floats}, m, (FLOATS, FLOATS), (32, 8)
    yield ("5x5 convolution, clamped", clamped_convolution, {"x": floats, "w": weights, "y": 0 * floats}, m,
           (FLOATS, FLOATS), (16, 16))  # fmt: skip
    yield "3x3 blur of bytes, clamped", clamped_blur, {"x": picture, "y": 0 * picture}, n, (BYTES, BYTES), (16, 16)
