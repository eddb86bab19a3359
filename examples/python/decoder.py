"""A decoder layer in one dispatch, a threadgroup a sequence: RMSNorm, queries, keys and values,
rotary embedding, causal attention, output projection, RMSNorm, SwiGLU, with both residuals.

Every stage goes through threadgroup memory; a barrier stands between stages.
"""

import math

import numpy as np

import invar as iv

#: Tokens of a sequence, model width, heads, width of the hidden layer, threads.
LENGTH, WIDTH, HEADS, HIDDEN, THREADS = 8, 32, 2, 64, 128
HEAD = WIDTH // HEADS


def _shared(count):
    """The elements that the calling thread handles of so many."""
    return iv.range(iv.thread_index_in_threadgroup(), count, THREADS)


def _sync():
    iv.barrier("threadgroup", "threadgroup")


def _normalise(source, weight, target):
    for token in _shared(LENGTH):
        total = 0.0
        for c in iv.range(iv.u32(WIDTH)):
            total += source[token * WIDTH + c] * source[token * WIDTH + c]
        scale = iv.rsqrt(total / float(WIDTH) + 1e-5)
        for c in iv.range(iv.u32(WIDTH)):
            target[token * WIDTH + c] = source[token * WIDTH + c] * scale * weight[c]


def _project(source, inputs, matrix, outputs, offset=0):
    """A function of (token, column): the row of ``source`` times a column of ``matrix``."""

    def dot(token, column):
        total = 0.0
        for c in iv.range(iv.u32(inputs)):
            total += source[token * inputs + c] * matrix[offset + c * outputs + column]
        return total

    return dot


