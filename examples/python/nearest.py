"""The nearest neighbours of points in four dimensions: for each query the K nearest of many points."""

import numpy as np

import invar as iv

K = 8


@iv.kernel(threadgroup=64)
def nearest(
    points: iv.Buffer[iv.f32x4], queries: iv.Buffer[iv.f32x4], found: iv.Buffer[iv.u32]
):
    """The numbers of the nearest points, the nearest first; of equal ones the first."""
    q = iv.thread_position_in_grid("x")
    query = queries[q]
    distances = iv.thread_alloc(iv.f32, K)
    indices = iv.thread_alloc(iv.u32, K)
    for k in range(K):
        distances[k] = np.inf
    for i in iv.range(len(points)):
        way = points[i] - query
        distance = iv.dot(way, way)
        if distance < distances[K - 1]:
            k = iv.u32(K - 1)
            while k > 0 and distance < distances[k - 1]:
                distances[k] = distances[k - 1]
                indices[k] = indices[k - 1]
                k -= 1
            distances[k] = distance
            indices[k] = iv.u32(i)
    for k in range(K):
        found[q * K + k] = indices[k]


def run(points=10_000, queries=1000, seed=0):
    """How many neighbours of random points, whose distances are exact, are others than NumPy's."""
    rng = np.random.default_rng(seed)
    points, queries = (rng.integers(0, 256, (n, 4)).astype(np.float32) for n in (points, queries))
    found = np.zeros((len(queries), K), np.uint32)
    nearest[len(queries), 64](points, queries, found)
    wanted = [np.argsort(((points - q) ** 2).sum(1), kind="stable")[:K] for q in queries]
    return int((found != np.array(wanted)).sum())


if __name__ == "__main__":
    print(f"neighbours that are others than NumPy's: {run()}")
