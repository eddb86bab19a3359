#!/usr/bin/env bash
# Checks that the library and the command compile for other systems and processors: for each whose standard library
# Rust has here (rustup target add NAME). Those that are missing are named.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
skipped=0
sysroot=$(rustc --print sysroot)
# on TARGET COMMAND ARGUMENTS...: the command of cargo for that target
on() {
    local target=$1
    shift
    if ! [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
        skipped=$((skipped + 1))
        echo "skipped: $target, whose standard library is not installed (rustup target add $target)"
        return
    fi
    echo "== cargo $1 --target $target ${*:2}"
    cargo "$1" -q --target "$target" "${@:2}"
}

# The crate that grows stacks holds some assembly, which Clang translates for every system. On a system of its
# own, the assembler is found by itself.
if [ "$(uname -s)" = Linux ]; then
    need_packages clang-19 llvm-19
    for system in aarch64_apple_darwin x86_64_pc_windows_msvc; do
        export "CC_$system=clang-19" "AR_$system=llvm-ar-19"
    done
    # Nothing of Apple's headers is used, but the folder is asked for.
    export SDKROOT=/
fi
for system in aarch64-apple-darwin x86_64-pc-windows-msvc; do
    # The assembly of this one is read only when it is compiled.
    on "$system" build -p invar-llvm
    on "$system" check -p invar-lang -p invar-lang-cli -p invar-py
done
on aarch64-unknown-linux-gnu build -p invar-llvm
# No processor to compile for, and one thread: checks, text forms and WebGPU.
on wasm32-unknown-unknown check -p invar-lang --no-default-features --features gpu
on wasm32-unknown-unknown check -p invar-lang --no-default-features
echo "targets skipped: $skipped"
