#!/usr/bin/env bash
# Publishes the crates: each is packaged, and built from nothing but the others' packages. They are those of a copy
# of this tree, in target/publish, whose README has links that hold on the crates' pages.
# usage: scripts/publish.sh [--dry-run]
#   --dry-run  only packages and builds them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
    # Only those that are published; what the others are for stands in this tree only.
    --dry-run) what=(package --exclude invar-bench --exclude invar-py --exclude invar-conformance) ;;
    "") what=(publish) ;;
    *)
        echo "usage: scripts/publish.sh [--dry-run]" >&2
        exit 2
        ;;
esac

need_rust
need_packages python3
copy=target/publish
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --null --files-from=- -cf - | tar -C "$copy" -xf -
python3 scripts/readme.py "$copy/README.md"
repository=$(python3 scripts/readme.py --address)
if [ -n "$repository" ]; then
    # In the manifest of each crate, beside its licence.
    sed -i "s|^license = .*|&\nrepository = \"$repository\"|" "$copy/Cargo.toml"
    sed -i "s|^license.workspace = true|&\nrepository.workspace = true|" "$copy"/crates/*/Cargo.toml
fi
export CARGO_TARGET_DIR=$root/target/packages
cd "$copy"
cargo "${what[0]}" --workspace "${what[@]:1}"
