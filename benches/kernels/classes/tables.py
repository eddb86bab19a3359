"""Places that the data say: tables, sparse rows, searches."""

import numpy as np

import invar as iv

X, N, B = iv.Buffer[iv.f32], iv.Buffer[iv.u32], iv.Buffer[iv.u8]
U = iv.Scalar[iv.u32]
BYTES, ROWS, MANY = 1 << 24, 200_000, 1 << 20


@iv.kernel
def looked_up(x: B, table: B, y: B, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        y[i] = table[iv.u32(x[i])]


@iv.kernel
def sparse_rows(start: N, column: N, value: X, x: X, y: X, n: U):
    r = iv.thread_position_in_grid("x")
    if r < n:
        total = iv.f32(0)
        for k in iv.range(start[r], start[r + 1]):
            total += value[k] * x[column[k]]
        y[r] = total


@iv.kernel
def searched(x: X, table: X, y: N, n: U, m: U):
    """The first place of a sorted table that is not less."""
    i = iv.thread_position_in_grid("x")
    if i < n:
        v = x[i]
        low, high = iv.u32(0), m
        while low < high:
            middle = (low + high) // 2
            if table[middle] < v:
                low = middle + 1
            else:
                high = middle
        y[i] = low


@iv.kernel
def gathered(x: X, at: N, y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        y[i] = x[at[i]]


def cases(rng):
    text, table = rng.integers(0, 256, BYTES, np.uint8), rng.permutation(256).astype(np.uint8)
    yield "table of bytes", looked_up, {"x": text, "table": table, "y": 0 * text}, {"n": BYTES}, BYTES, 256
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 40, ROWS))]).astype(np.uint32)
    column = rng.integers(0, ROWS, start[-1], np.uint32)
    values, x = rng.random(start[-1], np.float32), rng.random(ROWS, np.float32)
    yield ("sparse rows by a vector", sparse_rows, {"start": start, "column": column, "value": values, "x": x,
           "y": 0 * x}, {"n": ROWS}, ROWS, 256)  # fmt: skip
    sorted_table, wanted = np.sort(rng.random(1 << 16, np.float32)), rng.random(MANY, np.float32)
    yield ("searches of a sorted table", searched, {"x": wanted, "table": sorted_table, "y": np.zeros(MANY, np.uint32)},
           {"n": MANY, "m": 1 << 16}, MANY, 256)  # fmt: skip
    at = rng.integers(0, MANY, 4 * MANY, np.uint32)
    yield "gather", gathered, {"x": wanted, "at": at, "y": np.zeros(4 * MANY, np.float32)}, {"n": 4 * MANY}, 4 * MANY, 256
