"""The softmax of 2048 rows of 4096."""

import numpy as np

import invar as iv

ROWS, WIDTH = 2048, 4096
NAMES = ("x", "y")


def inputs(rng):
    x = rng.standard_normal((ROWS, WIDTH), np.float32) * 5
    return {"x": x, "y": np.zeros_like(x)}


X = iv.Buffer[iv.f32]
U = iv.Scalar[iv.u32]


def tree(scratch, t, value, combine, rolled):
    """The combination of all threads' values."""
    scratch[t] = value
    iv.barrier()
    step = iv.u32(len(scratch) // 2) if rolled else len(scratch) // 2
    while step > 0:
        if t < step:
            scratch[t] = combine(scratch[t], scratch[t + step])
        iv.barrier()
        step = step // 2
    result = scratch[0]
    iv.barrier()
    return result


def add(a, b):
    return a + b


@iv.kernel
def three_passes(x: X, y: X, n: U, width=256, rolled=False):
    first = iv.threadgroup_position_in_grid("x") * n
    t = iv.thread_position_in_threadgroup("x")
    scratch = iv.threadgroup_alloc(iv.f32, width)
    largest = -float("inf")
    for i in iv.range(t, n, width):
        largest = iv.max(largest, x[first + i])
    largest = tree(scratch, t, largest, iv.max, rolled)
    total = 0.0
    for i in iv.range(t, n, width):
        total += iv.exp(x[first + i] - largest)
    total = tree(scratch, t, total, add, rolled)
    for i in iv.range(t, n, width):
        y[first + i] = iv.exp(x[first + i] - largest) / total


@iv.kernel
def stored_exponentials(x: X, y: X, n: U, width=256):
    """The exponentials wait in the result."""
    first = iv.threadgroup_position_in_grid("x") * n
    t = iv.thread_position_in_threadgroup("x")
    scratch = iv.threadgroup_alloc(iv.f32, width)
    largest = -float("inf")
    for i in iv.range(t, n, width):
        largest = iv.max(largest, x[first + i])
    largest = tree(scratch, t, largest, iv.max, False)
    total = 0.0
    for i in iv.range(t, n, width):
        e = iv.exp(x[first + i] - largest)
        y[first + i] = e
        total += e
    total = tree(scratch, t, total, add, False)
    for i in iv.range(t, n, width):
        y[first + i] = y[first + i] / total


@iv.kernel
def in_registers(x: X, y: X, width=256):
    """A row in the threads' registers."""
    first = iv.threadgroup_position_in_grid("x") * WIDTH
    t = iv.thread_position_in_threadgroup("x")
    scratch = iv.threadgroup_alloc(iv.f32, width)
    values = [x[first + t + k] for k in range(0, WIDTH, width)]
    largest = values[0]
    for v in values[1:]:
        largest = iv.max(largest, v)
    largest = tree(scratch, t, largest, iv.max, False)
    values = [iv.exp(v - largest) for v in values]
    total = values[0]
    for v in values[1:]:
        total += v
    total = tree(scratch, t, total, add, False)
    for k in range(WIDTH // width):
        y[first + t + k * width] = values[k] / total


@iv.kernel
def in_threadgroup_memory(x: X, y: X, width=256):
    """A row in threadgroup memory."""
    first = iv.threadgroup_position_in_grid("x") * WIDTH
    t = iv.thread_position_in_threadgroup("x")
    scratch = iv.threadgroup_alloc(iv.f32, width)
    row = iv.threadgroup_alloc(iv.f32, WIDTH)
    largest = -float("inf")
    for i in iv.range(t, WIDTH, width):
        row[i] = x[first + i]
        largest = iv.max(largest, row[i])
    largest = tree(scratch, t, largest, iv.max, False)
    total = 0.0
    for i in iv.range(t, WIDTH, width):
        row[i] = iv.exp(row[i] - largest)
        total += row[i]
    total = tree(scratch, t, total, add, False)
    for i in iv.range(t, WIDTH, width):
        y[first + i] = row[i] / total


@iv.kernel(simdgroup=32)
def by_simdgroups(x: X, y: X, n: U, width=256):
    first = iv.threadgroup_position_in_grid("x") * n
    t = iv.thread_position_in_threadgroup("x")
    lane, group = iv.thread_index_in_simdgroup(), iv.simdgroup_index_in_threadgroup()
    scratch = iv.threadgroup_alloc(iv.f32, width // 32)
    largest = -float("inf")
    for i in iv.range(t, n, width):
        largest = iv.max(largest, x[first + i])
    largest = iv.simd_max(largest)
    if lane == 0:
        scratch[group] = largest
    iv.barrier()
    for g in range(width // 32):
        largest = iv.max(largest, scratch[g])
    iv.barrier()
    total = 0.0
    for i in iv.range(t, n, width):
        total += iv.exp(x[first + i] - largest)
    total = iv.simd_sum(total)
    if lane == 0:
        scratch[group] = total
    iv.barrier()
    total = 0.0
    for g in range(width // 32):
        total += scratch[g]
    for i in iv.range(t, n, width):
        y[first + i] = iv.exp(x[first + i] - largest) / total


@iv.kernel(simdgroup=32)
def a_row_a_simdgroup(x: X, y: X, n: U):
    """Four rows a threadgroup."""
    lane = iv.thread_index_in_simdgroup()
    row = iv.threadgroup_position_in_grid("x") * 4 + iv.simdgroup_index_in_threadgroup()
    first = row * n
    largest = -float("inf")
    for i in iv.range(lane, n, 32):
        largest = iv.max(largest, x[first + i])
    largest = iv.simd_max(largest)
    total = 0.0
    for i in iv.range(lane, n, 32):
        total += iv.exp(x[first + i] - largest)
    total = iv.simd_sum(total)
    for i in iv.range(lane, n, 32):
        y[first + i] = iv.exp(x[first + i] - largest) / total


@iv.kernel
def a_row_a_thread(x: X, y: X, n: U):
    """Sequential code in each thread."""
    first = iv.thread_position_in_grid("x") * n
    largest = -float("inf")
    for i in iv.range(iv.u32(0), n):
        largest = iv.max(largest, x[first + i])
    total = 0.0
    for i in iv.range(iv.u32(0), n):
        total += iv.exp(x[first + i] - largest)
    for i in iv.range(iv.u32(0), n):
        y[first + i] = iv.exp(x[first + i] - largest) / total


def threads(width):
    return ROWS * width, width


N = {"n": WIDTH}

VARIANTS = [
    ("three passes", three_passes, *threads(256), N),
    ("trees rolled", three_passes, *threads(256), N | {"rolled": True}),
    ("64 threads", three_passes, *threads(64), N | {"width": 64}),
    ("1024 threads", three_passes, *threads(1024), N | {"width": 1024}),
    ("exponentials stored", stored_exponentials, *threads(256), N),
    ("in registers", in_registers, *threads(256), {}),
    ("in threadgroup memory", in_threadgroup_memory, *threads(256), {}),
    ("by simdgroups", by_simdgroups, *threads(256), N),
    ("a row a simdgroup", a_row_a_simdgroup, ROWS // 4 * 128, 128, N),
    ("a row a thread", a_row_a_thread, ROWS, 64, N),
]
