#!/usr/bin/env bash
# How many of the mutants of the file tests that a launch breaks the prover finds: at least 95 %, else it fails.
# MUTANTS says how many are made, FIRST the first seed; with MISSED=1 it prints those that it does not find.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
export INVAR_PROVE_MUTANTS=${MUTANTS:-4000} INVAR_PROVE_FIRST=${FIRST:-0}
[ -z "${MISSED:-}" ] || export INVAR_PROVE_MISSED=1
cargo test -q --release -p invar-prove --test suite -- --nocapture mutants_that_a_launch_breaks
