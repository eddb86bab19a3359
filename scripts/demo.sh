#!/usr/bin/env bash
# Builds the command and shows what Invar does (`invar demo`): catches two mistakes in a kernel, runs the
# corrected kernel on a file of four million floats, then a matrix product, a Mandelbrot picture, softmax,
# RMSNorm, a Sobel filter of a picture and a histogram of a text; each answer is compared with one computed by
# other means. Kernels and pictures go to target/demo.
# usage: scripts/demo.sh [--device NAME] [--small] [--profile NAME] [PICTURE.png]
#   --device  where the kernels run: a device of `invar devices`, such as gpu; this processor unless
#             it says otherwise
#   --small   sizes for a device that is slow
#   --profile how it is built: release, or dev, which tests have built already
#   PICTURE.png is filtered in place of the Mandelbrot picture
set -euo pipefail
start=$(pwd)
usage='usage: scripts/demo.sh [--device NAME] [--small] [--profile NAME] [PICTURE.png]'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=default demo=() profile=release
while [ $# -gt 0 ]; do
    case "$1" in
        --device) [ $# -ge 2 ] || { echo "--device needs a name" >&2; exit 2; }
            device=$2; shift 2 ;;
        --small) demo+=(--small); shift ;;
        --profile) [ $# -ge 2 ] || { echo "--profile needs a name" >&2; exit 2; }
            case "$2" in release | dev) ;; *) echo "--profile takes release or dev, not $2" >&2; exit 2 ;; esac
            profile=$2; shift 2 ;;
        -h | --help) echo "$usage"; exit 0 ;;
        -*) echo "$usage" >&2; exit 2 ;;
        /*) demo+=("$1"); shift ;;
        *) demo+=("$start/$1"); shift ;;
    esac
done

need_rust
need_packages build-essential libllvm19
case "$device" in gpu*) need_packages libvulkan1; quiet_drivers ;; esac
cargo build --profile "$profile" -q -p invar-lang-cli
rm -rf target/demo
exec "${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}/invar" demo --device "$device" --out target/demo "${demo[@]}"
