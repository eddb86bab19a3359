#!/usr/bin/env bash
# Random kernels on a device and on the reference machine, byte by byte, on all cores; what differs is made
# small and kept in target/conformance. `msl` is MSL compiled by clang for this processor; `all` is cpu, gpu and msl.
# On the CPU buffers lie between guard pages. With --mutants the kernels are those of a folder's
# `.inv` files, such as tests/ir/run, with something changed. INVAR_PROCESSOR says for which processor.
# usage: scripts/conformance.sh [--seeds FIRST..END] [--device cpu|checked|gpu|msl|all] [--jobs N] [--into FOLDER]
#        [--mutants FOLDER]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
need_packages build-essential libllvm19
features=()
case " $* " in *" gpu "* | *" all "*) features=(--features gpu); need_packages libvulkan1 mesa-vulkan-drivers ;; esac
case " $* " in *" msl "* | *" all "*) need_packages clang-19 ;; esac
cargo build --release -q -p invar-bench "${features[@]}" --bin invar-conformance
exec target/release/invar-conformance "$@"
