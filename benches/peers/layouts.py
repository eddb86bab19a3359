"""Layout algebra from Python: ours beside CuTe's own pure-Python implementation (pycute).

Prints one JSON document: a list of name, whether it is algebra (and not only making or calling a
layout), ours and peer, in microseconds an operation, medians of rounds in which the two take turns.
Results are compared before anything is timed.
"""

import json
import statistics
import sys
import timeit

import pycute
from invar import layout as ly

OURS, PEER = ly.Layout, pycute.Layout
TENSOR = (256, 512), (512, 1)
OWNERS = ((64, 4), (4, 4)), ((64, 4), (16, 1))
NESTED = ((4, 2), (8, (2, 4))), ((1, 32), (4, (64, 128)))
TILE = (16, 256)

# Operands are made once, as a program that composes layouts has them.
t, o, n = OURS(*TENSOR), OURS(*OWNERS), OURS(*NESTED)
pt, po, pn = PEER(*TENSOR), PEER(*OWNERS), PEER(*NESTED)
tiles = (OURS(16, 1), OURS(256, 1))
peer_tiles = (PEER(16, 1), PEER(256, 1))
tile, peer_tile = ly.composition(t, TILE), pycute.composition(pt, peer_tiles)

CASES = [
    ("layout from tuples", "OURS(*NESTED)", "PEER(*NESTED)"),
    ("offset of a coordinate", "n((5, 9))", "pn(5, 9)"),
    ("coalesce", "ly.coalesce(n)", "pycute.coalesce(pn)"),
    ("composition", "ly.composition(tile, o)", "pycute.composition(peer_tile, po)"),
    ("zipped_divide", "ly.zipped_divide(t, tiles)", "pycute.zipped_divide(pt, peer_tiles)"),
    ("complement", "ly.complement(n, 4096)", "pycute.complement(pn, 4096)"),
    ("right_inverse", "ly.right_inverse(n)", "pycute.right_inverse(pn)"),
    ("logical_product", "ly.logical_product(o, tiles[0])", "pycute.logical_product(po, peer_tiles[0])"),
]


def offsets(value):
    """What a result maps to, to compare the two sides."""
    if isinstance(value, int):
        return value
    count = value.size()
    return [value(i) for i in range(min(count, 4096))], count


def once(expression):
    """Microseconds that the expression takes, from enough rounds to fill 2 ms."""
    timer = timeit.Timer(expression, globals=globals())
    count = max(1, int(0.002 / max(timer.timeit(number=1), 1e-7)))
    return timer.timeit(number=count) / count * 1e6


def main():
    rows = []
    for name, ours, peer in CASES:
        a, b = eval(ours), eval(peer)
        if offsets(a) != offsets(b):
            sys.exit(f"{name}: {a} differs from {b}")
        times = [(once(ours), once(peer)) for _ in range(21)]
        rows.append(
            {
                "name": name,
                "algebra": name not in ("layout from tuples", "offset of a coordinate"),
                "ours": statistics.median(t[0] for t in times),
                "peer": statistics.median(t[1] for t in times),
            }
        )
    print(json.dumps(rows))


main()
