#!/usr/bin/env bash
# Shows what Invar does: catches two mistakes in a kernel, runs the corrected kernel on a file of
# four million floats, then a matrix product, a Mandelbrot picture, softmax, RMSNorm, a Sobel filter
# of a picture and a histogram of a text; each answer is compared with one computed by other means.
# Pictures go to target/demo. A PNG file as argument is filtered in place of the picture from Rust's
# own documentation.
# usage: scripts/demo.sh [--device NAME] [--small] [--profile NAME] [PICTURE.png]
#   --device  where the kernels run: a device of `invar devices`, such as gpu; this processor unless
#             it says otherwise
#   --small   sizes for a device that is slow
#   --profile how it is built: release, or dev, which tests have built already
set -euo pipefail
start=$(pwd)
usage='usage: scripts/demo.sh [--device NAME] [--small] [--profile NAME] [PICTURE.png]'
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=default small=() given= profile=release
while [ $# -gt 0 ]; do
    case "$1" in
        --device) [ $# -ge 2 ] || { echo "--device needs a name" >&2; exit 2; }
            device=$2; shift 2 ;;
        --small) small=(--small); shift ;;
        --profile) [ $# -ge 2 ] || { echo "--profile needs a name" >&2; exit 2; }
            case "$2" in release | dev) ;; *) echo "--profile takes release or dev, not $2" >&2; exit 2 ;; esac
            profile=$2; shift 2 ;;
        -h | --help) echo "$usage"; exit 0 ;;
        -*) echo "$usage" >&2; exit 2 ;;
        *) given=$1; shift ;;
    esac
done

need_rust
need_packages build-essential gawk libllvm19
case "$device" in gpu*) need_packages libvulkan1; quiet_drivers ;; esac
cargo build --profile "$profile" -q -p invar-cli -p invar --example showcase --bin invar
built=$root/target/${profile/#dev/debug}
invar=$built/invar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=4194304
[ ${#small[@]} = 0 ] || count=65536

printf '\n== 1. A kernel with a missing barrier and reads past the ends of its buffer\n\n'
if "$invar" check examples/smooth-broken.inv; then
    echo "the mistakes went unnoticed" >&2
    exit 1
fi

printf '\n== 2. The corrected kernel, under the same checkers\n\n'
"$invar" check examples/smooth.inv

printf '\n== 3. The corrected kernel on %s floats from a file\n\n' "$count"
"$invar" run examples/noise.inv --device "$device" --grid "$count" --arg "x=zeros($count)" --arg "seed=7" --out "x=@$work/x.npy"
"$invar" run examples/smooth.inv --device "$device" --grid "$count" \
    --arg "x=@$work/x.npy" --arg "y=zeros($count)" --out "y=@$work/y.npy"
ls -l "$work" | awk 'NR > 1 { print $5, "bytes", $9 }'

# The answer by other means: the floats as text, and the means in awk's double precision.
floats() { tail -c $((count * 4)) "$1" | od -An -v -t f4 -w4; }
paste <(floats "$work/x.npy") <(floats "$work/y.npy") | LC_ALL=C gawk -v n="$count" '
    function compare(got, a, b, c,   error) {
        error = got - (a + b + c) / 3
        if (error < 0) error = -error
        if (error > worst) worst = error
    }
    { x = $1; y = $2
      if (NR == 2) compare(y1, x1, x1, x)
      if (NR > 2) compare(y1, x2, x1, x)
      x2 = x1; x1 = x; y1 = y }
    END {
        compare(y1, x2, x1, x1)
        printf "compared %d means, largest difference %.2g\n", NR, worst
        if (NR != n || worst > 1e-6) { print "the answer is wrong"; exit 1 }
        print "the answer is right"
    }'

printf '\n== 4. Kernels as one first writes them\n\n'
pictures=$root/target/demo
mkdir -p "$pictures"
picture=$(rustc --print sysroot)/share/doc/rust/html/book/img/trpl14-03.png
case "$given" in '') ;; /*) picture=$given ;; *) picture=$start/$given ;; esac
if [ ! -f "$picture" ]; then
    # Rust without its documentation: the Mandelbrot picture is filtered.
    echo "$picture is not there: the Sobel filter takes the Mandelbrot picture"
    picture=$pictures/mandelbrot.png
fi
INVAR_SHOWCASE_DEVICE=$device "$built/examples/showcase" "${small[@]}" docs/memory-model.md "$picture" "$pictures"
