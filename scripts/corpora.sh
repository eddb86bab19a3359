#!/usr/bin/env bash
# What becomes of every shader (.wgsl) below a folder: read, translated, verified, and checked on inputs
# that are made up. A table stands at the end; --lines prints lines for each entry point before it. With
# --run it also runs on the processor, on the GPU, and through wgpu without Invar: where the checkers find
# nothing, results are compared with those of the reference machine.
set -euo pipefail
start=$(pwd)
usage='usage: scripts/corpora.sh [--lines] [--run] DIR'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=(--check)
folder=
while [ $# -gt 0 ]; do
    case "$1" in
        --lines | --run) options+=("$1"); shift ;;
        -h | --help) echo "$usage"; exit 0 ;;
        -*) echo "$usage" >&2; exit 2 ;;
        *) [ -z "$folder" ] || { echo "$usage" >&2; exit 2; }
            folder=$1; shift ;;
    esac
done
[ -n "$folder" ] || { echo "$usage" >&2; exit 2; }
case "$folder" in /*) ;; *) folder=$start/$folder ;; esac
[ -d "$folder" ] || { echo "$folder is no folder" >&2; exit 2; }

need_rust
cargo build -q -p invar-lang --example census
files=$(mktemp)
trap 'rm -f "$files"' EXIT
find "$folder" -name '*.wgsl' -type f | sort > "$files"
[ -s "$files" ] || { echo "$folder has no .wgsl file" >&2; exit 2; }

# Mesa's driver complains of a missing desktop each time that it is opened.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"
target/debug/examples/census "${options[@]}" --files "$files"
