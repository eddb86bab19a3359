"""The sums of each 4096 of 16 M numbers."""

import numpy as np

import invar as iv

COUNT, EACH = 1 << 24, 4096
NAMES = ("x", "sums")


def inputs(rng):
    return {"x": rng.random(COUNT, np.float32), "sums": np.zeros(COUNT // EACH, np.float32)}


X = iv.Buffer[iv.f32]


def strided(x, width):
    t = iv.thread_position_in_threadgroup("x")
    first = iv.threadgroup_position_in_grid("x") * EACH
    total = 0.0
    for i in iv.range(t, EACH, width):
        total += x[first + i]
    return t, total


@iv.kernel
def halving(x: X, sums: X, width=256):
    """A tree that is written out."""
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, width)
    scratch[t] = total
    iv.barrier()
    step = width // 2
    while step > 0:
        if t < step:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step //= 2
    if t == 0:
        sums[iv.threadgroup_position_in_grid("x")] = scratch[0]


@iv.kernel
def halving_rolled(x: X, sums: X, width=256):
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, width)
    scratch[t] = total
    iv.barrier()
    step = iv.u32(width // 2)
    while step > 0:
        if t < step:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step = step >> 1
    if t == 0:
        sums[iv.threadgroup_position_in_grid("x")] = scratch[0]


@iv.kernel
def by_the_size(x: X, sums: X):
    """The width from the dispatch."""
    width = iv.threads_per_threadgroup("x")
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, 256)
    scratch[t] = total
    iv.barrier()
    step = width // 2
    while step > 0:
        if t < step:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step = step // 2
    if t == 0:
        sums[iv.threadgroup_position_in_grid("x")] = scratch[0]


@iv.kernel(simdgroup=32)
def by_simdgroups(x: X, sums: X, width=256):
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, 32)
    lane, group = iv.thread_index_in_simdgroup(), iv.simdgroup_index_in_threadgroup()
    total = iv.simd_sum(total)
    if lane == 0:
        scratch[group] = total
    iv.barrier()
    if group == 0:
        part = scratch[lane] if lane < width // 32 else 0.0
        part = iv.simd_sum(part)
        if lane == 0:
            sums[iv.threadgroup_position_in_grid("x")] = part


@iv.kernel(simdgroup=32)
def by_shuffles(x: X, sums: X, width=256):
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, 32)
    lane, group = iv.thread_index_in_simdgroup(), iv.simdgroup_index_in_threadgroup()
    for step in (16, 8, 4, 2, 1):
        total += iv.simd_shuffle_xor(total, step)
    if lane == 0:
        scratch[group] = total
    iv.barrier()
    if t == 0:
        part = 0.0
        for g in range(width // 32):
            part += scratch[g]
        sums[iv.threadgroup_position_in_grid("x")] = part


@iv.kernel
def first_thread_adds(x: X, sums: X, width=256):
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, width)
    scratch[t] = total
    iv.barrier()
    if t == 0:
        part = 0.0
        for i in iv.range(iv.u32(0), width):
            part += scratch[i]
        sums[iv.threadgroup_position_in_grid("x")] = part


@iv.kernel
def neighbours(x: X, sums: X, width=256):
    """Each thread adds 16 neighbours."""
    t = iv.thread_position_in_threadgroup("x")
    first = iv.threadgroup_position_in_grid("x") * EACH + t * (EACH // width)
    total = 0.0
    for i in range(EACH // width):
        total += x[first + i]
    scratch = iv.threadgroup_alloc(iv.f32, width)
    scratch[t] = total
    iv.barrier()
    step = width // 2
    while step > 0:
        if t < step:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step //= 2
    if t == 0:
        sums[iv.threadgroup_position_in_grid("x")] = scratch[0]


@iv.kernel
def a_row_a_thread(x: X, sums: X):
    i = iv.thread_position_in_grid("x")
    total = 0.0
    for k in iv.range(iv.u32(0), EACH):
        total += x[i * EACH + k]
    sums[i] = total


@iv.kernel
def interleaved(x: X, sums: X, width=256):
    """The tree with a growing step."""
    t, total = strided(x, width)
    scratch = iv.threadgroup_alloc(iv.f32, width)
    scratch[t] = total
    iv.barrier()
    step = 1
    while step < width:
        if t % (2 * step) == 0:
            scratch[t] += scratch[t + step]
        iv.barrier()
        step *= 2
    if t == 0:
        sums[iv.threadgroup_position_in_grid("x")] = scratch[0]


GROUPS = COUNT // EACH


def threads(width):
    return GROUPS * width, width


VARIANTS = [
    ("halving", halving, *threads(256), {}),
    ("halving, rolled", halving_rolled, *threads(256), {}),
    ("width of the dispatch", by_the_size, *threads(256), {}),
    ("by simdgroups", by_simdgroups, *threads(256), {}),
    ("by shuffles", by_shuffles, *threads(256), {}),
    ("first thread adds", first_thread_adds, *threads(256), {}),
    ("neighbours", neighbours, *threads(256), {}),
    ("interleaved", interleaved, *threads(256), {}),
    ("a row a thread", a_row_a_thread, GROUPS, 64, {}),
    ("64 threads", halving, *threads(64), {"width": 64}),
    ("1024 threads", halving, *threads(1024), {"width": 1024}),
    ("1024 threads, rolled", halving_rolled, *threads(1024), {"width": 1024}),
]
