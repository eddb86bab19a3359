"""Kernels by thread-value layouts beside the same with strides."""

import sys
from pathlib import Path

import numpy as np

import invar as iv

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "python"))

import vector_add

SIDE = 4096
NAMES = ("x", "y", "z")
#: Of the worst to the best.
WORST = 1.2


def inputs(rng):
    x, y = rng.random((2, SIDE, SIDE), np.float32)
    return {"x": x, "y": y, "z": np.zeros_like(x)}


X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


@iv.kernel
def strides(x: X, y: X, z: X, rows: U, columns: U):
    i = iv.thread_position_in_grid("y") * columns + iv.thread_position_in_grid("x")
    z[i] = x[i] + y[i]


SIZE = {"rows": SIDE, "columns": SIDE}
TILES = (SIDE * SIDE // 16, 256)

VARIANTS = [
    ("strides", strides, (SIDE, SIDE), (256, 1), SIZE),
    ("thread-value layout", vector_add.tiled, *TILES, SIZE),
    ("vectors by hand", vector_add.hand, *TILES, SIZE),
]
