#!/usr/bin/env bash
# Prints the notes of a release: the part of CHANGELOG.md that is about it.
# usage: scripts/notes.sh vVERSION
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 1 ] || { echo "usage: scripts/notes.sh vVERSION" >&2; exit 2; }
version=${1#v}
have=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ "$version" != "$have" ]; then
    echo "the tag says $version, Cargo.toml $have" >&2
    exit 1
fi
if [ -n "$(awk '/^## / { inside = ($0 == "## Unreleased"); next } inside && NF' CHANGELOG.md)" ]; then
    echo "CHANGELOG.md has lines under \"## Unreleased\": the head of what is released is \"## $version\"" >&2
    exit 1
fi
notes=$(awk -v head="## $version" '/^## / { inside = ($0 == head); next } inside' CHANGELOG.md)
if [ -z "${notes//[[:space:]]/}" ]; then
    echo "CHANGELOG.md has no part \"## $version\"" >&2
    exit 1
fi
printf '%s\n' "$notes" | python3 scripts/readme.py -
