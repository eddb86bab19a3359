#!/usr/bin/env python3
"""The example kernels beside the same work in NumPy, in milliseconds.

Run it with the package installed. Each kernel is the examples' own, launched on the default device; its
peer is the fastest form in NumPy that we found: in f32 too, into arrays that are there already, by parts
that stay in cache where that pays. The two results are compared first: a difference ends the run. Then
the two take turns, and what is compared is the time that the caller waits.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import invar as iv

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "python"))

import attention
import decoder
import gemm
import heat
import rms_norm
import transpose
import vector_add


#: Elements of a part that stays in cache.
BLOCK = 1 << 16


def random(*shape):
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def parts(count, size):
    """Slices of so many elements, up to the count."""
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def add_case(size):
    x, y = random(2, size, size)
    ours, peer = np.zeros_like(x), np.zeros_like(x)
    launch = vector_add.tiled[x.size // 16, 256].prepare(x, y, ours, size, size)
    return launch, lambda: np.add(x, y, out=peer), ours, peer


def product_case(kernel, size):
    a, b = random(2, size, size)
    ours, peer = np.zeros_like(a), np.zeros_like(a)
    launch = kernel[gemm.grid(kernel, size, size)].prepare(a, b, ours, size, size, size)
    return launch, lambda: np.matmul(a, b, out=peer), ours, peer


def transpose_case(size):
    x = random(size, size)
    ours, peer = np.zeros_like(x), np.zeros_like(x)
    bands, grid = parts(size, 16), iv.threadgroups(size // 32, size // 32)
    launch = transpose.transpose[grid, (32, 8)].prepare(x, ours, size, size)

    def numpy():
        for band in bands:
            peer[:, band] = x[band].T

    return launch, numpy, ours, peer


def rms_norm_case(rows, n):
    x, weight = normal(rows, n), random(n)
    ours, peer = np.zeros_like(x), np.zeros_like(x)
    threads = rms_norm.THREADS
    launch = rms_norm.rms_norm[rows * threads, threads].prepare(x, weight, ours, n, 1e-6)

    def numpy():
        squares = np.einsum("ij,ij->i", x, x)
        np.multiply(x, (1 / np.sqrt(squares / n + 1e-6))[:, None], out=peer)
        np.multiply(peer, weight, out=peer)

    return launch, numpy, ours, peer


def attention_case(queries, length):
    q, k, v = normal(queries, attention.HEAD), *normal(2, length, attention.HEAD)
    ours, peer = np.zeros_like(q), np.zeros_like(q)
    scale = attention.HEAD**-0.5
    threads = attention.SIMDGROUPS * 32
    launch = attention.attention[queries * threads, threads].prepare(q, k, v, ours, length, scale)
    scores = np.zeros((queries, length), np.float32)

    def numpy():
        np.matmul(q * np.float32(scale), k.T, out=scores)
        np.subtract(scores, scores.max(1, keepdims=True), out=scores)
        np.exp(scores, out=scores)
        np.matmul(scores, v, out=peer)
        np.divide(peer, scores.sum(1, keepdims=True), out=peer)

    return launch, numpy, ours, peer


def laplacian_case(n):
    x = random(n)
    ours, peer = np.zeros_like(x), np.zeros_like(x)
    launch = heat.laplacian[n, heat.THREADS].prepare(x, ours, n)
    blocks = parts(n, BLOCK)

    def numpy():
        for block in blocks:
            start, stop = block.start, block.stop
            np.multiply(x[block], np.float32(-2), out=peer[block])
            # The rod's first element has none to its left, and its last none to its right.
            first, last = max(start, 1), min(stop, n - 1)
            np.add(peer[first:stop], x[first - 1 : stop - 1], out=peer[first:stop])
            np.add(peer[start:last], x[start + 1 : last + 1], out=peer[start:last])

    return launch, numpy, ours, peer


def heat_case(n):
    x, rate = random(n), 0.2
    ours = np.zeros_like(x)
    groups = -(-n // (heat.THREADS - 2 * heat.STEPS))
    launch = heat.heat[groups * heat.THREADS, heat.THREADS].prepare(x, ours, n, rate)
    # Two rods that take turns, each with an element of 0 beyond either end.
    rods, scaled = np.zeros((2, n + 2), np.float32), np.zeros(BLOCK, np.float32)
    blocks, keeps, passes = parts(n, BLOCK), np.float32(1 - 2 * rate), np.float32(rate)

    def numpy():
        rods[0, 1:-1] = x
        for step in range(heat.STEPS):
            here, there = rods[step % 2], rods[(step + 1) % 2]
            for block in blocks:
                start, stop = block.start, block.stop
                inner, part = there[start + 1 : stop + 1], scaled[: stop - start]
                np.add(here[start:stop], here[start + 2 : stop + 2], out=inner)
                np.multiply(inner, passes, out=inner)
                np.multiply(here[start + 1 : stop + 1], keeps, out=part)
                np.add(inner, part, out=inner)

    return launch, numpy, ours, rods[heat.STEPS % 2, 1:-1]


def decoder_case(sequences):
    length, width, heads, head = decoder.LENGTH, decoder.WIDTH, decoder.HEADS, decoder.HEAD
    x, *weights = (a.astype(np.float32) for a in decoder.arguments(sequences))
    norms, qkv, project, gates, down = weights
    ours, peer = np.zeros_like(x), np.zeros_like(x)
    threads = decoder.THREADS
    launch = decoder.decoder[sequences * threads, threads].prepare(x, *weights, ours)
    # One product for queries, keys and values, and one for both gates.
    qkv_wide, gates_wide = np.hstack(qkv), np.hstack(gates)
    hidden = gates.shape[2]
    flat, result = x.reshape(-1, width), peer.reshape(-1, width)
    masked = ~np.tril(np.ones((length, length), bool))

    def normalise(y, weight):
        squares = np.einsum("ij,ij->i", y, y)
        normed = y * (1 / np.sqrt(squares / np.float32(width) + np.float32(1e-5)))[:, None]
        return np.multiply(normed, weight, out=normed)

    def numpy():
        parts = normalise(flat, norms[0]) @ qkv_wide
        # Queries and keys turn as complex numbers.
        parts = parts.reshape(sequences, length, 3, heads, head)
        rates = np.exp(np.arange(0, head, 2) * (-math.log(1e4) / head))
        turns = np.exp(1j * np.arange(length)[:, None] * rates).astype(np.complex64)
        pairs = parts[:, :, :2].view(np.complex64)
        np.multiply(pairs, turns[:, None, None, :], out=pairs)
        q, k, v = (parts[:, :, kind].transpose(0, 2, 1, 3) for kind in range(3))
        scores = q @ k.transpose(0, 1, 3, 2)
        scores *= np.float32(head**-0.5)
        np.copyto(scores, -np.inf, where=masked)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(-1, width)
        residual = mixed @ project
        residual += flat
        both = normalise(residual, norms[1]) @ gates_wide
        gate, up = both[:, :hidden], both[:, hidden:]
        shrink = np.exp(-gate)
        shrink += 1
        np.divide(gate, shrink, out=shrink)
        shrink *= up
        np.matmul(shrink, down, out=result)
        np.add(result, residual, out=result)

    return launch, numpy, ours, peer


#: Name, the largest difference in units of the largest result, and what builds: a launch, a call of
#: NumPy, and the array that each fills.
CASES = [
    ("thread-value vector add 4096", 0.0, lambda: add_case(4096)),
    ("matmul by simdgroup matrices 1024", 1e-5, lambda: product_case(gemm.double_buffered, 1024)),
    ("matmul by tiles 1024", 1e-5, lambda: product_case(gemm.tiled, 1024)),
    ("transpose, swizzled tiles 4096", 0.0, lambda: transpose_case(4096)),
    ("RMSNorm 4096 rows of 4096", 1e-5, lambda: rms_norm_case(4096, 4096)),
    ("online-softmax attention 1024 on 1024", 1e-5, lambda: attention_case(1024, 1024)),
    ("1-D Laplacian 16M", 1e-6, lambda: laplacian_case(1 << 24)),
    ("heat equation 4M, 8 steps", 1e-6, lambda: heat_case(1 << 22)),
    ("fused decoder layer, 512 sequences", 1e-5, lambda: decoder_case(512)),
]


def measured(name, tolerance, case, rounds):
    """The row of a case, whose two results have to agree."""
    launch, numpy, ours, peer = case()
    # What a side leaves out does not agree.
    ours.fill(np.nan)
    launch()
    numpy()
    difference = np.abs(ours - peer).max() / np.abs(peer).max()
    if not difference <= tolerance:
        raise SystemExit(f"{name}: differs from NumPy by {difference:.2g}, more than {tolerance:g}")
    times = ([], [])
    for _ in range(rounds):
        for call, taken in zip((launch, numpy), times):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    ours_ms, peer_ms = (statistics.median(t) * 1e3 for t in times)
    return {"name": name, "ours": ours_ms, "peer": peer_ms}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    given = parser.parse_args()
    rows = [measured(*case, given.rounds) for case in CASES]
    if given.json:
        print(json.dumps(rows))
        return
    for row in rows:
        ratio = row["peer"] / row["ours"]
        print(f"{row['name']:50} {row['ours']:9.2f} ms, NumPy {row['peer']:9.2f} ms: {ratio:.2f}")


if __name__ == "__main__":
    main()
