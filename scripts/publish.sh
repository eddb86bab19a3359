#!/usr/bin/env bash
# Publishes the crates: each is packaged, and built from nothing but the others' packages. They are those of a copy
# of this tree, in target/publish, whose README has links that hold on the crates' pages.
#
# Only when all of them are built is one published, and then one after the other, what others need first. Of new
# crates the registry takes five at once and then one in ten minutes: the script waits and goes on. Where it stops it
# says which are left, and run again it passes over those that are there.
# usage: scripts/publish.sh [--dry-run | --built]
#   --dry-run  only packages and builds them, and says in which order they would go
#   --built    only publishes: for where --dry-run has just run, and the leave to publish is a short one
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

dry=false built=false
case "${1-}" in
    --dry-run) dry=true ;;
    --built) built=true ;;
    "") ;;
    *)
        echo "usage: scripts/publish.sh [--dry-run | --built]" >&2
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
elif ! $dry; then
    echo "the pages of crates would lead nowhere: say where the repository is, by INVAR_REPOSITORY=https://..." >&2
    exit 2
fi
export CARGO_TARGET_DIR=$root/target/packages
cd "$copy"

# Those that are published, and those that stand in this tree only; of the first, what others need before these.
order=$(cargo metadata --format-version 1 --no-deps | python3 -c '
import graphlib, json, sys
packages = {p["name"]: p for p in json.load(sys.stdin)["packages"]}
published = {name for name, p in packages.items() if p["publish"] != []}
# A dependency of tests alone that is named without a version is left out of the package.
needs = {name: sorted({d["name"] for d in packages[name]["dependencies"]
                       if d["name"] in packages and (d["kind"] != "dev" or d["req"] != "*")})
         for name in sorted(published)}
for name in graphlib.TopologicalSorter(needs).static_order():
    print("publish", name)
for name in sorted(set(packages) - published):
    print("keep", name)
')
read -r -a crates <<<"$(sed -n 's/^publish //p' <<<"$order" | tr '\n' ' ')"
read -r -a kept <<<"$(sed -n 's/^keep //p' <<<"$order" | tr '\n' ' ')"
$built || cargo package --workspace "${kept[@]/#/--exclude=}"
echo "in the order in which they are published: ${crates[*]}"
$dry && exit 0

said=$root/target/publish.log
for i in "${!crates[@]}"; do
    tries=0
    until cargo publish --no-verify -p "${crates[i]}" 2>&1 | tee "$said"; do
        if grep -q "already exists on\|already uploaded" "$said"; then
            echo "${crates[i]} is there already"
            break
        fi
        tries=$((tries + 1))
        if ! grep -qi "429\|too many" "$said" || [ $tries = 3 ]; then
            echo "published or there already: $i of ${#crates[@]}; left: ${crates[*]:i}. Run this again to go on." >&2
            exit 1
        fi
        echo "the registry takes one new crate in ten minutes: waiting since $(date -u +%H:%M) UTC; $i of ${#crates[@]} are there"
        sleep "${INVAR_PUBLISH_WAIT:-610}"
    done
done
