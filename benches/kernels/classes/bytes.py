"""Bytes, and elements of several channels side by side."""

import numpy as np

import invar as iv

B = iv.Buffer[iv.u8]
X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]
PIXELS = 1 << 24


@iv.kernel
def gray(rgb: B, y: B, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        r, g, b = (iv.u32(rgb[3 * i + k]) for k in range(3))
        y[i] = iv.u8((77 * r + 150 * g + 29 * b) >> 8)


@iv.kernel
def swap_channels(rgb: B, bgr: B, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        for k in range(3):
            bgr[3 * i + k] = rgb[3 * i + 2 - k]


@iv.kernel
def over(source: B, y: B, n: U):
    """RGBA over RGBA, in place."""
    i = iv.thread_position_in_grid("x")
    if i >= n:
        return
    a = iv.u32(source[4 * i + 3])
    for k in iv.range(iv.u32(0), 4):
        v = iv.u32(source[4 * i + k]) * a + iv.u32(y[4 * i + k]) * (255 - a)
        y[4 * i + k] = iv.u8((v + 127) // 255)


@iv.kernel
def planes(rgb: B, y: X, n: U):
    """Channels side by side into planes of floats, as networks take them."""
    i = iv.thread_position_in_grid("x")
    if i < n:
        for k in range(3):
            y[k * n + i] = (iv.f32(rgb[3 * i + k]) - 127.5) * (1.0 / 127.5)


def cases(rng):
    rgb = rng.integers(0, 256, 3 * PIXELS, np.uint8)
    rgba = rng.integers(0, 256, 4 * PIXELS, np.uint8)
    n = {"n": PIXELS}
    yield "gray of RGB bytes", gray, {"rgb": rgb, "y": np.zeros(PIXELS, np.uint8)}, n, PIXELS, 256
    yield "RGB to BGR bytes", swap_channels, {"rgb": rgb, "bgr": 0 * rgb}, n, PIXELS, 256
    yield "RGBA over RGBA bytes", over, {"source": rgba, "y": rgba[::-1].copy()}, n, PIXELS, 256
    yield "RGB bytes to planes", planes, {"rgb": rgb, "y": np.zeros(3 * PIXELS, np.float32)}, n, PIXELS, 256
