#!/usr/bin/env bash
# Random kernels on the CPU device against the reference machine: conformance.sh [COUNT [START]].
# Failures are reduced and written to target/tmp/random-SEED.inv.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_rust
INVAR_RANDOM_COUNT="${1:-100000}" INVAR_RANDOM_START="${2:-0}" INVAR_RANDOM_FAILURES=20 \
    cargo test --release -p invar-llvm --test random -- --nocapture
