#!/usr/bin/env bash
# Checks that the library compiles for other systems: for each whose standard library Rust has here (rustup
# target add NAME). Those that are missing are named.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
skipped=0
sysroot=$(rustc --print sysroot)
# check TARGET ARGUMENTS...
check() {
    local target=$1
    shift
    if ! [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
        skipped=$((skipped + 1))
        echo "skipped: $target, whose standard library is not installed (rustup target add $target)"
        return
    fi
    echo "== cargo check --target $target $*"
    cargo check -q --target "$target" "$@"
}
for target in x86_64-pc-windows-msvc x86_64-pc-windows-gnu aarch64-apple-darwin; do
    check "$target" -p invar-lang -p invar-lang-cli
done
# No processor to compile for, and one thread: checks, text forms and WebGPU.
check wasm32-unknown-unknown -p invar-lang --no-default-features --features gpu
check wasm32-unknown-unknown -p invar-lang --no-default-features
echo "targets skipped: $skipped"
