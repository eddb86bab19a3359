#!/usr/bin/env python3
"""What a launch from Python costs beyond the device's own run, in microseconds.

Run it with the package installed. The kernel does next to nothing; the time that the device reports
for each run is taken off. The bound is 10 microseconds for each way to launch.
"""

import argparse
import json
import statistics
import sys
import time

import numpy as np

import invar as iv

BOUND = 10.0


@iv.kernel
def touch(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32]):
    y[iv.thread_position_in_grid("x")] = x[0] * by


def median(run, rounds):
    """The median over rounds of the time of a call less the device's share, in microseconds."""
    figures = []
    for _ in range(rounds):
        start = time.perf_counter()
        device = run()
        figures.append((time.perf_counter() - start - device) * 1e6)
    return statistics.median(figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--device", default="default")
    parser.add_argument("--json", action="store_true", help="print rows for machines, and no verdict")
    given = parser.parse_args()
    device = iv.device(given.device)
    x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
    prepared = touch[1, 1].prepare(x, y, 2.0, device=device)
    # A launch does not tell how long the device took: the prepared one, in the same run, does.
    own = statistics.median(prepared() for _ in range(given.rounds))

    def call():
        touch[1, 1](x, y, 2.0, device=device)
        return own

    def future():
        return touch[1, 1].submit(x, y, 2.0, device=device).seconds

    rows = [("call", call), ("call, ready to repeat", prepared), ("future", future)]
    if given.json:
        found = [{"name": n, "ours": median(run, given.rounds), "limit": BOUND} for n, run in rows]
        print(json.dumps(found))
        return 0
    print(f"device `{device.name}`, {given.rounds} rounds; its own run takes {own * 1e6:.2f} us")
    late = False
    for name, run in rows:
        figure = median(run, given.rounds)
        late |= figure > BOUND
        print(f"launch overhead, {name:24} {figure:8.2f} us    bound {BOUND:.0f}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
