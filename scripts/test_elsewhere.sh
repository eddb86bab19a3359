#!/usr/bin/env bash
# What must hold on systems without Debian's packages (macOS, Windows): all that needs no LLVM and no clang. Where
# LLVM's library is found (Homebrew's llvm@19, or INVAR_LLVM), the CPU device is tested too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
cargo clippy --workspace --all-targets -- -D warnings
for crate in invar-layout invar-ir invar-interp; do
    cargo test -p "$crate"
done
cargo build -p invar-lang-cli
built=${CARGO_TARGET_DIR:-target}/debug/invar
"$built" check examples/smooth.inv
"$built" emit examples/smooth.inv --target msl >/dev/null
"$built" devices
if "$built" run examples/noise.inv --device cpu; then
    cargo test -p invar-runtime --test suite
else
    echo "skipped: the CPU device, for LLVM's library is not installed"
fi
