#!/usr/bin/env bash
# What the prover says of the kernels of examples and benches, and of tests/ir/race: one line a kernel with
# its verdict and its time, then the counts. A proof of a racy kernel fails; those of which the checkers only
# warn (atomics without order, loads that nobody uses) are not counted.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
cargo build -q --release -p invar-prove --example corpus
corpus=target/release/examples/corpus
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

count() { # what, pattern of files
    awk -F'\t' -v pattern="$2" -v what="$1" '
        /^(Proved|Broken|Open)\t/ && $4 ~ pattern && $4 !~ /race\/(unordered-.*|discarded-load)-racy/ { n[$1]++; all++; if ($2 + 0 > most) most = $2 + 0 }
        END { printf "%-24s %3d kernels: %d proved, %d broken, %d open; at most %.2f s\n", what, all, n["Proved"], n["Broken"], n["Open"], most }
    ' "$rows"
}

"$corpus" examples/*.inv benches/kernels/*.inv benches/kernels/gpu/*.inv tests/ir/race/*.inv tests/ir/textures/race/*.inv | tee "$rows"
echo
count "examples and benches" '^(examples|benches)'
count "race, mended" 'race/.*-fixed'
count "race, racy" 'race/.*-racy'
awk -F'\t' '
    /^Proved\t/ { all++; accepted += $7 == "certified"; again += $9 ~ / s given$/; if ($9 + 0 > given) given = $9 + 0 }
    $8 ~ / ns$/ { n++; look[n] = $8 + 0; sum += $8; if ($8 + 0 > most) most = $8 + 0 }
    END {
        share = 100 * accepted / all
        printf "certificates: %d of %d proofs accepted when they are read again (%.1f %%)\n", accepted, all, share
        printf "a look at the conditions of a launch: %.1f ns, at most %.1f ns (%d kernels)\n", sum / n, most, n
        printf "where kernels require the conditions: %d of %d proved, at most %.2f s\n", again, all, given
        exit share < 95
    }' "$rows"
if grep -P '^Proved\t.*race/(?!unordered-|discarded-load-racy).*-racy' "$rows"; then
    echo "a racy kernel was proved" >&2
    exit 1
fi
