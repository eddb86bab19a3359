#!/usr/bin/env python3
"""Puts what the prover's solver decided to z3 as well: both must agree.

Reads from standard input what `cargo run -p invar-prove --example smt -- FILES` prints, and needs z3 from
PyPI (`pip install z3-solver`). What z3 does not decide within its limit is counted, and is not a failure.
"""

import sys

import z3

LIMIT_MS = 2000


def problems(lines):
    """Pairs of the first line and the script."""
    head, script = None, []
    for line in lines:
        if line.startswith("; end"):
            yield head, "".join(script)
            head, script = None, []
        elif line.startswith(";"):
            head = line[1:].strip()
        else:
            script.append(line)


def main():
    agreed = undecided = 0
    wrong = []
    for head, script in problems(sys.stdin):
        ours, _, where = head.partition(" ")
        solver = z3.Solver()
        solver.set("timeout", LIMIT_MS)
        solver.from_string(script)
        theirs = str(solver.check())
        if theirs == "unknown":
            undecided += 1
        elif theirs == ours:
            agreed += 1
        else:
            wrong.append(f"{where}: we say {ours}, z3 says {theirs}\n{script}")
    print(f"{agreed} problems decided alike, {undecided} that z3 did not decide, {len(wrong)} otherwise")
    for text in wrong[:3]:
        print(text)
    return 1 if wrong or not agreed else 0


if __name__ == "__main__":
    sys.exit(main())
