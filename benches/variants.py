#!/usr/bin/env python3
"""Each benchmark kernel in many spellings, in milliseconds of the device.

A file in ``kernels/variants`` holds one kernel: ``inputs`` makes its arrays, and ``VARIANTS`` has the
name of each spelling, its kernel, its grid, its threadgroup and its scalars, and where the arrays are
stored in another way a function that does so. All take turns, and all must compute the same.
"""

import argparse
import importlib.util
import json
import math
import statistics
import sys
from pathlib import Path

import numpy as np

KERNELS = Path(__file__).parent / "kernels" / "variants"
#: How many times as slow as the best the worst of a kernel may be, and the geometric mean.
WORST, MEAN = 1.5, 1.15


def module(file):
    """A file of kernels."""
    spec = importlib.util.spec_from_file_location(f"variants_{file.stem}", file)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def prepared(kernels, device):
    """Each spelling with a call that gives the seconds of a run, after it was seen to be right."""
    given = kernels.inputs(np.random.default_rng(0))
    result = getattr(kernels, "result", lambda arrays: arrays[kernels.NAMES[-1]])
    first = None
    for name, kernel, grid, threadgroup, scalars, *stored in kernels.VARIANTS:
        arrays = stored[0](given) if stored else given
        arrays = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
        ready = kernel[grid, threadgroup].prepare(**arrays, **scalars, device=device)
        ready()
        found = result(arrays).ravel().copy()
        if first is None:
            first = found
        if not np.allclose(found, first, rtol=1e-3, atol=1e-4):
            raise SystemExit(f"{kernels.__name__}: `{name}` computes something else")
        yield name, ready


def measure(kernels, rounds, device):
    """The median of each spelling, in milliseconds."""
    calls = dict(prepared(kernels, device))
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(min(call() for _ in range(2)) * 1e3)
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", help="names of files in kernels/variants; without any, all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    given = parser.parse_args()
    rows = []
    for file in sorted(KERNELS.glob("*.py")):
        if given.kernels and file.stem not in given.kernels:
            continue
        kernels = module(file)
        times = measure(kernels, given.rounds, given.device)
        ordered = sorted(times, key=times.get)
        best, worst = ordered[0], ordered[-1]
        mean = math.exp(statistics.fmean(math.log(t) for t in times.values()))
        limit = getattr(kernels, "WORST", WORST)
        name = f"{file.stem}, {len(times)} spellings"
        rows.append({"name": f"{name}: worst ({worst}), best ({best})", "ours": times[worst],
                     "peer": times[best], "bound": 1 / limit})  # fmt: skip
        rows.append({"name": f"{name}: geometric mean, best", "ours": mean, "peer": times[best],
                     "bound": 1 / MEAN})  # fmt: skip
        if not given.json:
            print(f"{file.stem}: worst {times[worst] / times[best]:.2f}, mean {mean / times[best]:.2f} times the best")
            for spelling in ordered:
                print(f"    {times[spelling]:9.2f} ms  {times[spelling] / times[best]:5.2f}  {spelling}", flush=True)
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
