#!/usr/bin/env bash
# Whether a proof is ever wrong. Random kernels of the shapes that the prover knows (SHAPES of them), and random kernels
# of any shape and mutants of the file tests (KERNELS of them) are proved; those that are run under the checkers, in
# launches within the conditions and at their edge. Any finding fails. LAUNCHES says how many for each kernel that is
# proved, FIRST the first seed. The shapes take some 10 ms each with their launches, the others a second.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
export INVAR_PROVE_SHAPES=${SHAPES:-100000} INVAR_PROVE_KERNELS=${KERNELS:-1000} INVAR_PROVE_LAUNCHES=${LAUNCHES:-14}
export INVAR_PROVE_FIRST=${FIRST:-0}
cargo test -q --release -p invar-prove --test suite -- --nocapture --test-threads 1 no_proof_of_a_shape no_proof_is_beside
