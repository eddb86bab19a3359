#!/bin/sh
# Measures every f32 function of one argument over all 2^32 inputs and prints a table.
#
#     scripts/exhaustive.sh [STRIDE] [FUNCTION...]
#
# A stride of n takes every n-th input; all inputs of all functions take about an hour of four
# cores. It fails if an error exceeds the bound that the op table states.
set -eu
cd "$(dirname "$0")/.."
# Without the machine's own instructions fma is a library call, a hundred times slower.
RUSTFLAGS="${RUSTFLAGS:-} -C target-cpu=native" exec cargo run --quiet --release \
    --target-dir target/exhaustive -p invar-ir --example exhaustive -- "$@"