@iv.kernel(threadgroup=THREADS)
def decoder(
    x: iv.Buffer[iv.f32],
    norms: iv.Buffer[iv.f32],
    qkv: iv.Buffer[iv.f32],
    project: iv.Buffer[iv.f32],
    gates: iv.Buffer[iv.f32],
    down: iv.Buffer[iv.f32],
    out: iv.Buffer[iv.f32],
):
    size = LENGTH * WIDTH
    base = iv.threadgroup_position_in_grid("x") * size
    residual = iv.threadgroup_alloc(iv.f32, size)
    normed = iv.threadgroup_alloc(iv.f32, size)
    heads = iv.threadgroup_alloc(iv.f32, 3 * size)
    mixed = iv.threadgroup_alloc(iv.f32, size)
    scores = iv.threadgroup_alloc(iv.f32, HEADS * LENGTH * LENGTH)
    hidden = iv.threadgroup_alloc(iv.f32, LENGTH * HIDDEN)
    for i in _shared(size):
        residual[i] = x[base + i]
    _sync()
    _normalise(residual, norms, normed)
    _sync()
    # Queries, keys and values; queries and keys turn with their position.
    for i in _shared(3 * size // 2):
        kind, pair = i // (size // 2), i % (size // 2)
        token, column = pair // (WIDTH // 2), pair % (WIDTH // 2) * 2
        dot = _project(normed, WIDTH, qkv, WIDTH, kind * WIDTH * WIDTH)
        even, odd = dot(token, column), dot(token, column + 1)
        if kind < 2:
            angle = iv.f32(token) * iv.exp(iv.f32(column % HEAD) * (-math.log(1e4) / HEAD))
            c, s = iv.cos(angle), iv.sin(angle)
            even, odd = even * c - odd * s, even * s + odd * c
        heads[kind * size + token * WIDTH + column] = even
        heads[kind * size + token * WIDTH + column + 1] = odd
    _sync()
    for i in _shared(HEADS * LENGTH * LENGTH):
        head, token, other = i // (LENGTH * LENGTH), i // LENGTH % LENGTH, i % LENGTH
        score = iv.f32(-1e30)
        if other <= token:
            total = 0.0
            for c in iv.range(iv.u32(HEAD)):
                query = heads[token * WIDTH + head * HEAD + c]
                total += query * heads[size + other * WIDTH + head * HEAD + c]
            score = total * HEAD**-0.5
        scores[i] = score
    _sync()
    for i in _shared(HEADS * LENGTH):
        largest = iv.f32(-1e30)
        for other in iv.range(iv.u32(LENGTH)):
            largest = iv.fmax(largest, scores[i * LENGTH + other])
        total = 0.0
        for other in iv.range(iv.u32(LENGTH)):
            weight = iv.exp(scores[i * LENGTH + other] - largest)
            scores[i * LENGTH + other] = weight
            total += weight
        for other in iv.range(iv.u32(LENGTH)):
            scores[i * LENGTH + other] = scores[i * LENGTH + other] / total
    _sync()
    for i in _shared(size):
        token, column = i // WIDTH, i % WIDTH
        row = (column // HEAD * LENGTH + token) * LENGTH
        total = 0.0
        for other in iv.range(iv.u32(LENGTH)):
            total += scores[row + other] * heads[2 * size + other * WIDTH + column]
        mixed[i] = total
    _sync()
    dot = _project(mixed, WIDTH, project, WIDTH)
    for i in _shared(size):
        residual[i] += dot(i // WIDTH, i % WIDTH)
    _sync()
    _normalise(residual, norms.at(WIDTH), normed)
    _sync()
    gate = _project(normed, WIDTH, gates, HIDDEN)
    up = _project(normed, WIDTH, gates, HIDDEN, WIDTH * HIDDEN)
    for i in _shared(LENGTH * HIDDEN):
        g = gate(i // HIDDEN, i % HIDDEN)
        hidden[i] = g / (1.0 + iv.exp(-g)) * up(i // HIDDEN, i % HIDDEN)
    _sync()
    dot = _project(hidden, HIDDEN, down, WIDTH)
    for i in _shared(size):
        out[base + i] = residual[i] + dot(i // WIDTH, i % WIDTH)


def reference(x, norms, qkv, project, gates, down):
    """The same in NumPy and f64, for one sequence."""

    def normalise(y, weight):
        return y / np.sqrt((y**2).mean(1, keepdims=True) + 1e-5) * weight

    def turn(y):
        pairs = y.reshape(LENGTH, HEADS, HEAD // 2, 2)
        rates = np.exp(np.arange(0, HEAD, 2) * (-math.log(1e4) / HEAD))
        angles = np.arange(LENGTH)[:, None, None] * rates
        c, s = np.cos(angles), np.sin(angles)
        even, odd = pairs[..., 0], pairs[..., 1]
        return np.stack([even * c - odd * s, even * s + odd * c], -1).reshape(LENGTH, HEADS, HEAD)

    normed = normalise(x, norms[0])
    q, k = turn(normed @ qkv[0]), turn(normed @ qkv[1])
    v = (normed @ qkv[2]).reshape(LENGTH, HEADS, HEAD)
    scores = np.einsum("ihd,jhd->hij", q, k) * HEAD**-0.5
    scores = np.where(np.tril(np.ones((LENGTH, LENGTH), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("hij,jhd->ihd", weights, v).reshape(LENGTH, WIDTH)
    x = x + mixed @ project
    normed = normalise(x, norms[1])
    gate = normed @ gates[0]
    return x + (gate / (1 + np.exp(-gate)) * (normed @ gates[1])) @ down


def arguments(sequences=3, seed=0):
    """Random sequences and weights."""
    rng = np.random.default_rng(seed)
    shapes = [(sequences, LENGTH, WIDTH), (2, WIDTH), (3, WIDTH, WIDTH), (WIDTH, WIDTH),
              (2, WIDTH, HIDDEN), (HIDDEN, WIDTH)]  # fmt: skip
    return [rng.standard_normal(s, np.float32) * (0.3 if i else 1) for i, s in enumerate(shapes)]


def run(sequences=3, seed=0):
    """Runs the layer on random sequences; gives the largest difference to NumPy."""
    x, *weights = (a.astype(np.float32) for a in arguments(sequences, seed))
    out = np.zeros_like(x)
    decoder[sequences * THREADS, THREADS](x, *weights, out)
    wide = [w.astype(np.float64) for w in weights]
    wanted = np.stack([reference(sequence.astype(np.float64), *wide) for sequence in x])
    return float(np.abs(out - wanted).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run():.2g}")
