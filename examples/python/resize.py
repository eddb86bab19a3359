"""A picture resized: a thread for each texel of the new one samples the old one between its texels."""

import numpy as np

import invar as iv


@iv.kernel(threadgroup=(16, 16))
def resize(src: iv.Texture2D[iv.f32, "sample"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    u = (iv.f32(x) + 0.5) / iv.f32(dst.width)
    v = (iv.f32(y) + 0.5) / iv.f32(dst.height)
    dst.write(x, y, src.sample(u, v, filter="linear"))


def run(width=64, height=48):
    """Halves a picture of noise; gives the new one, and how far it is from the means of four texels each."""
    photo = np.random.default_rng(1).integers(0, 256, (2 * height, 2 * width, 4), np.uint8)
    small = iv.Texture.zeros((height, width), "rgba8unorm")
    resize[(width, height), (16, 16)](iv.Texture(photo, "rgba8unorm"), small)
    means = photo.reshape(height, 2, width, 2, 4).mean(axis=(1, 3))
    return small, np.abs(small.numpy() - means).max()


if __name__ == "__main__":
    small, error = run()
    print(f"{small!r}, within {error} of the mean of four texels")
