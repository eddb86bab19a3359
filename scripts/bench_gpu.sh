#!/usr/bin/env bash
# Runs all file tests and all functions of floats on the GPUs of this machine, then measures one of them:
# bandwidth, arithmetic and what a dispatch costs. An argument names the adapter by its number (0, the best,
# unless it says otherwise); a second one divides every size.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
need_packages build-essential libvulkan1

cargo test -q -p invar-runtime --no-default-features --features gpu --test suite -- gpu:: gpu_functions:: --nocapture
cargo build --release -q -p invar-bench --no-default-features --features gpu --bin invar-bench-gpu
exec target/release/invar-bench-gpu "$@"
