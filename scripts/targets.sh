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

# The crate that grows stacks holds some assembly, and some C for Windows: Clang compiles both for every system,
# with the headers that MinGW has. On a system of its own, its compiler is found by itself.
systems=(aarch64-apple-darwin x86_64-pc-windows-msvc)
if [ "$(uname -s)" = Linux ]; then
    need_packages clang-19 llvm-19 mingw-w64-x86-64-dev binutils-mingw-w64-x86-64
    systems=(aarch64-apple-darwin x86_64-pc-windows-gnu)
    for system in "${systems[@]//-/_}" aarch64_unknown_linux_gnu; do
        export "CC_$system=clang-19" "AR_$system=llvm-ar-19"
    done
    export CFLAGS_x86_64_pc_windows_gnu="-isystem /usr/x86_64-w64-mingw32/include"
    # Nothing of Apple's headers is used, but the folder is asked for.
    export SDKROOT=/
fi
for system in "${systems[@]}"; do
    # The assembly of this one is read only when it is compiled.
    on "$system" build -p invar-llvm
    on "$system" check -p invar-lang -p invar-lang-cli
done
on aarch64-unknown-linux-gnu build -p invar-llvm
# No processor to compile for, and one thread: checks, text forms and WebGPU.
on wasm32-unknown-unknown check -p invar-lang --no-default-features --features gpu
on wasm32-unknown-unknown check -p invar-lang --no-default-features
echo "targets skipped: $skipped"
