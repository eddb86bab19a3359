"""Addition of matrices by thread-value tiles: each thread moves vectors of four.

The layout says which elements a thread owns; ``hand`` is the same kernel with the indices written by
hand.
"""

import numpy as np

import invar as iv
from invar import layout as ly

#: 4 x 64 threads, each with 4 x 4 values: a tile of 16 x 256.
TILE, OWNERS = ly.make_layout_tv(ly.Layout((4, 64), (64, 1)), ly.Layout((4, 4), (4, 1)))


def _mine(buffer, rows, columns):
    """The calling thread's elements of the calling threadgroup's tile."""
    tensor = iv.Tensor(buffer, ly.Layout((rows, columns), (columns, 1)))
    tile = tensor.zipped_divide(TILE)[None, iv.threadgroup_position_in_grid("x")]
    return tile.composition(OWNERS, TILE)[iv.thread_index_in_threadgroup(), None]


@iv.kernel(threadgroup=256)
def tiled(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], z: iv.Buffer[iv.f32], rows, columns):
    _mine(z, rows, columns).store(_mine(x, rows, columns).load() + _mine(y, rows, columns).load())


@iv.kernel(threadgroup=256)
def hand(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], z: iv.Buffer[iv.f32], rows, columns):
    t = iv.thread_index_in_threadgroup()
    block = iv.threadgroup_position_in_grid("x")
    down = rows // 16
    first = (block % down * 16 + t // 64 * 4) * columns + block // down * 256 + t % 64 * 4
    for row in range(4):
        i = first + row * columns
        z.store(i, x.load(i, 4) + y.load(i, 4))


def run(kernel=tiled, rows=64, columns=512, seed=0):
    """Adds two random matrices, of multiples of 16 and 256; gives the largest difference to NumPy."""
    x, y = np.random.default_rng(seed).random((2, rows, columns), dtype=np.float32)
    z = np.zeros_like(x)
    kernel[rows * columns // 16, 256](x, y, z, rows, columns)
    return float(np.abs(z - (x + y)).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run():g}")
