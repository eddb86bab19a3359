"""Kernels of many fields: sorting, graphs, clustering, quantised numbers, signals, text."""

import numpy as np

import invar as iv

X, N, B = iv.Buffer[iv.f32], iv.Buffer[iv.u32], iv.Buffer[iv.u8]
S, D = iv.Buffer[iv.i8], iv.Buffer[iv.f64]
U, F = iv.Scalar[iv.u32], iv.Scalar[iv.f32]
MANY, SIDE, POINTS, ROWS = 1 << 22, 2048, 1 << 19, 200_000


@iv.kernel
def scan(x: X, y: X):
    a = iv.threadgroup_alloc(iv.f32, 256)
    b = iv.threadgroup_alloc(iv.f32, 256)
    t, i = iv.thread_index_in_threadgroup(), iv.thread_position_in_grid("x")
    a[t] = x[i]
    iv.threadgroup_barrier()
    for step in (1, 4, 16, 64):
        b[t] = a[t] + a[t - step] if t >= step else a[t]
        iv.threadgroup_barrier()
        a[t] = b[t] + b[t - 2 * step] if t >= 2 * step else b[t]
        iv.threadgroup_barrier()
    y[i] = a[t]


@iv.kernel
def bitonic_step(x: X, j: U, k: U):
    i = iv.thread_position_in_grid("x")
    other = i ^ j
    if other > i:
        a, b = x[i], x[other]
        if (a > b) == ((i & k) == 0):
            x[i] = b
            x[other] = a


@iv.kernel
def shortest_paths_step(d: X, k: U, n: U):
    j, i = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if i < n and j < n:
        d[i * n + j] = iv.min(d[i * n + j], d[i * n + k] + d[k * n + j])


@iv.kernel
def nearest_centres(p: X, centres: X, y: N, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        best, at = iv.f32(1e30), iv.u32(0)
        for c in iv.range(iv.u32(0), 16):
            total = iv.f32(0)
            for k in iv.range(iv.u32(0), 4):
                difference = p[4 * i + k] - centres[4 * c + k]
                total += difference * difference
            if total < best:
                best, at = total, c
        y[i] = at


@iv.kernel
def quantised_rows(w: S, scale: X, x: X, y: X, n: U):
    r = iv.thread_position_in_grid("x")
    total = iv.f32(0)
    for k in iv.range(n):
        total += iv.f32(w[r * n + k]) * x[k]
    y[r] = total * scale[r]


@iv.kernel
def random_walks(y: X, n: U):
    i = iv.thread_position_in_grid("x")
    if i < n:
        state, inside = i * 747796405 + 2891336453, iv.u32(0)
        for _ in iv.range(iv.u32(0), 64):
            state = state * 1664525 + 1013904223
            a = iv.f32(state >> 8) * (1.0 / 16777216.0)
            state = state * 1664525 + 1013904223
            b = iv.f32(state >> 8) * (1.0 / 16777216.0)
            if a * a + b * b <= 1.0:
                inside += 1
        y[i] = iv.f32(inside) * (4.0 / 64.0)


@iv.kernel
def edges(x: B, y: B, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c == 0 or r == 0 or c >= n - 1 or r >= n - 1:
        return
    at = r * n + c

    def v(dy, dx):
        return iv.i32(x[iv.u32(iv.i32(at) + dy * iv.i32(n) + dx)])

    gx = v(-1, 1) + 2 * v(0, 1) + v(1, 1) - v(-1, -1) - 2 * v(0, -1) - v(1, -1)
    gy = v(1, -1) + 2 * v(1, 0) + v(1, 1) - v(-1, -1) - 2 * v(-1, 0) - v(-1, 1)
    y[at] = iv.u8(iv.min(iv.abs(gx) + iv.abs(gy), 255))


@iv.kernel
def butterflies(x: X, w: X, half: U):
    i = iv.thread_position_in_grid("x")
    k = i & (half - 1)
    a = 2 * i - k
    b = a + half
    wr, wi = w[2 * k], w[2 * k + 1]
    br, bi = x[2 * b], x[2 * b + 1]
    tr, ti = br * wr - bi * wi, br * wi + bi * wr
    ar, ai = x[2 * a], x[2 * a + 1]
    x[2 * a], x[2 * a + 1] = ar + tr, ai + ti
    x[2 * b], x[2 * b + 1] = ar - tr, ai - ti


@iv.kernel
def running_sums(x: X, y: X, n: U):
    r = iv.thread_position_in_grid("x")
    total = iv.f32(0)
    for k in iv.range(n):
        total += x[r * n + k]
        y[r * n + k] = total


@iv.kernel
def reached(start: N, column: N, level: N, y: N, now: U, n: U):
    """Breadth first: whether a neighbour is of this level."""
    v = iv.thread_position_in_grid("x")
    if v >= n:
        return
    found = iv.u32(0)
    if level[v] > now:
        for k in iv.range(start[v], start[v + 1]):
            if level[column[k]] == now:
                found = iv.u32(1)
                break
    y[v] = found


@iv.kernel
def mixed(x: N, y: N):
    i = iv.thread_position_in_grid("x")
    h = x[i]
    for k in range(8):
        h = h ^ (h >> 16)
        h = h * 0x85EBCA6B
        h = h ^ (h >> 13)
        h = h * 0xC2B2AE35 + k
    y[i] = h ^ (h >> 16)


@iv.kernel
def heat(x: D, y: D, n: U):
    c, r = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    if c >= 1 and r >= 1 and c + 1 < n and r + 1 < n:
        at = r * n + c
        y[at] = x[at] + 0.1 * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n] - 4.0 * x[at])


