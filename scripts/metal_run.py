#!/usr/bin/env python3
"""Runs kernels of Metal sources on the processor, on inputs that are made up: whether each comes to its end.

    scripts/metal_run.py COMMAND CENSUS [-I FOLDER]... [-D MACRO]...

COMMAND is the program `invar`, CENSUS what the example `metal_census` printed with `--lines`: kernels that verify, and
below them their file. Buffers are zeros, numbers and function constants 1, and a threadgroup of 64 threads runs. A line
says what became of each kernel that did not run, a table how many did; the exit status is 1 if one crashed.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

#: Seconds for a kernel to be compiled and run, and for the loops of one to end.
PATIENCE, LIMIT = 120, 10


def verified(census: str) -> list[tuple[str, str]]:
    """The kernels that verify, each with its file."""
    found, waiting = [], []
    for line in open(census, encoding="utf-8"):
        if kernel := re.match(r"(\S+): verified$", line):
            waiting.append(kernel[1])
        elif file := re.match(r"\s*(?:[\d-]+\s+){3}(\S.*\.metal)\s*$", line):
            found += [(name, file[1]) for name in waiting]
            waiting = []
    return found


def filled(value: object) -> object:
    """A form with every value that it asks for."""
    match value:
        case None:
            return 1
        case dict():
            return {name: filled(inner) for name, inner in value.items()}
        case list():
            return [filled(inner) for inner in value]
        case str() if value.startswith("random("):
            return "zeros(16384)"
        case _:
            return value


def said(command: list[str]) -> tuple[int | None, str, str]:
    """The exit status of a command, nothing if it took too long, and what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout, done.stderr


def run(command: str, kernel: str, file: str, options: list[str], folder: str) -> tuple[str, str]:
    """What became of a kernel, and the first line of what was said of it."""
    options = ["--kernel", kernel, "-I", os.path.dirname(file), *options]
    status, form, words = said([command, "inputs", file, *options])
    if status == 0:
        inputs = os.path.join(folder, "inputs.json")
        with open(inputs, "w", encoding="utf-8") as out:
            json.dump(filled(json.loads(form)), out)
        end = ["--inputs", inputs, "--device", "cpu", "--time-limit", str(LIMIT)]
        status, _, words = said([command, "run", file, *options, *end])
    first = words.strip().split("\n")[0]
    if status is None:
        return "not done in time", f"{PATIENCE} s"
    if status == 0:
        return "ran", ""
    if status < 0 or status > 2 or "bug in Invar" in words:
        return "crashed", f"status {status}: {first}"
    return ("stopped" if "deadline-exceeded" in words else "refused"), first


def main() -> None:
    command, census, *options = sys.argv[1:]
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kernel, file in verified(census):
            what, why = run(command, kernel, file, options, folder)
            counts[what] += 1
            if why:
                print(f"{kernel}: {what}: {why}", flush=True)
    print(f"\non cpu, of {sum(counts.values())} that verify:")
    for what, count in counts.most_common():
        print(f"{count:7} {what}")
    sys.exit(counts["crashed"] > 0)


if __name__ == "__main__":
    main()
