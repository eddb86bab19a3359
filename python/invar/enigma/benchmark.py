"""Timing functions and kernels."""

from __future__ import annotations

import dataclasses
import statistics
import time
import typing

__all__ = ["BenchResult", "bench", "bench_gpu", "format_bench_result"]


@dataclasses.dataclass
class BenchResult:
    """What was measured: its label, the times in microseconds, and how many runs before them were
    not counted. Without times every figure is 0."""

    label: str
    samples_us: typing.Sequence[float]
    warmup: int

    @property
    def n(self):
        """How many times there are."""
        return len(self.samples_us)

    @property
    def median_us(self):
        """The median in microseconds."""
        return statistics.median(self.samples_us) if self.n else 0.0

    @property
    def mean_us(self):
        """The mean in microseconds."""
        return statistics.fmean(self.samples_us) if self.n else 0.0

    @property
    def min_us(self):
        """The least in microseconds."""
        return min(self.samples_us, default=0.0)

    @property
    def max_us(self):
        """The greatest in microseconds."""
        return max(self.samples_us, default=0.0)

    @property
    def stdev_us(self):
        """The standard deviation in microseconds; 0 of fewer than two times."""
        return statistics.stdev(self.samples_us) if self.n > 1 else 0.0

    def __str__(self):
        return format_bench_result(self)


def _measured(label, once, repeat, warmup):
    if repeat < 1:
        raise ValueError(f"repeat={repeat}: a benchmark has at least one run")
    if warmup < 0:
        raise ValueError(f"warmup={warmup}: runs are at least 0")
    for _ in range(warmup):
        once()
    return BenchResult(label, [once() for _ in range(repeat)], warmup)


def bench(fn, *args, repeat=50, warmup=5, label=None, **kwargs):
    """Times ``repeat`` calls of a function, after ``warmup`` calls that do not count."""

    def once():
        start = time.perf_counter_ns()
        fn(*args, **kwargs)
        return (time.perf_counter_ns() - start) / 1000

    return _measured(label or getattr(fn, "__name__", "fn"), once, repeat, warmup)


def bench_gpu(prepared, grid, threads, *, repeat=50, warmup=5, label=None):
    """Times ``repeat`` dispatches of a prepared kernel on the device, after ``warmup`` that do not
    count."""

    def once():
        return prepared.dispatch_timed(grid, threads)

    return _measured(label or getattr(prepared, "kernel_name", "prepared"), once, repeat, warmup)


def format_bench_result(r, *, throughput_gbps=None):
    """A line for a result, with the GB/s if given."""
    parts = [
        r.label, f"n={r.n}", f"median={r.median_us:.2f}us", f"min={r.min_us:.2f}us",
        f"max={r.max_us:.2f}us",
    ]  # fmt: skip
    if throughput_gbps is not None:
        parts.append(f"BW={throughput_gbps:.2f}GB/s")
    return "  ".join(parts)
