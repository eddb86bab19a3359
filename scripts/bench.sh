#!/usr/bin/env bash
# One table of our figures beside the peers', measured in one run. --json FILE writes the rows too;
# --rows TEXT measures only those rows of the parts cpu and peers whose names have TEXT in them.
set -euo pipefail
start=$(pwd)
usage='usage: scripts/bench.sh [--json FILE] [--only PART] [--rows TEXT]'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

args=()
while [ $# -gt 0 ]; do
    case "$1" in
        --json) [ $# -ge 2 ] || { echo "--json needs a file name" >&2; exit 2; }
            case "$2" in /*) args+=(--json "$2") ;; *) args+=(--json "$start/$2") ;; esac
            shift 2 ;;
        --only) [ $# -ge 2 ] || { echo "--only needs checkers, memory, layouts, launches, forms, examples, variants, classes, textures, cpu, limits or peers" >&2; exit 2; }
            args+=(--only "$2"); shift 2 ;;
        --rows) [ $# -ge 2 ] || { echo "--rows needs a part of their names" >&2; exit 2; }
            args+=(--rows "$2"); shift 2 ;;
        -h | --help) echo "$usage"; exit 0 ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
done

need_rust
need_packages build-essential oclgrind libllvm19 pocl-opencl-icd ocl-icd-opencl-dev
need_packages python3 python3-venv
# The Python package as users install it, and the peers that are Python packages.
python=target/bench-python
[ -x "$python/bin/python" ] || python3 -m venv "$python"
"$python/bin/pip" install -q --disable-pip-version-check numpy numba opencv-python-headless .
"$python/bin/pip" install -q --disable-pip-version-check --no-deps nvidia-cutlass
cargo build --release -q -p invar-lang-cli -p invar-bench
# At most four threads on each side.
threads=$(nproc)
export INVAR_THREADS=$((threads < 4 ? threads : 4))
INVAR="$root/target/release/invar" exec target/release/invar-bench "${args[@]}"
