#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, doc tests, documentation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
need_packages build-essential python3 python3-venv llvm-19-dev libpolly-19-dev clang-19 libvulkan1 mesa-vulkan-drivers
for component in rustfmt clippy; do
    if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        echo "the Rust component $component is missing: rustup component add $component" >&2
        exit 1
    fi
done

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets -- -D warnings
step cargo test --workspace
step cargo clippy -p invar-runtime --features gpu --all-targets -- -D warnings
step cargo test -p invar-runtime --features gpu --test gpu --test gpu_random
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps

# The Python package, built and tested in an environment of its own.
python=target/python
[ -x "$python/bin/python" ] || step python3 -m venv "$python"
step "$python/bin/pip" install -q --disable-pip-version-check "maturin>=1.7,<2" numpy pytest ml_dtypes mypy abi3audit
VIRTUAL_ENV="$root/$python" step "$python/bin/maturin" develop -q
step "$python/bin/python" -m pytest -q
step "$python/bin/python" -m pytest -q --device=cpu
