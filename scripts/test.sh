#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, doc tests, documentation. With --all
# also what takes long and seldom finds anything: other releases of LLVM, every CPython, packages, the site,
# workflows.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
    "") all=false ;;
    --all) all=true ;;
    *)
        echo "usage: scripts/test.sh [--all]" >&2
        exit 2
        ;;
esac

need_rust
need_packages build-essential python3 python3-venv libllvm19 clang-19 libvulkan1 mesa-vulkan-drivers
for component in rustfmt clippy; do
    if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        echo "the Rust component $component is missing: rustup component add $component" >&2
        exit 1
    fi
done

quiet_drivers
skipped=0
skip() {
    skipped=$((skipped + 1))
    printf '\nskipped: %s\n' "$*"
}
times=()
step() {
    local begun=$SECONDS
    printf '\n== %s\n' "$*"
    "$@"
    times+=("$(printf '%5d s  %.100s' $((SECONDS - begun)) "$*")")
}
say_times() { printf '\n%5d s in all, of which\n' "$SECONDS"; printf '%s\n' "${times[@]}" | sort -rn; }
trap say_times EXIT

step cargo fmt --all --check
step python3 scripts/gallery.py --check
step cargo clippy --workspace --all-targets -- -D warnings
if $all; then export INVAR_EVERY_WAY=1; fi
step cargo test --workspace
# The workspace has GPUs, for the command does; the library does without.
step cargo clippy -p invar-runtime --all-targets -- -D warnings
# On Mesa's driver that computes on the processor; small, since that is slow.
step scripts/demo.sh --device gpu --small --profile dev
# Some random kernels on the CPU, on the GPU and as MSL; scripts/conformance.sh tries as many as wanted.
step cargo run -q -p invar-bench --features gpu --bin invar-conformance -- --device all --seeds 0..80
# File tests with something changed, between guard pages, for this processor and an older one.
for processor in native x86-64; do
    INVAR_PROCESSOR=$processor step cargo run -q -p invar-bench --features gpu --bin invar-conformance -- \
        --device cpu --mutants tests/ir/run --seeds 0..150
done

# The CPU compiler on newer releases of LLVM: those of Debian, or else of PyPI.
if $all; then
    packaged libllvm19 || { [ "$(id -u)" != 0 ] || apt-get update -qq; }
    for version in 20 21 22; do
        if packaged "libllvm$version"; then
            need_packages "libllvm$version"
            library=$(dpkg -L "libllvm$version" | grep -m1 'libLLVM\.so\.')
            without=()
        else
            library=$(pypi_llvm "$version.1.8")
            # It is built without AArch64, which these compile for.
            without=(--skip aarch64_fuses --skip r2_a_value_that_may_race --skip code_for_another_machine
                --skip o3_what_is_written_and_not_read --skip codes_become_fractions)
        fi
        if [ -n "$library" ]; then
            INVAR_LLVM=$library step cargo test -p invar-llvm --test suite -- "${without[@]}"
        else
            skip "the CPU compiler on LLVM $version, which neither this system nor PyPI has for it"
        fi
    done
else
    skip "the CPU compiler on LLVM 20 to 22 (scripts/test.sh --all)"
fi

# Shaders on the processor, on the GPU, and by the GPU's driver alone: all compute the same.
step scripts/corpora.sh --run tests/wgsl

# Other systems, where Rust's library for them is installed.
step scripts/targets.sh
# What others get: each crate as it would be published, built from nothing but the others' packages.
if $all; then
    step cargo test -p invar-lang --test suite programs -- --ignored
    if rust-analyzer --version >/dev/null 2>&1; then
        step scripts/rust_analyzer.sh
    else
        skip "the examples under rust-analyzer, which is missing: rustup component add rust-analyzer rust-src"
    fi
    step scripts/publish.sh --dry-run
    step scripts/wheel.sh
    step scripts/docs.sh
    step scripts/workflows.sh
else
    skip "programs with Rust kernels, compiled and refused; rust-analyzer (scripts/test.sh --all)"
    skip "the crates' packages, the wheel with LLVM inside, the site and the workflows (scripts/test.sh --all)"
fi
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps

# The Python package, built and tested in an environment of its own.
python=target/python
[ -x "$python/bin/python" ] || step python3 -m venv "$python"
step "$python/bin/pip" install -q --disable-pip-version-check "maturin>=1.7,<2" numpy pytest ml_dtypes mypy abi3audit
# Arrays of other libraries. PyTorch's tests are for who has it: it is some gigabytes.
step "$python/bin/pip" install -q --disable-pip-version-check jax pyarrow pandas polars
VIRTUAL_ENV="$root/$python" step "$python/bin/maturin" develop -q
step "$python/bin/python" -m pytest -q -rs
step "$python/bin/python" -m pytest -q --device=cpu
# What computes, on a GPU; what it does not support is skipped, with the reason. The other files ask what the
# language says and take another ten minutes there, for each kernel goes through the driver's compiler.
step "$python/bin/python" -m pytest -q -rs --device=gpu \
    python/tests/test_{devices,enigma,enigma_blocks,enigma_programs,enigma_unchanged,errors,launch,layout,memory,ops,order}.py \
    python/tests/test_{reach,reads,still,surface,tensors,tiles}.py

# One wheel serves every CPython from 3.9 on: what runs on them is what was built for one.
step "$python/bin/python" -m maturin build -q --profile dev --auditwheel skip --out target/wheel
mine=$("$python/bin/python" -c 'import sys; print(sys.version_info[1])')
found=false
for minor in 9 14 13 12 11 10; do
    [ "$minor" != "$mine" ] || continue
    if ! other=$(cpython "3.$minor"); then
        skip "the Python package on CPython 3.$minor, which is not installed"
        continue
    fi
    # The oldest and the newest stand for those between.
    if ! $all && [ "$minor" != 9 ]; then
        if $found; then
            skip "the Python package on CPython 3.$minor (scripts/test.sh --all)"
            continue
        fi
        found=true
    fi
    there=target/python3.$minor
    [ -x "$there/bin/python" ] || step "$other" -m venv "$there"
    step "$there/bin/python" -m pip install -q --disable-pip-version-check numpy pytest
    step "$there/bin/python" -m pip install -q --disable-pip-version-check --force-reinstall --no-deps \
        target/wheel/invar_lang-*-abi3-*.whl
    step "$there/bin/python" -m pytest -q python/tests/test_{control_flow,forms,memory,reads,errors}.py
done
printf '\nall passed; steps skipped: %s\n' "$skipped"
