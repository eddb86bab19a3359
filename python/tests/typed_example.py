"""A module that a type checker must find nothing wrong in; a test also runs it."""

from __future__ import annotations

import numpy as np

import invar as iv


def largest(x: iv.Memory[iv.f32], i: iv.u32) -> iv.Value:
    v: iv.Value = iv.max(x[i], x[i + 1])
    return v


@iv.kernel
def row_sum(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]) -> None:
    row = iv.threadgroup_position_in_grid("x")
    t = iv.thread_position_in_threadgroup("x")
    scratch = iv.threadgroup_alloc(iv.f32, 256)
    total = 0.0
    for i in iv.range(t, n, 256):
        total += x[row * n + i]
    scratch[t] = total
    iv.barrier()
    step = 128
    while step > 0:
        if t < step:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step //= 2
    if t == 0:
        out[row] = scratch[0] + 0 * iv.fma(largest(x, row), 2.0, iv.f32(1))


@iv.kernel(threadgroup=64, float_mode="strict")
def normalise(v: iv.Buffer[iv.f32x4], seen: iv.Buffer[iv.u32]) -> None:
    i = iv.thread_position_in_grid()
    a = v[i]
    a.w = 0.0
    v[i] = iv.normalize(a.xyzw) if iv.any(a != 0) else a
    iv.atomic_add(seen, 0, 1, order="relaxed")


@iv.kernel
def invert(src: iv.Texture2D[iv.f32, "read"], dst: iv.Texture2D[iv.f32, "write"]) -> None:
    x = iv.thread_position_in_grid("x")
    dst.write(x, 0, 1.0 - src.read(x, 0))


@iv.kernel(threadgroup=(4, 2))
def corner(dst: iv.Texture2D[iv.f32, "write"]) -> None:
    block = iv.imageblock_alloc(iv.f32x4, formats="rgba8unorm")
    x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
    block[x, y] = iv.f32x4(1.0)
    iv.threadgroup_barrier("imageblock")
    if iv.thread_index_in_threadgroup() == 0:
        dst.write(0, 0, block.slice(origin=(1, 0), size=(2, 2)))


def main() -> float:
    x = np.ones((2, 512), np.float32)
    out = np.zeros(2, np.float32)
    row_sum[2 * 256, 256](x, out, 512)
    report: iv.Report = iv.check(row_sum, grid=512, threadgroup=256)(x, out, 512)
    assert report.passed and not report.findings
    normalise[64, 64](np.ones((64, 4), np.float32), np.zeros(1, np.uint32))
    picture = iv.Texture(np.full((1, 4), 255, np.uint8), "r8unorm")
    invert[4, 4](picture, iv.Texture.zeros((1, picture.width), "r8unorm"))
    part = iv.Texture.zeros((2, 2), "rgba8unorm")
    corner[(4, 2), (4, 2)](part)
    assert (part.numpy() == 255).all()
    text: str = row_sum.ir
    return float(out.sum()) + (0.0 if text else 1.0)
