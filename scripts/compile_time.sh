#!/usr/bin/env bash
# How compile time grows: odd kernels of 10 to 100,000 instructions, one kind of instruction each, through the
# verifier, the reference machine, the CPU device, MSL and WGSL. Fails where an instruction of a large kernel takes
# more than three times as long as one of 1,000. Of shaders the share of naga, which reads them, and of
# Metal sources that of clang, is told and not judged; without clang these are left out.
# All of it takes long; --only, --target and --most take a part.
set -euo pipefail
usage='usage: scripts/compile_time.sh [--only KIND] [--target verify|metal|checked|cpu|edges|msl|wgsl] [--most SIZE] [--print]'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in -h | --help) echo "$usage"; exit 0 ;; esac
need_rust
need_packages build-essential llvm-19-dev libpolly-19-dev
cargo build --release -q -p invar-bench --bin invar-compile-time
exec target/release/invar-compile-time "$@"
