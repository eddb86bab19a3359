"""The sums of all numbers before each of ten million, over as many threadgroups as it takes.

Each threadgroup scans its own part and gives its sum; the sums are scanned by one threadgroup, and then
added to the parts.
"""

import numpy as np

import invar as iv

THREADS, EACH = 256, 16


def sums(own, parts):
    """The sum of what the threads before this one have, and that of all in the threadgroup."""
    simdgroup = iv.simdgroup_index_in_threadgroup()
    before = iv.simd_prefix_exclusive_sum(own)
    if iv.thread_index_in_simdgroup() == iv.threads_per_simdgroup() - 1:
        parts[simdgroup] = before + own
    iv.barrier("threadgroup", "threadgroup")
    start, total = iv.u32(0), iv.u32(0)
    for s in iv.range(iv.simdgroups_per_threadgroup()):
        if s < simdgroup:
            start += parts[s]
        total += parts[s]
    return start + before, total


@iv.kernel(threadgroup=THREADS)
def scan(x: iv.Buffer[iv.u32], before: iv.Buffer[iv.u32], total: iv.Buffer[iv.u32]):
    """Exclusive sums in each threadgroup's part of ``x``, and the sum of each part."""
    parts = iv.threadgroup_alloc(iv.u32, THREADS)
    first = iv.thread_position_in_grid("x") * EACH
    end = iv.min(first + EACH, iv.u32(len(x)))
    own = iv.u32(0)
    for i in iv.range(first, end):
        own += x[i]
    running, everything = sums(own, parts)
    for i in iv.range(first, end):
        before[i] = running
        running += x[i]
    if iv.thread_index_in_threadgroup() == 0:
        total[iv.threadgroup_position_in_grid("x")] = everything


@iv.kernel(threadgroup=THREADS)
def add(before: iv.Buffer[iv.u32], start: iv.Buffer[iv.u32]):
    """Adds to each part the sum of all parts before it."""
    i = iv.thread_position_in_grid("x")
    before[i] += start[i // (THREADS * EACH)]


def scanned(x):
    """All sums, by three launches."""
    groups = -(-len(x) // (THREADS * EACH))
    assert groups <= THREADS * EACH, "one threadgroup scans the sums"
    before, whole = np.zeros_like(x), np.zeros(1, np.uint32)
    totals, starts = np.zeros((2, groups), np.uint32)
    scan[groups * THREADS, THREADS](x, before, totals)
    scan[THREADS, THREADS](totals, starts, whole)
    add[len(x), THREADS](before, starts)
    return before


def run(count=10_000_000, seed=0):
    """Scans random numbers; gives the largest difference to NumPy."""
    x = np.random.default_rng(seed).integers(0, 256, count, np.uint32)
    wanted = np.cumsum(x, dtype=np.uint32) - x
    return int(np.abs(scanned(x).astype(np.int64) - wanted).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run()}")
