#!/usr/bin/env bash
# Whether a proof is ever wrong: random kernels and mutants of the file tests are proved; those that are run
# under the checkers, in launches within the conditions and at their edge. Any finding fails.
# KERNELS and LAUNCHES (of each kernel) say how many, FIRST the first seed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
export INVAR_PROVE_KERNELS=${KERNELS:-100000} INVAR_PROVE_LAUNCHES=${LAUNCHES:-20} INVAR_PROVE_FIRST=${FIRST:-0}
cargo test -q --release -p invar-prove --test suite -- --nocapture no_proof_is_beside_a_finding