@iv.kernel
def tiled_filter(x: X, w: X, y: X, n: U):
    """Through threadgroup memory, with a border of 4 on both sides."""
    tile = iv.threadgroup_alloc(iv.f32, 264)
    t, i = iv.thread_index_in_threadgroup(), iv.thread_position_in_grid("x")
    tile[t] = x[i]
    if t < 8:
        tile[256 + t] = x[i + 256]
    iv.threadgroup_barrier()
    total = iv.f32(0)
    for k in iv.range(iv.u32(0), 9):
        total += tile[t + k] * w[k]
    y[i] = total


@iv.kernel
def found_words(text: B, word: B, y: B, n: U):
    i = iv.thread_position_in_grid("x")
    if i + 8 > n:
        return
    same = iv.u32(0)
    for k in iv.range(iv.u32(0), 8):
        if text[i + k] == word[k]:
            same += 1
    y[i] = iv.u8(same == 8)


def cases(rng):
    def floats(count):
        return rng.random(count, np.float32)

    x = floats(MANY)
    yield "scan of 256", scan, {"x": x, "y": 0 * x}, {}, MANY, 256
    yield "step of a bitonic sort", bitonic_step, {"x": x}, {"j": 1 << 10, "k": 1 << 15}, MANY, 256
    yield ("step of all shortest paths", shortest_paths_step, {"d": floats(SIDE * SIDE)}, {"k": 77, "n": SIDE},
           (SIDE, SIDE), (16, 16))  # fmt: skip
    yield ("nearest of 16 centres", nearest_centres, {"p": floats(4 * POINTS), "centres": floats(64),
           "y": np.zeros(POINTS, np.uint32)}, {"n": POINTS}, POINTS, 256)  # fmt: skip
    w = rng.integers(-128, 128, 4096 * 4096, np.int8)
    yield ("rows of bytes by a vector", quantised_rows, {"w": w, "scale": floats(4096), "x": floats(4096),
           "y": floats(4096)}, {"n": 4096}, 4096, 64)  # fmt: skip
    yield "random walks", random_walks, {"y": floats(POINTS)}, {"n": POINTS}, POINTS, 256
    picture = rng.integers(0, 256, (4096, 4096), np.uint8)
    yield "edges of bytes", edges, {"x": picture, "y": 0 * picture}, {"n": 4096}, (4096, 4096), (16, 16)
    yield ("butterflies of a Fourier transform", butterflies, {"x": floats(2 * MANY), "w": floats(512)}, {"half": 256},
           MANY // 2, 256)  # fmt: skip
    square = floats(4096 * 4096)
    yield "running sums of rows", running_sums, {"x": square, "y": 0 * square}, {"n": 4096}, 4096, 64
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 40, ROWS))]).astype(np.uint32)
    column = rng.integers(0, ROWS, start[-1], np.uint32)
    level = rng.integers(0, 20, ROWS, np.uint32)
    yield ("neighbours of a level", reached, {"start": start, "column": column, "level": level, "y": 0 * level},
           {"now": 5, "n": ROWS}, ROWS, 256)  # fmt: skip
    words = rng.integers(0, 1 << 32, MANY, np.uint32)
    yield "mixed words", mixed, {"x": words, "y": 0 * words}, {}, MANY, 256
    doubles = rng.random((SIDE, SIDE))
    yield "heat in f64", heat, {"x": doubles, "y": 0 * doubles}, {"n": SIDE}, (SIDE, SIDE), (16, 16)
    yield ("9 taps through threadgroup memory", tiled_filter, {"x": floats(MANY + 256), "w": floats(9), "y": 0 * x}, {"n": MANY},
           MANY, 256)  # fmt: skip
    text, word = rng.integers(97, 100, 1 << 24, np.uint8), rng.integers(97, 100, 8, np.uint8)
    yield "places of a word", found_words, {"text": text, "word": word, "y": 0 * text}, {"n": 1 << 24}, 1 << 24, 256
