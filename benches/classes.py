#!/usr/bin/env python3
"""Classes of kernels as people write them, beside the same in C with OpenMP, in milliseconds.

A file in ``kernels/classes`` holds one class: ``cases`` gives each case's name, kernel, arrays,
scalars, grid and threadgroup. The function of ``peers/cpu/classes.c`` that has the kernel's name (or
the name in ``PEERS``) works on arrays of its own with the same contents; both sides take turns, and what
they leave in the arrays must agree. Each class runs on one thread of each side and on all.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from variants import module

HERE = Path(__file__).parent
KERNELS = HERE / "kernels" / "classes"
#: A class has at least this share of the speed of C.
BOUND = 1 / 1.5
#: Seconds for a case, and turns at least.
SECONDS, TURNS = 2.0, 7
#: Kernels whose function in C has another name.
PEERS = {"strides.matrix_by_vector": "matrices_by_vectors", "rolled.filter_rolled": "filter",
         "rolled.filter_written_out": "filter", "rolled.sums_rolled": "sums",
         "rolled.sums_written_out": "sums"}  # fmt: skip


def library():
    """The functions in C."""
    out = HERE.parent / "target" / "bench-peers"
    out.mkdir(parents=True, exist_ok=True)
    source, made = HERE / "peers" / "cpu" / "classes.c", out / "classes.so"
    flags = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(made), "-lm"], check=True)
    return ctypes.CDLL(str(made))


def call_of_c(functions, name, arrays, scalars, size):
    """A call of a function in C: the arrays, then the scalars; without any, how many results there are."""
    function = getattr(functions, name)
    function.restype = None
    given = [ctypes.c_void_p(a.ctypes.data) for a in arrays.values()]
    # A kernel without a number of results has them as long as its last array.
    numbers = list(scalars.values())
    if "n" not in scalars and "half" not in scalars:
        numbers.append(size)
    given += [ctypes.c_float(v) if isinstance(v, float) else ctypes.c_int(v) for v in numbers]

    def call():
        start = time.perf_counter()
        function(*given)
        return time.perf_counter() - start

    return call


def copies(arrays):
    """The same contents, each array at the start of a line of the cache."""

    def copy(array):
        room = np.empty(array.nbytes + 64, np.uint8)
        from_line = -room.ctypes.data % 64
        there = room[from_line : from_line + array.nbytes].view(array.dtype).reshape(array.shape)
        there[...] = array
        return there

    return {name: copy(array) for name, array in arrays.items()}


def measure(functions, stem, case):
    """The medians of both sides in milliseconds, ours first."""
    name, kernel, arrays, scalars, grid, threadgroup = case
    ours, theirs = copies(arrays), copies(arrays)
    launch = kernel[grid, threadgroup].prepare(**ours, **scalars, device="cpu")
    peer = PEERS.get(f"{stem}.{kernel.__name__}", kernel.__name__)
    peer = call_of_c(functions, peer, theirs, scalars, list(arrays.values())[-1].size)
    launch()
    peer()
    for array in arrays:
        # Sums in another order differ by what their terms are rounded to, however little is left of them.
        rounding = max(1e-4, 1e-5 * float(np.abs(theirs[array]).max()))
        if not np.allclose(ours[array], theirs[array], rtol=1e-3, atol=rounding):
            raise SystemExit(f"{name}: `{array}` differs from what C computes")
    times, start = ([], []), time.perf_counter()
    while len(times[0]) < TURNS or time.perf_counter() - start < SECONDS:
        for side, call in enumerate((launch, peer)):
            call()
            times[side].extend(call() * 1e3 for _ in range(3))
    return tuple(statistics.median(t) for t in times)


def rows(wanted):
    """Rows of this process's number of threads."""
    functions = library()
    for file in sorted(KERNELS.glob("*.py")):
        if wanted and file.stem not in wanted:
            continue
        for case in module(file).cases(np.random.default_rng(0)):
            ours, peer = measure(functions, file.stem, case)
            yield {"name": f"{case[0]}, C, {{threads}}", "ours": ours, "peer": peer, "bound": BOUND}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("classes", nargs="*", help="names of files in kernels/classes; without any, all")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    given = parser.parse_args()
    counts = sorted({1, int(os.environ.get("INVAR_THREADS") or os.cpu_count())})
    if os.environ.get("INVAR_CLASSES"):
        for row in rows(given.classes):
            print(json.dumps(row), flush=True)
        return
    every = []
    for threads in counts:
        said = f"{threads} thread{'s' * (threads > 1)}"
        environment = {**os.environ, "INVAR_THREADS": str(threads), "OMP_NUM_THREADS": str(threads),
                       "OMP_WAIT_POLICY": "passive", "INVAR_CLASSES": "1"}  # fmt: skip
        command = [sys.executable, __file__, *given.classes]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                row = json.loads(line)
                row["name"] = row["name"].format(threads=said)
                every.append(row)
                if not given.json:
                    print(f"{row['ours']:9.2f} {row['peer']:9.2f} ms  {row['peer'] / row['ours']:5.2f}  {row['name']}",
                          flush=True)  # fmt: skip
        if process.returncode:
            raise SystemExit(process.returncode)
    if given.json:
        print(json.dumps(every))
    else:
        ratios = [row["peer"] / row["ours"] for row in every]
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
