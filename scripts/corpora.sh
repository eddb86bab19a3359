#!/usr/bin/env bash
# What becomes of every shader (.wgsl) below a folder: read, translated, verified, and checked on inputs
# that are made up. A table stands at the end; --lines prints a line for each entry point before it.
set -euo pipefail
start=$(pwd)
usage='usage: scripts/corpora.sh [--lines] DIR'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

lines=no
folder=
while [ $# -gt 0 ]; do
    case "$1" in
        --lines) lines=yes; shift ;;
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
cargo build -q -p invar-wgsl --example census
files=$(mktemp)
trap 'rm -f "$files"' EXIT
find "$folder" -name '*.wgsl' -type f | sort > "$files"
[ -s "$files" ] || { echo "$folder has no .wgsl file" >&2; exit 2; }

for mode in "" --check; do
    if [ -z "$mode" ]; then echo "== translated and verified"; else echo "== checked"; fi
    # One process for all: a shader that ends it shows here, and the exit code is not 0.
    target/debug/examples/census $mode --files "$files" |
        if [ "$lines" = yes ]; then cat; else grep -v $'\t'; fi
done
