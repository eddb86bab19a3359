"""Timing functions and kernels."""

from __future__ import annotations

import dataclasses
import statistics
import time

__all__ = ["BenchResult", "bench", "bench_gpu", "format_bench_result"]


@dataclasses.dataclass
class BenchResult:
    """Times in microseconds."""

    name: str
    times_us: list

    @property
    def median_us(self):
        return statistics.median(self.times_us)

    @property
    def mean_us(self):
        return statistics.fmean(self.times_us)

    @property
    def min_us(self):
        return min(self.times_us)

    @property
    def max_us(self):
        return max(self.times_us)

    @property
    def std_us(self):
        return statistics.pstdev(self.times_us)

    def __str__(self):
        return format_bench_result(self)


def _measured(name, once, warmup, iterations):
    if iterations < 1:
        raise ValueError("a benchmark has at least one iteration")
    for _ in range(warmup):
        once()
    return BenchResult(name, [once() for _ in range(iterations)])


def bench(fn, *args, warmup=3, iterations=20, name=None, **kwargs):
    """Times calls of a function."""

    def once():
        start = time.perf_counter()
        fn(*args, **kwargs)
        return (time.perf_counter() - start) * 1e6

    return _measured(name or getattr(fn, "__name__", "function"), once, warmup, iterations)


def bench_gpu(prepared, grid, threads, warmup=3, iterations=20, name=None):
    """Times dispatches of a prepared kernel."""

    def once():
        return prepared.dispatch_timed(grid, threads)

    return _measured(name or prepared.kernel_name, once, warmup, iterations)


def format_bench_result(result):
    """A line for a result."""
    return (
        f"{result.name}: median {result.median_us:.1f} µs, mean {result.mean_us:.1f}, least "
        f"{result.min_us:.1f}, greatest {result.max_us:.1f} ({len(result.times_us)} runs)"
    )
