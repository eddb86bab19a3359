#!/usr/bin/env bash
# What becomes of every shader (.wgsl) below a folder: read, translated, verified, and checked on inputs
# that are made up. A table stands at the end; --lines prints lines for each entry point before it. With
# --run it also runs on the processor, on the GPU, through wgpu without Invar, and with textures by the WGSL
# that Invar writes: where the checkers find nothing, results are compared with those of the reference machine. Of Metal sources (.metal) below the folder
# another table says of one instance of each kernel function whether it is compiled, translated and verified,
# with function constants of 1, and with --run whether it comes to its end on the processor; -I and -D are for
# their includes and macros.
set -euo pipefail
start=$(pwd)
usage='usage: scripts/corpora.sh [--lines] [--run] [-I FOLDER]... [-D MACRO]... DIR'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=(--check)
metal=()
run=false
folder=
while [ $# -gt 0 ]; do
    case "$1" in
        --lines) options+=("$1"); metal+=("$1"); shift ;;
        --run) options+=("$1"); run=true; shift ;;
        -I | -D) [ $# -gt 1 ] || { echo "$usage" >&2; exit 2; }
            case "$1$2" in -I[!/]*) set -- "$1" "$start/$2" "${@:3}" ;; esac
            metal+=("$1" "$2"); shift 2 ;;
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
files=$(mktemp)
trap 'rm -f "$files"' EXIT
mapfile -t sources < <(find "$folder" -name '*.metal' -type f | sort)
find "$folder" -name '*.wgsl' -type f | sort > "$files"
[ -s "$files" ] || [ ${#sources[@]} -gt 0 ] || { echo "$folder has no .wgsl or .metal file" >&2; exit 2; }

if [ ${#sources[@]} -gt 0 ]; then
    cargo build -q -p invar-msl --example metal_census
    census=$(mktemp)
    trap 'rm -f "$files" "$census"' EXIT
    lines=(--lines)
    case " ${metal[*]-} " in *" --lines "*) lines=() ;; esac
    if $run; then
        cargo build -q -p invar-lang-cli
        target/debug/examples/metal_census ${lines[@]+"${lines[@]}"} ${metal[@]+"${metal[@]}"} "${sources[@]}" | tee "$census"
        places=()
        for option in ${metal[@]+"${metal[@]}"}; do [ "$option" = --lines ] || places+=("$option"); done
        python3 scripts/metal_run.py target/debug/invar "$census" ${places[@]+"${places[@]}"}
    else
        target/debug/examples/metal_census ${metal[@]+"${metal[@]}"} "${sources[@]}"
    fi
fi
if [ -s "$files" ]; then
    cargo build -q -p invar-lang --example census
    # Mesa's driver complains of a missing desktop each time that it is opened.
    export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"
    target/debug/examples/census "${options[@]}" --files "$files"
fi
