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
# Of Windows and macOS: the crate that grows stacks holds some assembly, which takes an assembler for that system.
for system in x86_64-pc-windows-msvc:ml64 x86_64-pc-windows-gnu:x86_64-w64-mingw32-gcc aarch64-apple-darwin:xcrun; do
    if command -v "${system#*:}" >/dev/null; then
        check "${system%:*}" -p invar-lang -p invar-lang-cli
    else
        skipped=$((skipped + 1))
        echo "skipped: ${system%:*}, whose assembler is not installed (${system#*:})"
    fi
done
# No processor to compile for, and one thread: checks, text forms and WebGPU.
check wasm32-unknown-unknown -p invar-lang --no-default-features --features gpu
check wasm32-unknown-unknown -p invar-lang --no-default-features
echo "targets skipped: $skipped"
