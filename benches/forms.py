#!/usr/bin/env python3
"""Kernels written with layouts beside the same written with indices by hand, in milliseconds.

Run it with the package installed. The two take turns; what is compared is the time that the device
reports.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import numpy as np

import invar as iv

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "python"))

import gemm
import vector_add

#: The layout form is at least so many times as fast as the other.
BOUND = 0.95


@iv.kernel(threadgroup=(16, 16))
def product_by_hand(a: iv.Buffer[iv.f32], b: iv.Buffer[iv.f32], c: iv.Buffer[iv.f32], m, n, k):
    """`gemm.tiled` with the indices written out."""
    i, j = iv.thread_position_in_threadgroup("y"), iv.thread_position_in_threadgroup("x")
    row, column = iv.thread_position_in_grid("y"), iv.thread_position_in_grid("x")
    left, right = iv.threadgroup_alloc(iv.f32, 256), iv.threadgroup_alloc(iv.f32, 256)
    total = 0.0
    for step in iv.range(iv.u32(0), k // 16):
        left[i * 16 + j] = a[row * k + step * 16 + j]
        right[i * 16 + j] = b[(step * 16 + i) * n + column]
        iv.barrier("threadgroup", "threadgroup")
        for inner in range(16):
            total += left[i * 16 + inner] * right[inner * 16 + j]
        iv.barrier("threadgroup", "threadgroup")
    c[row * n + column] = total


def forms():
    """Name, and for the form with layouts and the one without: a call that gives seconds."""
    numbers = np.random.default_rng(0)
    x, y = numbers.random((2, 4096, 4096), dtype=np.float32)
    sums = [np.zeros_like(x) for _ in range(2)]
    add = [
        kernel[x.size // 16, 256].prepare(x, y, z, *x.shape)
        for kernel, z in zip((vector_add.tiled, vector_add.hand), sums)
    ]
    a, b = numbers.random((2, 1024, 1024), dtype=np.float32)
    products = [np.zeros_like(a) for _ in range(2)]
    multiply = [
        kernel[(1024, 1024), (16, 16)].prepare(a, b, c, 1024, 1024, 1024)
        for kernel, c in zip((gemm.tiled, product_by_hand), products)
    ]
    yield "thread-value vector add 4096", add, sums
    yield "matmul by tiles 1024", multiply, products


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print rows for machines, and no verdict")
    given = parser.parse_args()
    rows = []
    for name, (layouts, hand), results in forms():
        layouts(), hand()
        if not np.array_equal(*results):
            raise SystemExit(f"{name}: the two forms do not agree")
        times = [(layouts(), hand()) for _ in range(given.rounds)]
        ours, peer = (statistics.median(t) * 1e3 for t in zip(*times))
        rows.append({"name": name, "ours": ours, "peer": peer, "bound": BOUND})
    if given.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        print(f"{row['name']}: layouts {row['ours']:.2f} ms, by hand {row['peer']:.2f} ms")
    return int(any(row["peer"] / row["ours"] < BOUND for row in rows))


if __name__ == "__main__":
    sys.exit(main())
