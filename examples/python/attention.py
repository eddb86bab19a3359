"""Attention with an online softmax: a threadgroup for each query, its simdgroups share the keys.

Each simdgroup keeps a running maximum, a running sum and a running mixture of the values; at the end
the simdgroups' parts are put together.
"""

import numpy as np

import invar as iv

#: Simdgroups of a threadgroup; each lane holds HEAD / 32 components of the head.
SIMDGROUPS, HEAD = 4, 64


@iv.kernel(threadgroup=SIMDGROUPS * 32, simdgroup=32)
def attention(
    q: iv.Buffer[iv.f32],
    k: iv.Buffer[iv.f32],
    v: iv.Buffer[iv.f32],
    out: iv.Buffer[iv.f32],
    length: iv.Scalar[iv.u32],
    scale: iv.Scalar[iv.f32],
):
    query = iv.threadgroup_position_in_grid("x")
    lane, group = iv.thread_index_in_simdgroup(), iv.simdgroup_index_in_threadgroup()
    parts = range(HEAD // 32)
    mine = [q[query * HEAD + lane + 32 * p] * scale for p in parts]
    largest, total = iv.f32(-1e30), 0.0
    mixed = [0.0 for _ in parts]
    for key in iv.range(group, length, SIMDGROUPS):
        score = iv.f32(0.0)
        for p in parts:
            score += mine[p] * k[key * HEAD + lane + 32 * p]
        score = iv.simd_sum(score)
        top = iv.fmax(largest, score)
        shrink, weight = iv.exp(largest - top), iv.exp(score - top)
        largest = top
        total = total * shrink + weight
        for p in parts:
            mixed[p] = mixed[p] * shrink + weight * v[key * HEAD + lane + 32 * p]
    tops = iv.threadgroup_alloc(iv.f32, SIMDGROUPS)
    sums = iv.threadgroup_alloc(iv.f32, SIMDGROUPS)
    mixtures = iv.threadgroup_alloc(iv.f32, SIMDGROUPS * HEAD)
    if lane == 0:
        tops[group] = largest
        sums[group] = total
    for p in parts:
        mixtures[group * HEAD + lane + 32 * p] = mixed[p]
    iv.barrier("threadgroup", "threadgroup")
    if group == 0:
        top = tops[0]
        for g in range(1, SIMDGROUPS):
            top = iv.fmax(top, tops[g])
        weights = [iv.exp(tops[g] - top) for g in range(SIMDGROUPS)]
        total = iv.f32(0.0)
        for g in range(SIMDGROUPS):
            total += weights[g] * sums[g]
        for p in parts:
            result = iv.f32(0.0)
            for g in range(SIMDGROUPS):
                result += weights[g] * mixtures[g * HEAD + lane + 32 * p]
            out[query * HEAD + lane + 32 * p] = result / total


def reference(q, k, v, scale):
    """Softmax attention in f64."""
    scores = (q.astype(np.float64) @ k.T.astype(np.float64)) * scale
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True)


def run(queries=5, length=50, seed=0):
    """Attends with random heads; gives the largest difference to NumPy."""
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((queries, HEAD), np.float32)
    k, v = rng.standard_normal((2, length, HEAD), np.float32)
    out = np.zeros_like(q)
    threads = SIMDGROUPS * 32
    attention[queries * threads, threads](q, k, v, out, length, HEAD**-0.5)
    return float(np.abs(out - reference(q, k, v, HEAD**-0.5)).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run():.2g}")
