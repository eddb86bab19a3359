#!/usr/bin/env python3
"""Kernels on textures beside OpenCV, and beside the same on buffers, in milliseconds.

Run it with the package and opencv-python-headless installed. Two that are compared take turns; ours is the time that
the device reports, OpenCV's that of the call. Both have as many threads: INVAR_THREADS, or all.
"""

import argparse
import json
import os
import statistics
import sys
import time

import numpy as np

import invar as iv

#: Kernels on textures are at least so many times as fast as OpenCV, and as the same kernel on buffers.
OPENCV, BUFFERS = 0.8, 0.95
#: Rows and columns of the picture.
SIZE = 4096
#: Weights of the blur: those of a binomial, which add up to one.
WEIGHTS = [weight / 256 for weight in (1, 8, 28, 56, 70, 56, 28, 8, 1)]


@iv.kernel
def resize(src: iv.Texture2D[iv.f32, "sample"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    u = (iv.f32(x) + 0.5) / iv.f32(dst.width)
    v = (iv.f32(y) + 0.5) / iv.f32(dst.height)
    dst.write(x, y, src.sample(u, v, filter="linear"))


@iv.kernel
def across(src: iv.Texture2D[iv.f32, "read"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.i32(iv.thread_position_in_grid("x")), iv.thread_position_in_grid("y")
    last = iv.i32(src.width) - 1
    total = iv.f32x4(0.0)
    for step, weight in enumerate(WEIGHTS):
        total += src.read(iv.clamp(x + (step - 4), 0, last), y) * weight
    dst.write(x, y, total)


@iv.kernel
def down(src: iv.Texture2D[iv.f32, "read"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.i32(iv.thread_position_in_grid("y"))
    last = iv.i32(src.height) - 1
    total = iv.f32x4(0.0)
    for step, weight in enumerate(WEIGHTS):
        total += src.read(x, iv.clamp(y + (step - 4), 0, last)) * weight
    dst.write(x, y, total)


@iv.kernel
def inverts(src: iv.Texture2D[iv.f32, "read"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    dst.write(x, y, 1.0 - src.read(x, y))


@iv.kernel
def inverts_buffers(src: iv.Buffer[iv.f32x4], dst: iv.Buffer[iv.f32x4], width):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    dst[y * width + x] = 1.0 - src[y * width + x]


def timed(call):
    """A call that gives the seconds it took."""

    def run():
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return run


def rows():
    """Name, what it is beside, a call of ours and one of the other that give seconds, the two results, how far they
    may be apart, and what is promised."""
    import cv2

    cv2.setNumThreads(int(os.environ.get("INVAR_THREADS", os.cpu_count() or 1)))
    photo = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 4), np.uint8)
    src = iv.Texture(photo, "rgba8unorm")
    small, theirs = iv.Texture.zeros((SIZE // 4, SIZE // 4), "rgba8unorm"), np.zeros((SIZE // 4, SIZE // 4, 4), np.uint8)
    smaller = resize[(SIZE // 4, SIZE // 4), (16, 16)].prepare(src, small)
    peer = timed(lambda: cv2.resize(photo, (SIZE // 4, SIZE // 4), dst=theirs, interpolation=cv2.INTER_LINEAR))
    yield "bilinear resize 4096 to 1024 rgba8unorm", "OpenCV", smaller, peer, (small.numpy(), theirs), 1, OPENCV

    between, blurred = (iv.Texture.zeros((SIZE, SIZE), "rgba8unorm") for _ in range(2))
    first = across[(SIZE, SIZE), (16, 16)].prepare(src, between)
    second = down[(SIZE, SIZE), (16, 16)].prepare(between, blurred)
    weights, theirs = np.array(WEIGHTS, np.float32), np.zeros_like(photo)
    peer = timed(lambda: cv2.sepFilter2D(photo, -1, weights, weights, dst=theirs, borderType=cv2.BORDER_REPLICATE))
    yield "blur of 9 taps 4096 rgba8unorm", "OpenCV", lambda: first() + second(), peer, (blurred.numpy(), theirs), 2, OPENCV

    numbers = np.random.default_rng(0).random((SIZE // 2, SIZE // 2, 4), np.float32)
    there, results = iv.Texture(numbers, "rgba32float"), [np.zeros_like(numbers) for _ in range(2)]
    grid = (SIZE // 2, SIZE // 2), (16, 16)
    ours = inverts[grid].prepare(there, iv.Texture(results[0], "rgba32float"))
    flat = numbers.reshape(-1), results[1].reshape(-1)
    other = inverts_buffers[grid].prepare(*(x.reshape(-1, 4) for x in flat), SIZE // 2)
    yield "own texels 2048 rgba32float", "buffers", ours, other, results, 0, BUFFERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print rows for machines, and no verdict")
    given = parser.parse_args()
    found = []
    for name, other, ours, peer, results, apart, bound in rows():
        ours(), peer()
        one, two = (np.asarray(result).astype(np.float64) for result in results)
        if np.abs(one - two).max() > apart:
            raise SystemExit(f"{name}: the two are {np.abs(one - two).max()} apart")
        times = [(ours(), peer()) for _ in range(given.rounds)]
        # Other processes load both alike: what is compared is the median of the rounds' quotients.
        ratio = statistics.median(p / o for o, p in times)
        mine = statistics.median(o for o, _ in times) * 1e3
        found.append({"name": f"{name}, {other}", "ours": mine, "peer": mine * ratio, "bound": bound})
    if given.json:
        print(json.dumps(found))
        return 0
    for row in found:
        print(f"{row['name']}: {row['ours']:.2f} ms, {row['peer']:.2f} ms, {row['peer'] / row['ours']:.2f} of it")
    return int(any(row["peer"] / row["ours"] < row["bound"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
