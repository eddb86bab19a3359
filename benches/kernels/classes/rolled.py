"""Loops of a known length, rolled or written out."""

import numpy as np

import invar as iv

X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]
MANY = 1 << 22


@iv.kernel
def filter_rolled(x: X, w: X, y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        total = iv.f32(0)
        for k in iv.range(iv.u32(0), 16):
            total += x[i + k] * w[k]
        y[i] = total


@iv.kernel
def filter_written_out(x: X, w: X, y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        y[i] = sum(x[i + k] * w[k] for k in range(16))


@iv.kernel
def polynomial(x: X, w: X, y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        v, total = x[i], iv.f32(0)
        for k in iv.range(iv.u32(0), 12):
            total = total * v + w[k]
        y[i] = total


@iv.kernel
def sums_rolled(x: X, y: X):
    s = iv.threadgroup_alloc(iv.f32, 256)
    t, g = iv.thread_index_in_threadgroup(), iv.threadgroup_position_in_grid("x")
    s[t] = x[g * 256 + t]
    iv.threadgroup_barrier()
    step = iv.u32(128)
    while step > 0:
        if t < step:
            s[t] = s[t] + s[t + step]
        iv.threadgroup_barrier()
        step = step >> 1
    if t == 0:
        y[g] = s[0]


@iv.kernel
def sums_written_out(x: X, y: X):
    s = iv.threadgroup_alloc(iv.f32, 256)
    t, g = iv.thread_index_in_threadgroup(), iv.threadgroup_position_in_grid("x")
    s[t] = x[g * 256 + t]
    iv.threadgroup_barrier()
    for step in (128, 64, 32, 16, 8, 4, 2, 1):
        if t < step:
            s[t] = s[t] + s[t + step]
        iv.threadgroup_barrier()
    if t == 0:
        y[g] = s[0]


def cases(rng):
    x, w = rng.random(MANY + 16, np.float32), rng.random(16, np.float32)
    y, sums, n = 0 * x[:MANY], np.zeros(4 * MANY // 256, np.float32), {"n": MANY}
    yield "16 taps, rolled", filter_rolled, {"x": x, "w": w, "y": y}, n, MANY, 256
    yield "16 taps, written out", filter_written_out, {"x": x, "w": w, "y": y}, n, MANY, 256
    yield "polynomial of degree 11", polynomial, {"x": x, "w": w, "y": y}, n, MANY, 256
    z = rng.random(4 * MANY, np.float32)
    yield "sums of 256, rolled", sums_rolled, {"x": z, "y": sums}, {}, 4 * MANY, 256
    yield "sums of 256, written out", sums_written_out, {"x": z, "y": sums}, {}, 4 * MANY, 256
