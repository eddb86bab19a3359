"""The edges of a grey picture by Sobel's two filters."""

import numpy as np

import invar as iv


def weighted(picture, a, b, c):
    """Three points in a row, of which the middle one counts twice."""
    return iv.i32(picture[a]) + 2 * iv.i32(picture[b]) + iv.i32(picture[c])


@iv.kernel(threadgroup=(32, 2))
def sobel(
    picture: iv.Buffer[iv.u8],
    edges: iv.Buffer[iv.u8],
    width: iv.Scalar[iv.u32],
    height: iv.Scalar[iv.u32],
):
    """Beyond its edges the picture goes on as it is there."""
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    left, right = iv.sub_sat(x, 1), iv.min(x + 1, width - 1)
    above, here = iv.sub_sat(y, 1) * width, y * width
    below = iv.min(y + 1, height - 1) * width
    west = weighted(picture, above + left, here + left, below + left)
    east = weighted(picture, above + right, here + right, below + right)
    north = weighted(picture, above + left, above + x, above + right)
    south = weighted(picture, below + left, below + x, below + right)
    across, down = east - west, south - north
    steepness = iv.sqrt(iv.f32(across * across + down * down))
    edges[here + x] = iv.u8(steepness)  # above 255 it is 255 (A5)


def filtered(picture):
    """The same by NumPy."""
    p = np.pad(picture.astype(np.int32), 1, mode="edge")
    columns = p[:-2] + 2 * p[1:-1] + p[2:]
    rows = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    across, down = columns[:, 2:] - columns[:, :-2], rows[2:] - rows[:-2]
    squares = (across * across + down * down).astype(np.float32)
    return np.minimum(np.sqrt(squares), 255).astype(np.uint8)


def run(width=160, height=120, seed=0):
    """The edges of a random picture; gives the largest difference to NumPy."""
    picture = np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)
    edges = np.zeros_like(picture)
    sobel[(width, height), (32, 2)](picture, edges, width, height)
    return int(np.abs(edges.astype(np.int32) - filtered(picture)).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run()}")
