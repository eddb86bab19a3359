#!/usr/bin/env bash
# Runs the Enigma DSL's own programs unchanged against `invar.enigma`: the examples and benchmarks of a
# checkout, each compared with NumPy, its tests, and every block of Python in its documents; prints a table.
# What needs Apple's tools or looks into the tracer is exempt, by name and with the reason, in scripts/enigma.py.
# usage: scripts/enigma.sh [--only examples|tests|documents] [--device NAME] DIR
set -euo pipefail
start=$(pwd)
usage='usage: scripts/enigma.sh [--only examples|tests|documents] [--device NAME] DIR'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=() folder=
while [ $# -gt 0 ]; do
    case "$1" in
        --only | --device) [ $# -ge 2 ] || { echo "$1 needs a name" >&2; exit 2; }
            options+=("$1" "$2"); shift 2 ;;
        -h | --help) echo "$usage"; exit 0 ;;
        -*) echo "$usage" >&2; exit 2 ;;
        *) folder=$1; shift ;;
    esac
done
[ -n "$folder" ] || { echo "$usage" >&2; exit 2; }
case "$folder" in /*) ;; *) folder=$start/$folder ;; esac
if [ ! -f "$folder/enigma/__init__.py" ]; then
    echo "$folder is no checkout of the Enigma DSL: it has no enigma/__init__.py" >&2
    exit 2
fi

need_rust
need_packages build-essential python3 python3-venv llvm-19-dev libpolly-19-dev
python=target/python
[ -x "$python/bin/python" ] || python3 -m venv "$python"
"$python/bin/pip" install -q --disable-pip-version-check "maturin>=1.7,<2" numpy pytest
# One example is about arrays of MLX; where there is none for this system, it is not run.
"$python/bin/pip" install -q --disable-pip-version-check "mlx[cpu]" 2>/dev/null || true
VIRTUAL_ENV="$root/$python" "$python/bin/maturin" develop -q
exec "$python/bin/python" scripts/enigma.py "${options[@]}" "$folder"
