#!/usr/bin/env bash
# What rust-analyzer says of the examples: it reads each of them and finds nothing to say; an editor is given types and methods in a kernel's body.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_rust
if ! rust-analyzer --version >/dev/null 2>&1; then
    echo "rust-analyzer is missing: rustup component add rust-analyzer rust-src" >&2
    exit 1
fi
# A crate of its own that uses the library by path, as users do.
there=$root/target/rust-analyzer
rm -rf "$there"
mkdir -p "$there/src/bin"
cat >"$there/Cargo.toml" <<'TOML'
[package]
name = "kernels"
edition = "2024"

[dependencies]
invar-lang = { path = "../../crates/invar", default-features = false }

[workspace]
TOML
cp crates/invar/examples/*.rs "$there/src/bin"
cp Cargo.lock "$there"
cat >"$there/src/bin/asked.rs" <<'RUST'
//! What an editor asks for.
use invar::prelude::*;

/// Every sort of name that a kernel's body has.
#[kernel]
pub fn asked(a: f32, x: &[f32], y: &mut [f32]) {
    let i = thread_position_in_grid().x; // hover i: Val<u32>
    let lane = thread_index_in_simdgroup(); // hover lane: Val<u32>
    let sums = threadgroup!([f32; 8]); // hover sums: ThreadgroupArray<f32
    let mut part = a * x[i]; // hover part: Val<f32>
    // complete part: sqrt fmax abs
    part = part.sqrt();
    // complete lane: min
    let near = lane.min(3); // hover near: Val<u32>
    for step in 0..near { // hover step: Val<u32>
        part += step as f32;
    }
    sums[lane] = part;
    y[i] = part;
}

fn main() {}
RUST
export CARGO_TARGET_DIR=$root/target
# It says nothing of what it has nothing against. That it reads the crate shows one mistake, in a kernel.
cat >"$there/src/bin/wrong.rs" <<'RUST'
//! What must be reported.
use invar::prelude::*;

/// A position has no such part.
#[kernel]
pub fn wrong(y: &mut [f32]) {
    y[0] = thread_position_in_grid().w;
}

fn main() {}
RUST
said=$(rust-analyzer diagnostics "$there" 2>&1 | tr '\b' '\n') || true
found=$(grep -F "$there" <<<"$said" | grep -E 'Error|Warning') || true
if ! grep -qF "no method \`w\`" <<<"$found"; then
    printf '%s\nrust-analyzer has not found the mistake in %s\n' "$said" "$there/src/bin/wrong.rs" >&2
    exit 1
fi
if others=$(grep -vF "$there/src/bin/wrong.rs" <<<"$found"); then
    printf '%s\n' "$others" >&2
    exit 1
fi
rm "$there/src/bin/wrong.rs"
python3 scripts/rust_analyzer.py "$there" "$there/src/bin/asked.rs"
